"""Comparison figures: no panel without content, one scale for fields, a scale of its own for each difference."""

import numpy as np
import pytest

import fluxforge as ff
from fluxforge.stepping import compare, comparison_figure

MESH = ff.mesh.jittered(4)


def draw_figure(count: int, pairs: list[tuple[str, str]]):
    rng = np.random.default_rng(0)
    fields = {f"f{k}": 10.0**-k * rng.standard_normal(len(MESH.cells)) for k in range(count)}
    figure = comparison_figure(MESH, fields, pairs, unknown="u")
    return figure, [axes for axes in figure.axes if axes.get_title()]


@pytest.mark.parametrize(("count", "pairs"), [(2, 1), (3, 2), (3, 3), (1, 0)])
def test_every_panel_holds_values_that_are_not_all_zero(count, pairs):
    names = [("f1", "f0"), ("f2", "f0"), ("f2", "f1")][:pairs]
    _, panels = draw_figure(count, names)
    assert len(panels) == count + pairs
    for panel in panels:
        assert np.abs(panel.collections[0].get_array()).max() > 0


def test_fields_share_a_scale_and_differences_have_their_own():
    _, panels = draw_figure(3, [("f1", "f0"), ("f2", "f1")])
    limits = [panel.collections[0].get_clim() for panel in panels]
    assert limits[0] == limits[1] == limits[2]
    assert limits[3] != limits[4]
    for panel, (low, high) in zip(panels[3:], limits[3:], strict=True):
        assert high == -low == np.abs(panel.collections[0].get_array()).max()


def test_colour_bars_are_as_high_as_their_plots():
    figure, panels = draw_figure(2, [("f1", "f0")])
    figure.draw_without_rendering()
    for panel in panels:
        (bar,) = panel.child_axes
        plot, beside = panel.get_window_extent(), bar.get_window_extent()
        # Positions are in pixels of the canvas.
        assert abs(plot.height - beside.height) < 1
        assert abs(plot.y0 - beside.y0) < 1


def test_a_comparison_of_two_schemes_has_three_panels_in_a_row():
    figure = compare(["euler", "midpoint"], MESH, initial="x*y", steps=2).plot()
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert [title.split(",")[0] for title in titles] == ["euler", "midpoint", "midpoint − euler"]


def test_a_comparison_is_shown_as_a_line_per_scheme():
    text = repr(compare(["crank-nicolson", "euler"], MESH, initial="x*y", dt=1e-3, steps=9))
    head, first, second = text.split("\n")
    assert head == "Comparison of 2 schemes:"
    assert first.startswith("  crank-nicolson: relative L2 0, max 0, from ")
    assert second.startswith("  euler: relative L2 0.0")
