"""The figures of the consistency study, from a result written by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

from fluxforge.paper import PARTS
from fluxforge.paper._figures_consistency import STYLES
from fluxforge.paper.studies import consistency
from study_documents import read_partial

diffusivity_figure = PARTS["consistency"].draw["diffusivity"]
plateau_figure = PARTS["consistency"].draw["plateau"]
CELLS = (64, 256, 1024, 4096)
H = [cells**-0.5 for cells in CELLS]
FAMILIES = ("squares", "equilateral", "right", "jittered", "irregular")


def _tensor(low: float, high: float) -> dict[str, Any]:
    off = max(abs(low - 1), abs(high - 1))
    return {"K": [[low, 0.0], [0.0, high]], "principal": [low, high], "mean": 0.5 * (low + high), "off": off}


def _family(name: str) -> dict[str, Any]:
    one, printed = (_tensor(0.7, 1.3), _tensor(1.7, 4.3)) if name == "right" else (_tensor(1, 1), _tensor(2.7, 2.76))
    tensors = {"euler": one, "two-hop": one, "two-hop-printed": printed}
    stays = name in ("right", "jittered")
    plain = [0.06] * 4 if stays else [h**2 for h in H]
    return {
        "cells": list(CELLS),
        "h": H,
        "steady": {
            "euler": {"errors": plain, "rates": [0.0] * 3, "order": None if stays else 2.0},
            "corrected": {"errors": [2 * h**2 for h in H], "rates": [2.0] * 3, "order": 1.98},
        },
        "diffusivity": {scheme: [None if name == "equilateral" else K] * 4 for scheme, K in tensors.items()},
        "lattice": None if name in ("jittered", "irregular") else tensors,
    }


@pytest.fixture
def result() -> dict[str, Any]:
    return {"families": {name: _family(name) for name in FAMILIES}}


def _curve(panel: Axes, name: str) -> Any:
    """The line with the markers of a scheme."""
    colour, marker, _ = STYLES[name]
    (line,) = (line for line in panel.lines if line.get_color() == colour and line.get_marker() == marker)
    return line


@pytest.mark.parametrize("draw", [diffusivity_figure, plateau_figure])
def test_every_family_has_a_panel_that_says_what_it_is(draw: Any, result: dict[str, Any], tmp_path: Path) -> None:
    figure = draw(read_partial(result, consistency.Result))
    figure.savefig(tmp_path / "figure.png")
    assert len(figure.axes) == len(FAMILIES)
    assert figure.get_figwidth() <= 10
    for panel in figure.axes:
        assert "h" in panel.get_xlabel()
        assert panel.get_ylabel()
        assert "64 to 4,096 cells" in panel.get_title()
        low, high = sorted(panel.get_xlim())
        assert low < min(H) < max(H) < high
        shown = [tick.get_text() for tick in panel.get_xticklabels()]
        assert {"0.1", "0.05", "0.02"} <= set(shown)
    assert [panel.get_title().split("\n")[0] for panel in figure.axes][:2] == ["squares", "equilateral triangles"]


def test_one_family_alone_draws(result: dict[str, Any], tmp_path: Path) -> None:
    alone = {"families": {"right": result["families"]["right"]}}
    for draw in (diffusivity_figure, plateau_figure):
        figure = draw(read_partial(alone, consistency.Result))
        figure.savefig(tmp_path / "alone.png")
        assert len(figure.axes) == 1


def test_diffusivities_are_drawn_where_they_were_measured_beside_one(result: dict[str, Any]) -> None:
    squares, equilateral, right, jittered, _ = diffusivity_figure(read_partial(result, consistency.Result)).axes
    assert _curve(squares, "two-hop-printed").get_xdata().tolist() == pytest.approx(H)
    assert _curve(squares, "two-hop-printed").get_ydata().tolist() == pytest.approx([2.73] * 4)
    assert len(_curve(equilateral, "euler").get_xdata()) == 0
    # Numbers stand beside the finest mesh.
    assert squares.get_xlim()[1] < min(H)
    for panel in (squares, equilateral, right, jittered):
        ones = [line for line in panel.lines if list(line.get_ydata()) == [1.0, 1.0] and line.get_linestyle() == "--"]
        assert len(ones) == 1
        assert panel.get_ylim()[0] <= 0.0
        assert panel.get_ylim()[1] >= 4.3


def test_bars_span_the_principal_values(result: dict[str, Any]) -> None:
    right = diffusivity_figure(read_partial(result, consistency.Result)).axes[2]
    bars = [line for line in right.lines if len(set(line.get_xdata())) == 1 and len(line.get_xdata()) == 2]
    spans = {tuple(line.get_ydata()) for line in bars}
    assert spans == {(0.7, 1.3), (1.7, 4.3)}
    assert len(bars) == 2 * len(H)


def test_exact_values_are_lines_on_lattices_only(result: dict[str, Any]) -> None:
    panels = diffusivity_figure(read_partial(result, consistency.Result)).axes
    dotted = [
        sorted(np.asarray(line.get_ydata())[0] for line in panel.lines if line.get_linestyle() == ":")
        for panel in panels
    ]
    assert dotted[2] == pytest.approx([0.7, 1.3, 1.7, 4.3])
    assert dotted[1] == pytest.approx([1.0, 1.0, 2.7, 2.76])
    assert dotted[3] == dotted[4] == []
    numbers = [[text.get_text() for text in panel.texts] for panel in panels]
    assert numbers[2] == ["1.70", "4.30", "0.70", "1.30"]
    # Too close for two numbers: their mean.
    assert numbers[1] == ["2.73", "1.00", "exact, the same for every h"]


def test_errors_are_drawn_as_they_are_with_their_orders(result: dict[str, Any]) -> None:
    panels = plateau_figure(read_partial(result, consistency.Result)).axes
    for panel, name in zip(panels, FAMILIES, strict=True):
        steady = result["families"][name]["steady"]
        for scheme in ("euler", "corrected"):
            assert _curve(panel, scheme).get_ydata().tolist() == pytest.approx(steady[scheme]["errors"])
        plain = "no order" if steady["euler"]["order"] is None else "order 2.00"
        assert [text.get_text() for text in panel.texts] == [plain, "order 1.98"]
        assert panel.get_xscale() == panel.get_yscale() == "log"
    assert len({panel.get_ylim() for panel in panels}) == 1


def test_the_guide_has_a_slope_of_two(result: dict[str, Any]) -> None:
    panel = plateau_figure(read_partial(result, consistency.Result)).axes[0]
    (guide,) = (line for line in panel.lines if line.get_linestyle() == "--")
    (x0, x1), (y0, y1) = guide.get_data()
    assert np.log(y0 / y1) / np.log(x0 / x1) == pytest.approx(2)
