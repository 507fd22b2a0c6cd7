import pytest

from fluxforge.mesh import _picture, mesh_picture, polygon


@pytest.mark.parametrize("corner", [(4.0, 1.0), (1.0, 4.0)])
def test_the_colour_bar_is_as_high_as_the_plot(corner, monkeypatch, tmp_path):
    drawn = []
    monkeypatch.setattr(_picture, "save_figure", lambda figure, path: drawn.append(figure))
    x, y = corner
    mesh_picture(polygon([(0, 0), (x, 0), (x, y), (0, y)], cells=50), tmp_path / "m.png")
    drawn[0].draw_without_rendering()
    (plot,) = drawn[0].axes
    (bar,) = plot.child_axes
    assert bar.get_window_extent().height == pytest.approx(plot.get_window_extent().height)
