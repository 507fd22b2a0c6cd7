"""The figures of the symbolic and the higher-order study, from results written by hand."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fluxforge.paper import PARTS
from fluxforge.paper.studies import higher_order, symbolic
from study_documents import read_partial

constants_figure = PARTS["higher-order"].draw["constants"]
four_layers_figure = PARTS["higher-order"].draw["four-layers"]
pinn_figure = PARTS["symbolic"].draw["constant-against-step"]
residuals_figure = PARTS["higher-order"].draw["residuals"]
symbolic_figure = PARTS["symbolic"].draw["symbolic"]
STEPS = tuple(0.5 / 2**k for k in range(8))
TRAINED = (0.0625, 0.125, 0.25, 0.5)
THETAS = {"θ = 0": 0.0, "θ = 0.5": 0.5, "θ = 1": 1.0}
KINDS = {
    symbolic_figure: symbolic.Result,
    pinn_figure: symbolic.Result,
    constants_figure: higher_order.Result,
    four_layers_figure: higher_order.Result,
    residuals_figure: higher_order.Result,
}
Draw = Callable[[Any], Figure]


def _draw(draw: Draw, document: dict[str, Any]) -> Figure:
    return draw(read_partial(document, KINDS[draw]))


def _front(kind: str, chosen: int | None) -> dict[str, Any]:
    errors = (1.0, 0.4, 3e-2, 1e-3, 9e-4)
    rows = [{"complexity": 2 * k + 1, "error": error, "formula": "z1"} for k, error in enumerate(errors)]
    return {"kind": kind, "chosen": chosen, "rows": rows}


def _row(engine: str, seed: int, *, alpha: float = 1.0) -> dict[str, Any]:
    recovered = seed != 3
    losses = {"network_loss": 1e-3 * (1 + seed % 3), "formula_loss": 1e-15} if recovered else {}
    nothing = {"network_loss": None, "formula_loss": None}
    return {"engine": engine, "seed": seed, "diffusivity": alpha, "recovered": recovered, **nothing, **losses}


def _symbolic() -> dict[str, Any]:
    """Two engines, one seed of which fails; a network for every θ."""
    rows = [_row(engine, seed) for engine in ("operon", "pysr") for seed in range(10)]
    rows += [_row("operon", 0, alpha=alpha) for alpha in (0.3, 2.5)]
    return {
        "engines": ["operon", "pysr"],
        "rows": rows,
        # The order of a network's modules is not that of the panels.
        "fronts": {"T_new": _front("update", 3), "z1": _front("message", 2)},
        "against_step": {name: {"rows": [_pair(step, theta) for step in STEPS]} for name, theta in THETAS.items()},
    }


def _pair(step: float, theta: float) -> dict[str, Any]:
    alone = 1.0 / (1.0 + 2.0 * theta * step)
    row = {"step": step, "constants": {"c1": alone**1.4, "a1": alone**0.5}, "alone": alone}
    if step >= 0.01:
        row["network"] = {"c1": 0.98 * alone**1.4, "a1": 1.01 * alone**0.5, "unexplained": 0.01}
    return row


def _nested(step: float, theta: float, layers: int) -> dict[str, float]:
    """θ in every layer but the last, for short steps, and less for longer ones."""
    near = 1.0 / (1.0 + 2.0 * theta * step)
    return {
        f"{letter}{k}": near ** (0.1 + 0.6 * (layers - k)) * (theta if k < layers else 1.0)
        for k in range(1, layers + 1)
        for letter in "ac"
    }


def _network(theta: float, layers: int = 2) -> dict[str, Any]:
    return {
        "by_step": [
            {
                "fourier": step,
                **{"network": 0.2 * step**2, "euler": step, "midpoint": step**2, "rk4": 0.8 * step**2},
                "crank-nicolson": 1e-15,
                "constants": {**_nested(1.1 * step, theta, layers), "unexplained": 0.02},
            }
            for step in TRAINED
        ]
    }


def _higher_order() -> dict[str, Any]:
    """Every network trained, every loss minimised."""
    networks = {"midpoint": _network(0.5), "two-hop": _network(0.5)}
    networks |= {f"two layers, {name}": _network(theta) for name, theta in THETAS.items() if theta != 0.5}
    networks |= {f"four layers, {name}": _network(0.5, 4) for name in ("θ = ½", "hermite")}

    def rows(theta: float, layers: int) -> dict[str, Any]:
        return {"rows": [{"step": step, "constants": _nested(step, theta, layers)} for step in (1.0, *STEPS)]}

    return {
        "direct": {name: rows(theta, 2) for name, theta in THETAS.items()},
        "direct_four": {"θ = ½": rows(0.5, 4), "hermite": rows(0.25, 4)},
        "networks": networks,
    }


def _drawn(figure: Figure, path: Path) -> tuple[Axes, ...]:
    """The panels, once the figure has been laid out without a warning."""
    figure.savefig(path / "figure.png")
    assert (path / "figure.png").stat().st_size > 10_000
    return tuple(figure.axes)


@pytest.mark.parametrize(
    ("draw", "result", "count"),
    [
        (symbolic_figure, _symbolic(), 3),
        (pinn_figure, _symbolic(), 2),
        (constants_figure, _higher_order(), 3),
        (four_layers_figure, _higher_order(), 2),
        (residuals_figure, _higher_order(), 2),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_panel_says_what_its_axes_are(draw: Draw, result: dict[str, Any], count: int, tmp_path: Path) -> None:
    panels = _drawn(_draw(draw, result), tmp_path)
    assert len(panels) == count
    assert all(panel.get_xlabel() and panel.get_ylabel() and panel.get_title() for panel in panels)
    assert len({panel.get_title() for panel in panels}) == count
    assert any(panel.get_legend() is not None for panel in panels)


def test_messages_come_before_updates_and_the_chosen_formulas_are_marked() -> None:
    message, update, table = _draw(symbolic_figure, _symbolic()).axes
    assert message.get_title().startswith("f_agg (z1")
    assert update.get_title().startswith("f_up (T_new")
    assert [list(np.asarray(panel.lines[-1].get_xydata())[0]) for panel in (message, update)] == [[5, 3e-2], [7, 1e-3]]
    assert table.get_title() == "20 of 22 recovered"


def test_a_network_that_failed_leaves_its_place_empty() -> None:
    network, formula, other, _ = _draw(symbolic_figure, _symbolic()).axes[-1].lines
    assert list(network.get_xdata()) == [0, 1, 2, *range(4, 12)] == list(formula.get_xdata())
    # A second engine explains the same networks, and is drawn beside the first.
    assert list(other.get_xdata()) == [place + 0.25 for place in (0, 1, 2, *range(4, 10))]
    assert network.get_label() == "network, operon"
    assert list(formula.get_ydata()) == [1e-15] * 11


def test_a_study_that_found_nothing_draws(tmp_path: Path) -> None:
    result = _symbolic() | {"fronts": {"z1": _front("message", None)}}
    result["rows"] = [_row("operon", 3)]
    message, table = _drawn(_draw(symbolic_figure, result), tmp_path)
    assert message.get_legend() is None
    assert not table.lines
    assert table.get_title() == "0 of 1 recovered"
    (only,) = _drawn(_draw(symbolic_figure, result | {"fronts": {}, "engines": [], "rows": []}), tmp_path)
    assert only.get_title() == "0 of 0 recovered"


def test_a_loss_of_nothing_is_drawn_at_round_off() -> None:
    result = _symbolic()
    result["rows"] = [_row("operon", 0) | {"formula_loss": 0.0}]
    assert list(_draw(symbolic_figure, result).axes[-1].lines[1].get_ydata()) == [1e-17]


def test_marks_are_drawn_where_a_network_was_trained_and_lines_everywhere(tmp_path: Path) -> None:
    flux, source = _draw(pinn_figure, _symbolic()).axes
    # Least residual, the network's own and the pair alone; the source has no such pair.
    assert (len(flux.lines), len(source.lines)) == (9, 6)
    assert [len(line.get_xdata()) for line in flux.lines[:3]] == [8, 6, 8]
    assert list(flux.lines[0].get_xdata()) == sorted(STEPS)
    result = _symbolic()
    for study in result["against_step"].values():
        for row in study["rows"]:
            row.pop("network", None)
    assert [len(panel.lines) for panel in _drawn(_draw(pinn_figure, result), tmp_path)] == [6, 3]


def test_constants_are_drawn_for_every_theta_with_what_was_trained(tmp_path: Path) -> None:
    first, source, second = _draw(constants_figure, _higher_order()).axes
    assert len(first.lines) == len(source.lines) == len(second.lines) == 2 * 3 + 1
    assert [np.asarray(panel.lines[-1].get_ydata())[0] for panel in (first, source, second)] == [0.5, 0.5, 1.0]
    half = next(line for line in first.lines if line.get_label() == "θ = 0.5, trained")
    assert list(half.get_ydata()) == pytest.approx([_nested(1.1 * step, 0.5, 2)["c1"] for step in TRAINED])
    alone = _higher_order()
    alone["networks"] = {"midpoint": _network(0.5)}
    panels = _drawn(_draw(constants_figure, alone), tmp_path)
    assert [line.get_label() for line in panels[0].lines if "trained" in str(line.get_label())] == ["θ = 0.5, trained"]


def test_marks_that_a_frame_leaves_out_are_counted() -> None:
    inside = _higher_order()
    assert not any(
        "outside" in text.get_text() for panel in _draw(four_layers_figure, inside).axes for text in panel.texts
    )
    for row in inside["networks"]["four layers, hermite"]["by_step"]:
        row["constants"]["c1"] = -7.0
    first, second = _draw(four_layers_figure, inside).axes
    marks = 4 * len(inside["networks"]["four layers, hermite"]["by_step"])
    assert not first.texts
    assert [text.get_text() for text in second.texts] == [f"{marks // 4} of {marks} marks lie outside"]


def test_four_layers_are_drawn_with_and_without_trained_networks(tmp_path: Path) -> None:
    for panel in _draw(four_layers_figure, _higher_order()).axes:
        # A line, RK4's constant, and marks, per layer.
        assert len(panel.lines) == 4 * 3
    alone = _higher_order()
    alone["networks"] = {}
    panels = _drawn(_draw(four_layers_figure, alone), tmp_path)
    assert [len(panel.lines) for panel in panels] == [8, 8]
    dotted = [np.asarray(line.get_ydata())[0] for line in panels[0].lines[1::2]]
    assert dotted == pytest.approx([1 / 4, 1 / 3, 1 / 2, 1])


def test_residuals_are_drawn_beside_those_of_schemes(tmp_path: Path) -> None:
    for panel in _draw(residuals_figure, _higher_order()).axes:
        assert [line.get_label() for line in panel.lines] == ["network", "Euler", "midpoint", "RK4"]
        assert list(panel.lines[1].get_ydata()) == list(TRAINED)
    alone = _higher_order()
    del alone["networks"]["two-hop"]
    (only,) = _drawn(_draw(residuals_figure, alone), tmp_path)
    assert only.get_title() == "midpoint network"
