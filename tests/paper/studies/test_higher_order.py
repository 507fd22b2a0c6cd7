"""The higher-order study: residuals and constants that are known beforehand, and runs that can be resumed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import msgspec
import numpy as np
import pytest

from fluxforge import recipe
from fluxforge.data import Problem, problem, scale_step, source
from fluxforge.errors import FluxforgeError
from fluxforge.gnn import parameters
from fluxforge.gnn.exact import sparse_network
from fluxforge.graph import pad_graph
from fluxforge.loss import defect_of, mean_defect
from fluxforge.mesh import Dirichlet, Neumann, dual, fourier_step, generate, unit_volume
from fluxforge.paper import PARTS
from fluxforge.paper.studies import _networks, higher_order
from fluxforge.paper.studies._decoys import build_two_stages
from fluxforge.paper.studies._networks import read_networks
from fluxforge.pipeline import ladder, run_folder
from fluxforge.run import RunFolder
from fluxforge.scheme import Hop
from fluxforge.stepping import stepper
from fluxforge.train import train
from study_documents import read_partial, run_document

constants_figure = PARTS["higher-order"].draw["constants"]
four_layers_figure = PARTS["higher-order"].draw["four-layers"]
residuals_figure = PARTS["higher-order"].draw["residuals"]
SMALL = {"data.meshes": 3, "data.cells": (20, 30), "data.engine": "builtin", "evaluation.engine": "builtin"}
FEW = higher_order.Config(changes=SMALL, problems=4)
SPEC = FEW.load_recipe("midpoint", FEW.preset, {})
MIDPOINT = {"a1": 0.5, "c1": 0.5, "a2": 1.0, "c2": 1.0}
CELLS = 24
RK4 = {"c1": 1 / 4, "c2": 1 / 3, "c3": 1 / 2, "c4": 1.0}


@pytest.fixture(scope="module", autouse=True)
def quickly_compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Without XLA's optimisation: drawing random fields takes a tenth of a second, compiling them well takes many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLUXFORGE_CACHE", str(tmp_path_factory.mktemp("cache")))
        before = jax.config.read("jax_disable_most_optimizations")
        jax.config.update("jax_disable_most_optimizations", True)
        yield
        jax.config.update("jax_disable_most_optimizations", before)


@pytest.fixture(scope="module")
def held() -> Problem:
    """Problems on small meshes of different sizes, so that most are padded, at half the Fourier step."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_networks, "PROBLEMS", 4)
        return _networks.draw_unseen(SPEC, (0.5, 0.5), meshes=2, cells=CELLS)


def test_held_out_problems_are_padded_and_have_the_step_that_was_asked_for(held: Problem) -> None:
    assert held.T.shape == held.S.shape == (4, held.T.shape[1])
    assert len({int(count) for count in held.graph.live.sum(axis=1)}) == 2
    np.testing.assert_allclose(jax.vmap(_rate)(held) * held.dt, 0.5)


def _rate(p: Problem) -> Any:
    """max Σ α A/δ /V, whose inverse is the Fourier step."""
    edge = p.graph.hops[Hop.EDGE]
    weight = jnp.where(edge.mask, edge.geometry["A"] / edge.geometry["delta"], 0.0).sum(axis=1) / p.graph.V
    return p.parameters["alpha"] * jnp.where(p.graph.live, weight, 0.0).max()


def test_crank_nicolson_has_no_residual_at_one_half(held: Problem) -> None:
    def mean(theta: float) -> float:
        defect = defect_of(recipe.Loss(residual=recipe.Residual(theta=theta)))
        each = jax.lax.map(lambda p: mean_defect(defect(p, _networks.step_crank_nicolson(p)), p, "l1"), held)
        return float(each.mean())

    assert mean(0.5) < 1e-12
    assert mean(1.0) > 1e-3


@pytest.mark.parametrize("alpha", [1.0, 2.5])
def test_crank_nicolson_is_the_stepper_s(alpha: float) -> None:
    sides = {"left": Dirichlet("1 + x*y"), "top": Neumann(0.7), "right": Neumann(0.0)}
    graph, _ = unit_volume(dual(generate(kind="irregular", cells=30, seed=3, engine="builtin"), sides))
    rng = np.random.default_rng(0)
    T, S = rng.uniform(-1, 1, graph.cells), rng.uniform(-1, 1, graph.cells)
    dt = 3.0 * fourier_step(graph) / alpha
    posed = problem(
        pad_graph(graph, (Hop.EDGE,)),
        *map(jnp.asarray, (T, S)),
        dt=jnp.asarray(dt),
        parameters={"alpha": jnp.asarray(alpha)},
    )
    step = stepper("crank-nicolson", graph, dt, diffusivity=alpha, source=S)
    wanted = step.leave(step.advance(step.enter(T)))
    np.testing.assert_allclose(_networks.step_crank_nicolson(posed), wanted, rtol=0, atol=1e-12)


def test_a_network_that_is_the_first_order_scheme_has_its_residual(
    held: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_networks, "draw_unseen", lambda *_: held)
    residuals = _networks.measure_residuals(sparse_network(1, 2, 4), SPEC, (0.05, 0.5))
    assert list(msgspec.to_builtins(residuals)) == ["network", "euler", "midpoint", "rk4", "crank-nicolson"]
    assert residuals.network == pytest.approx(residuals.euler, rel=1e-9)
    assert residuals.crank_nicolson < 1e-12 < residuals.midpoint < residuals.euler


def test_a_network_that_is_the_midpoint_rule_has_its_residual_and_its_constants(
    held: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_networks, "draw_unseen", lambda *_: held)
    network = build_two_stages(recipe.override(SPEC, {"network.standardise": False}), 0.5, 0.5)
    residuals = _networks.measure_residuals(network, SPEC, (0.05, 0.5))
    assert residuals.network == pytest.approx(residuals.midpoint, rel=1e-9)
    assert residuals.midpoint > 1e-3
    constants = _networks.measure_constants(network, SPEC, 0.25)
    assert constants.pop("unexplained") < 1e-12
    assert constants == pytest.approx(MIDPOINT)


@pytest.fixture(scope="module")
def problems(held: Problem) -> dict[float, Problem]:
    """The same at every step of a ladder."""
    return {step: scale_step(held, jnp.asarray(step / 0.5)) for step in (1.0, 0.75, *ladder(SPEC))}


def test_least_residual_tends_to_the_midpoint_rule_and_as_printed_to_first_order(
    problems: dict[float, Problem],
) -> None:
    half, one = (higher_order.minimise(SPEC, {"loss.residual.theta": theta}, 2, problems) for theta in (0.5, 1.0))
    for direct, wanted in ((half, MIDPOINT), (one, dict.fromkeys(MIDPOINT, 1.0))):
        for name, value in wanted.items():
            assert abs(direct.limit[name] - value) <= direct.uncertainty[name] < 1e-2
    assert half.rational == {"a1": "1/2", "c1": "1/2", "a2": "1", "c2": "1"}
    for direct, order in ((half, 2.0), (one, 1.0)):
        assert direct.certified.order == pytest.approx(order, abs=0.05)
        assert direct.certified.order_with_source == pytest.approx(order, abs=0.05)
    assert [row.step for row in half.rows] == list(problems)
    # θ and Δt enter a residual as θΔt: doubling one and halving the other doubles the first layer's constants.
    at = {row.step: row.constants for row in half.rows}
    for row in one.rows:
        if (peer := at.get(2.0 * row.step)) is not None:
            wanted = {name: (2.0 if name in ("a1", "c1") else 1.0) * value for name, value in peer.items()}
            # Two fits of the same numbers: round-off of T/Δt in the vanishing rows, through their small matrix.
            assert row.constants == pytest.approx(wanted, abs=1e-7)


def test_least_residual_at_the_old_time_is_the_first_order_scheme_at_every_step(
    problems: dict[float, Problem],
) -> None:
    # Its residual at θ = 0 is nothing at all: the second layer is Euler's, and adds nothing of the first's.
    direct = higher_order.minimise(SPEC, {"loss.residual.theta": 0.0}, 2, problems)
    for row in direct.rows:
        assert row.loss < 1e-11
        assert row.constants == pytest.approx({"a1": 0.0, "c1": 0.0, "a2": 1.0, "c2": 1.0}, abs=1e-8)
    assert direct.limit["c1"] * direct.limit["c2"] == pytest.approx(0.0, abs=1e-8)


@pytest.mark.slow
def test_four_layers_tend_to_rk4_by_the_hermite_residual_alone() -> None:
    two, four = higher_order.minimise_residuals(FEW)
    assert list(two) == ["θ = 0", "θ = 0.5", "θ = 1"]
    assert two["θ = 0.5"].limit == pytest.approx(MIDPOINT, abs=1e-3)
    limits = [[four[name].limit[c] for c in RK4] for name in ("hermite", "θ = ½")]
    assert limits[0] == pytest.approx([1 / 4, 1 / 3, 1 / 2, 1], rel=0.02)
    assert limits[1] == pytest.approx([1 / 2, 1 / 2, 1 / 2, 1], rel=0.02)
    orders = [four[name].certified.order for name in ("hermite", "θ = ½")]
    assert orders == pytest.approx([4.0, 2.0], abs=0.1)


def _run_of(path: Path, steps: int = 2) -> np.ndarray:
    """A tiny run, trained to its end, and its weights."""
    spec = recipe.Recipe(
        name="tiny",
        data=recipe.TwoCells(graphs=9),
        network=recipe.Network(features="simplified", mlp="relu", depth=1, width=2, layers=1, update="direct"),
        loss=recipe.Loss(supervised=recipe.Supervised()),
        training=recipe.Training(steps=steps, batch=2, chunk=2),
    )
    with run_folder(path, spec, warn=pytest.fail) as folder:
        return np.asarray(parameters(train(spec, source(spec), folder=folder).member(0)))


def test_without_a_run_beside_it_no_network_is_found(tmp_path: Path) -> None:
    (tmp_path / "convergence").mkdir()
    assert read_networks(tmp_path / "convergence") == {}


@pytest.mark.slow
def test_networks_are_found_once_their_run_is_finished(tmp_path: Path) -> None:
    weights = _run_of(tmp_path / "higher-order" / "midpoint")
    assert read_networks(tmp_path / "convergence") == {}
    with RunFolder.open(tmp_path / "higher-order" / "midpoint", warn=pytest.fail) as folder:
        folder.finish("discovery", {"recovered": False})
    networks = read_networks(tmp_path / "convergence")
    assert list(networks) == ["network-midpoint"]
    assert np.array_equal(parameters(networks["network-midpoint"]), weights)


def test_names_of_variants_are_those_of_folders() -> None:
    plain = [higher_order.name_folder(name) for name in higher_order.VARIANTS]
    assert plain[0] == "two-layers-theta-0"
    assert "four-layers-theta-half" in plain
    assert len(set(plain)) == len(plain)
    assert all(name.replace("-", "").isalnum() and name.isascii() for name in plain)


def test_every_variant_is_a_recipe_and_a_quick_one_is_trained_for_less() -> None:
    quick = higher_order.Config()
    for base, changes in higher_order.VARIANTS.values():
        spec = quick.load_recipe(base, "quick", {**changes, **higher_order.choose_steps(quick)})
        assert spec.training.steps * 4 == recipe.load("midpoint").training.steps
    assert higher_order.choose_steps(higher_order.Config(preset="paper")) == {"training.steps": 5000}
    assert higher_order.choose_steps(higher_order.Config(variant_steps=5)) == {"training.steps": 5}
    assert higher_order.choose_steps(higher_order.Config(changes={"training.steps": 5})) == {}


def test_small_networks_of_four_layers_learn_at_a_lower_rate_and_others_do_not() -> None:
    quick, paper = higher_order.Config(), higher_order.Config(preset="paper")
    for _, changes in higher_order.VARIANTS.values():
        assert bool(higher_order.lower_rate(quick, changes)) == (changes.get("network.layers") == 4)
        assert higher_order.lower_rate(paper, changes) == {}
    (base, four) = higher_order.VARIANTS["four layers, θ = ½"]
    spec = quick.load_recipe(base, "quick", {**four, **higher_order.lower_rate(quick, four)})
    assert spec.training.learning_rate * 2 == recipe.load("midpoint").training.learning_rate
    assert spec.training.warm_up == 0.05
    asked = higher_order.Config(changes={"training.learning_rate": 1e-4})
    assert higher_order.lower_rate(asked, four) == {"training.warm_up": 0.05}


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[higher_order.Config, Path, dict[str, Any]]]:
    """Networks that have learned nothing yet, at one step, on problems that are drawn once."""
    changes = SMALL | {"training.steps": 20, "training.chunk": 20, "network.width": 4}
    changes |= {"evaluation.meshes": 2, "evaluation.cells": 24, "evaluation.rollout": 2}
    config = higher_order.Config(changes=changes, variants=("two layers, θ = 1",), problems=3)
    folder = tmp_path_factory.mktemp("higher-order")
    draw = _networks.draw_unseen
    unseen: dict[Any, Problem] = {}

    def draw_unseen(spec: recipe.Recipe, fourier: tuple[float, float]) -> Problem:
        key = spec.network.hops, fourier
        return unseen[key] if key in unseen else unseen.setdefault(key, draw(spec, fourier, meshes=2, cells=CELLS))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(higher_order, "STEPS", (0.25,))
        patch.setattr(_networks, "PROBLEMS", 4)
        patch.setattr(_networks, "draw_unseen", draw_unseen)
        yield config, folder, run_document(higher_order, config, folder)


@pytest.mark.slow
def test_a_run_of_untrained_networks_ends_with_verdicts(
    short: tuple[higher_order.Config, Path, dict[str, Any]], tmp_path: Path
) -> None:
    _, _, result = short
    assert list(result["networks"]) == ["midpoint", "two-hop", "two layers, θ = 1"]
    assert [row["theta"] for row in result["networks"].values()] == [0.5, 0.5, 1.0]
    assert all([step["fourier"] for step in row["by_step"]] == [0.25] for row in result["networks"].values())
    assert not any(row["recovered"] for row in result["discovered"].values())
    assert all(row["reasons"] for row in result["discovered"].values())
    verdicts = {claim["name"].removeprefix("higher-order-"): claim["verdict"] for claim in result["claims"]}
    alone = ("residual", "midpoint", "two-hop", "two-hop-found", "novel-operator")
    assert {verdicts[name] for name in alone} == {"cannot be tested from the text"}
    # What needs no network is judged by the constants of least residual.
    assert verdicts["half"] == verdicts["source"] == verdicts["four-layers"] == "holds under a condition"
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    for draw in (constants_figure, four_layers_figure, residuals_figure):
        draw(read_partial(result, higher_order.Result)).savefig(tmp_path / "figure.png")


@pytest.mark.slow
def test_a_second_call_trains_and_discovers_nothing(
    short: tuple[higher_order.Config, Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    config, folder, result = short
    told: list[str] = []
    known = read_partial(result, higher_order.Result)
    monkeypatch.setattr(higher_order, "minimise_residuals", lambda _: (known.direct, known.direct_four))
    again = run_document(higher_order, config, folder, lambda what, *_: told.append(what))
    assert again["networks"] == result["networks"]
    assert again["discovered"] == result["discovered"]
    assert again["claims"] == result["claims"]
    assert told == ["constants of least residual"]


@pytest.mark.slow
def test_a_folder_of_another_recipe_is_refused(
    short: tuple[higher_order.Config, Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    config, folder, result = short
    changed = higher_order.Config(changes={**config.changes, "training.steps": 21}, variants=(), problems=3)
    known = read_partial(result, higher_order.Result)
    monkeypatch.setattr(higher_order, "minimise_residuals", lambda _: (known.direct, known.direct_four))
    with pytest.raises(FluxforgeError, match="midpoint"):
        run_document(higher_order, changed, folder)
