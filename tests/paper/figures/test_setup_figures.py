"""The figures of the set-up show the numbers of the result."""

import copy
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch
from msgspec.structs import asdict

from fluxforge.mesh import Mesh, cross_triangles, equilateral, squares
from fluxforge.paper import PARTS
from fluxforge.paper._figures_setup import CENTRE, ONE, TWO
from fluxforge.paper.studies import setup
from fluxforge.paper.studies._setup_meshes import make_patch
from study_documents import read_partial

message_passing_figure = PARTS["setup"].draw["message-passing"]
sample_meshes_figure = PARTS["setup"].draw["sample-meshes"]
training_data_figure = PARTS["setup"].draw["training-data"]
two_hop_figure = PARTS["setup"].draw["two-hop-neighbourhood"]
FIGURES = (training_data_figure, sample_meshes_figure, message_passing_figure, two_hop_figure)


def _sample(mesh: Mesh, size: float) -> dict[str, Any]:
    count = len(mesh.cells)
    return {
        "points": mesh.points.tolist(),
        "cells": mesh.cells.tolist(),
        "size": np.linspace(0.1, size, count).tolist(),
        "spread": {"V": 0.125, "A": 0.25, "delta": 0.375},
    }


@pytest.fixture
def result() -> dict[str, Any]:
    root = 3**0.5
    pair = {
        "points": [[0.0, -1.0], [0.0, 1.0], [-root, 0.0], [root, 0.0]],
        "cells": [[0, 1, 2], [1, 0, 3]],
        "centroids": [[-1 / root, 0.0], [1 / root, 0.0]],
        "V": [root, root],
        "A": 2.0,
        "delta": 2 / root,
        "ratio": [1.0, 1.0],
        "example": {"T": [-0.9, 0.75], "S": [0.125, -0.5], "after": [-0.7, 0.6], "dt": 0.1, "diffusivity": 1.0},
    }
    return {
        "two_cells": pair,
        "samples": {"regular": _sample(equilateral(5), 0.4), "irregular": _sample(cross_triangles(4), 1.0)},
        "patches": {
            "triangles": asdict(make_patch(cross_triangles(5), 48)),
            "squares": asdict(make_patch(squares(7), 24)),
        },
    }


def _words(panel: Axes) -> list[str]:
    return [text.get_text() for text in panel.texts if text.get_text()]


def _arrows(panel: Axes) -> Counter[tuple[Any, str]]:
    """How many arrows there are of each colour and line."""
    arrows = [patch for patch in panel.patches if isinstance(patch, FancyArrowPatch)]
    return Counter((patch.get_edgecolor(), patch.get_linestyle()) for patch in arrows)


def _overlapping(figure: Figure) -> list[tuple[str, str]]:
    """Pairs of texts that lie on each other, titles and axis labels included."""
    figure.canvas.draw()
    texts = [text for panel in figure.axes for text in (*panel.texts, panel.title, panel.xaxis.label)]
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts if text.get_text()]
    return [(a, b) for k, (a, box) in enumerate(boxes) for b, other in boxes[k + 1 :] if box.padded(-1).overlaps(other)]


@pytest.mark.parametrize("draw", FIGURES, ids=lambda draw: draw.__name__)
def test_no_text_lies_on_another_and_the_figure_is_of_a_page(draw: Any, result: dict[str, Any], tmp_path: Path) -> None:
    before = copy.deepcopy(result)
    figure = draw(read_partial(result, setup.Result))
    figure.savefig(tmp_path / "figure.png")
    assert not _overlapping(figure)
    assert figure.get_figwidth() <= 10
    assert result == before


def test_the_training_graph_shows_geometry_state_and_answer(result: dict[str, Any]) -> None:
    mesh, before, after = training_data_figure(read_partial(result, setup.Result)).axes[:3]
    assert {"V = 1.732", "A = 2", "δ = 1.155", "A/(δ V) = 1"} <= set(_words(mesh))
    (triangles,) = (each for each in mesh.collections if isinstance(each, PolyCollection))
    assert len(triangles.get_paths()) == 2
    assert {"T = -0.900\nS = 0.125", "T = 0.750\nS = -0.500", "A = 2\nδ = 1.155"} <= set(_words(before))
    assert {"T′ = -0.700", "T′ = 0.600"} <= set(_words(after))
    assert "Δt = 0.1" in after.get_title()


def test_nodes_have_the_colour_of_their_temperature_on_one_scale(result: dict[str, Any]) -> None:
    figure = training_data_figure(read_partial(result, setup.Result))
    bar = figure.axes[-1]
    assert bar.get_ylim() == (-1.0, 1.0)
    nodes = [
        patch.get_facecolor() for panel in figure.axes[1:3] for patch in panel.patches if isinstance(patch, Circle)
    ]
    assert len(nodes) == 4
    result["two_cells"]["example"]["after"] = result["two_cells"]["example"]["T"]
    again = [
        patch.get_facecolor()
        for patch in training_data_figure(read_partial(result, setup.Result)).axes[2].patches
        if isinstance(patch, Circle)
    ]
    assert again == nodes[:2]
    assert nodes[:2] != nodes[2:]


def test_dark_nodes_have_light_labels(result: dict[str, Any]) -> None:
    before = training_data_figure(read_partial(result, setup.Result)).axes[1]
    colours = {text.get_text()[:8]: text.get_color() for text in before.texts}
    assert colours["T = -0.9"] == "white"
    assert colours["T = 0.75"] == "black"


def test_samples_share_one_scale_and_say_their_spread(result: dict[str, Any]) -> None:
    figure = sample_meshes_figure(read_partial(result, setup.Result))
    regular, irregular, bar = figure.axes
    for panel, kind in ((regular, "regular"), (irregular, "irregular")):
        (cells,) = panel.collections
        sample = result["samples"][kind]
        assert len(cells.get_paths()) == len(sample["cells"])
        assert cells.get_clim() == (0.0, 1.0)
        assert np.asarray(cells.get_array()).tolist() == pytest.approx(sample["size"])
        assert panel.get_title().startswith(f"{kind}: {len(sample['cells'])} cells")
        assert "V 0.12, A 0.25, δ 0.38" in panel.get_title()
    assert bar.get_xlim() == (0.0, 1.0)
    assert "largest on the irregular mesh" in bar.get_xlabel()


def test_messages_flow_along_edges_to_nodes(result: dict[str, Any]) -> None:
    edge, node, flow = message_passing_figure(read_partial(result, setup.Result)).axes
    patch = result["patches"]["triangles"]
    assert "f^{\\,\\mathrm{agg}}" in edge.get_xlabel()
    assert "f^{\\,\\mathrm{up}}" in node.get_xlabel()
    # Both ends go into the edge; each neighbour's edge into the node; and from there into P.
    assert sum(_arrows(edge).values()) == 2
    assert sum(_arrows(node).values()) == patch["one_hop"] == 3
    assert _arrows(flow) == {(to_rgba(ONE), "-"): 3}
    assert Counter(_words(flow)) == {"P": 1, "N": 3}
    assert {"$e_1'$", "$e_2'$", "$e_3'$"} <= set(_words(node))
    (cells,) = flow.collections
    assert len(cells.get_paths()) == len(patch["cells"])


def test_two_hops_have_the_colours_and_counts_of_the_paths(result: dict[str, Any]) -> None:
    figure = two_hop_figure(read_partial(result, setup.Result))
    for panel, kind, twice in zip(figure.axes, ("triangles", "squares"), (1, 4), strict=True):
        patch = result["patches"][kind]
        far = len(patch["paths"]) - patch["returning"]
        # The path that returns is two dashed arrows.
        assert _arrows(panel) == {
            (to_rgba(TWO), "-"): far,
            (to_rgba(ONE), "-"): patch["one_hop"],
            (to_rgba(CENTRE), "--"): 2,
        }
        named = {"P": 1, "N": patch["one_hop"], "×2": twice, "Q": patch["two_hop"] - twice}
        assert Counter(_words(panel)) == named
        title = panel.get_title()
        assert f"{len(patch['paths'])} paths" in title
        assert f"{patch['returning']} of them return" in title
        assert f"{twice} reached by more than one" in title
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert len(legend) == 4
    assert "a path that returns to P" in legend


def test_cells_within_reach_are_tinted_and_others_are_white(result: dict[str, Any]) -> None:
    white = (1.0, 1.0, 1.0, 1.0)
    hops = result["patches"]["triangles"]["hop"]
    for panel, reach in (
        (message_passing_figure(read_partial(result, setup.Result)).axes[2], 1),
        (two_hop_figure(read_partial(result, setup.Result)).axes[0], 2),
    ):
        (cells,) = panel.collections
        tinted = [tuple(colour) != white for colour in np.asarray(cells.get_facecolor()).tolist()]
        assert tinted == [hop <= reach for hop in hops]
