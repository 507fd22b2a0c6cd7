"""The route through the stencil, with networks whose functions are known: a midpoint rule in a gauge, and others."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from jaxtyping import Array, Float

from fluxforge import recipe
from fluxforge.data import Problem, model_of, unseen_meshes, unseen_problems
from fluxforge.distil import Candidate, Front, PowerLaw, Sampled, tabulate
from fluxforge.errors import DiscoveryError
from fluxforge.expression import parse
from fluxforge.gnn import AbstractMLP, Network, build
from fluxforge.pde import HEAT
from fluxforge.pipeline import Formula, _distillation, _judgement, _problems, discover
from fluxforge.pipeline._formula import judge
from fluxforge.pipeline._judgement import compare_stencils, read_network
from fluxforge.run import silent
from fluxforge.scheme import Hop, message_symbols, output_symbols, symbol
from fluxforge.train import Trained

ALPHA = 1.3


class Message(AbstractMLP):
    """g A^a δ^b (h_N − h_P): the flux in a gauge, or something that is none."""

    gauge: Float[Array, ""]
    powers: tuple[int, int] = eqx.field(static=True, default=(1, -1))

    def __call__(self, x: Float[Array, "rows inputs"]) -> Float[Array, "rows outputs"]:
        h_N, h_P, A, delta = x.T
        a, b = self.powers
        return (self.gauge * A**a * delta**b * (h_N - h_P))[:, None]


class Update(AbstractMLP):
    """(α z/g + V S) share, the f of T + Δt/V f: undoes the gauge."""

    gauge: Float[Array, ""]
    share: float = eqx.field(static=True)

    def __call__(self, x: Float[Array, "rows inputs"]) -> Float[Array, "rows outputs"]:
        S, V, z = x[:, 1], x[:, 3], x[:, -1]
        return (self.share * (ALPHA * z / self.gauge + V * S))[:, None]


def spec(**changes: Any) -> recipe.Recipe:
    base = {
        "diffusivity": ALPHA,
        "network.width": 2,
        "network.depth": 1,
        "network.standardise": False,
        "data.meshes": 3,
        "data.cells": [24, 40],
        "data.engine": "builtin",
        "evaluation.meshes": 2,
        "evaluation.cells": 40,
        "evaluation.engine": "builtin",
        "evaluation.rollout": 5,
    }
    return recipe.override(recipe.load("midpoint"), {**base, **changes})


def network(own: recipe.Recipe, *, first: tuple[int, int], second: tuple[int, int], share: float = 0.5) -> Network:
    """Two layers; `first` and `second` are the powers of A and δ in their messages, `share` the first one's step."""
    gauges = [jnp.asarray(g, "float32") for g in (-0.4, 2.5)]
    parts: list[AbstractMLP] = [
        Message(gauges[0], first),
        Update(gauges[0], share),
        Message(gauges[1], second),
        Update(gauges[1], 1.0),
    ]
    return eqx.tree_at(
        lambda n: tuple(f for layer in n.layers for f in (layer.messages[0].f, layer.update.f)),
        build(own.network, jax.random.key(0)),
        tuple(parts),
        is_leaf=lambda leaf: isinstance(leaf, AbstractMLP),
    )


FLUX, AREA = (1, -1), (1, 0)


def by_step(own: recipe.Recipe, steps: tuple[float, ...], count: int, number: int = 0) -> dict[float, Problem]:
    """The same few problems at every step, compiled once for all of them."""
    around = unseen_meshes(recipe.Evaluation(meshes=3, cells=40, engine="builtin"), 5)
    return {step: unseen_problems(around, 5, fourier=step, model=model_of(own), field="mixed") for step in steps}


@pytest.fixture(scope="module", autouse=True)
def _small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_problems, "MESHES", 4)
        patch.setattr(_problems, "CELLS", 40)
        for module in (_distillation, _judgement):
            patch.setattr(module, "problems_by_step", by_step)
        yield


@pytest.fixture(scope="module")
def midpoint_formula() -> Formula:
    """The midpoint rule, each layer in its own gauge."""
    return _distillation.read_formula(network(spec(), first=FLUX, second=FLUX), spec=spec(), tell=silent)


def test_a_midpoint_rule_in_a_gauge_is_found_with_its_constants(midpoint_formula: Formula) -> None:
    assert {name: str(value) for name, value in midpoint_formula.fitted.rational.items()} == {
        "a1": "1/2",
        "c1": "1/2",
        "a2": "1",
        "c2": "1",
    }
    for name, wanted in {"a1": 0.5, "c1": 0.5, "a2": 1.0, "c2": 1.0}.items():
        # Fractions are taken within three uncertainties.
        assert (
            abs(midpoint_formula.fitted.values[name] - wanted) <= 3.0 * midpoint_formula.fitted.uncertainty[name] < 1e-3
        )
    laws = midpoint_formula.evidence.laws
    assert laws is not None
    assert laws.near.exponents == pytest.approx({"A": 1, "delta": -1, "V": -1, "dt": 1}, abs=0.1)
    wanted = {"A_PN": 1, "delta_PN": -1, "A_NQ": 1, "delta_NQ": -1, "V_P": -1, "V_N": -1, "dt": 2}
    assert laws.far.exponents == pytest.approx(wanted, abs=1e-4)
    assert laws.far.factor == pytest.approx(ALPHA**2 / 2, rel=1e-3)
    assert midpoint_formula.evidence.order == 2


def test_its_formulas_are_those_of_the_midpoint_rule(midpoint_formula: Formula) -> None:
    edge = message_symbols(Hop.EDGE, ("h1",))
    for name, text in {"z1": "alpha*A/delta*(T_N - T_P)", "z2": "alpha*A/delta*(h1_N - h1_P)"}.items():
        assert sp.expand(parse(midpoint_formula.messages[name], edge) - parse(text, edge)) == 0
    node = output_symbols(("z1", "z2"), ())
    for name, text in {"h1": "T + dt*S/2 + dt*z1/(2*V)", "T_new": "T + dt*S + dt*z2/V"}.items():
        assert sp.expand(parse(midpoint_formula.outputs[name], node) - parse(text, node)) == 0
    fitted = midpoint_formula.fitted
    assert str(fitted.rational["c1"]) == "1/2"
    assert fitted.rational_loss == pytest.approx(fitted.loss, rel=0.05)
    assert midpoint_formula.scheme("midpoint", HEAT).name == "discovered-midpoint"


def test_the_network_s_own_constants_are_read_at_every_step(midpoint_formula: Formula) -> None:
    """The midpoint rule has the same constants at every step, those of least loss are others: no recovery."""
    own = read_network(network(spec(), first=FLUX, second=FLUX), midpoint_formula, spec())
    assert [reading.step for reading in own.readings] == pytest.approx(np.geomspace(0.5, 0.1, 5))
    # Its weights are of single precision, and so are the gauges that cancel.
    for reading in own.readings:
        assert reading.explained > 1.0 - 1e-5
        assert reading.own == pytest.approx({"a1": 0.5, "c1": 0.5, "a2": 1.0, "c2": 1.0}, abs=1e-4)
    assert own.limit == pytest.approx({"a1": 0.5, "c1": 0.5, "a2": 1.0, "c2": 1.0}, abs=1e-3)
    judgement = judge(own.readings, threshold=0.97, law=None)
    assert judgement.verdict == "approximation"
    assert [text for text in judgement.reasons if text.startswith("NO: c1 at Δt = 0.5: 0.5 ±")]
    rows = midpoint_formula.evidence.against_step
    assert rows is not None
    assert [row.step for row in rows] == [0.5 / 2**k for k in range(8)]
    assert rows[0].constants["c1"] < 0.45


def test_the_stencils_of_network_and_formula_agree(midpoint_formula: Formula) -> None:
    own = network(spec(), first=FLUX, second=FLUX)
    check = compare_stencils(own, midpoint_formula, spec())
    assert check.agree
    assert check.difference < 1e-5
    other = compare_stencils(network(spec(), first=FLUX, second=FLUX, share=-3.0), midpoint_formula, spec())
    assert other.agree is False


def refusal(first: tuple[int, int], second: tuple[int, int], share: float = 0.5) -> str:
    with pytest.raises(DiscoveryError) as caught:
        _distillation.read_formula(network(spec(), first=first, second=second, share=share), spec=spec(), tell=silent)
    return str(caught.value)


def test_a_first_order_step_in_two_layers_does_nothing_over_two_hops() -> None:
    said = refusal(FLUX, FLUX, share=0.0)
    assert said.startswith("stage distil: the stencil is not a product of powers of A_PN, delta_PN")
    assert "\n" not in said


def test_two_different_messages_are_not_the_flux_repeated() -> None:
    """The first message lacks δ: over one hop the second one counts, over two hops both do."""
    said = refusal(AREA, FLUX)
    assert said.startswith("stage distil: the stencil over two hops, ")
    assert said.endswith("is not that of the flux applied twice")


def test_laws_that_are_no_whole_powers_or_no_flux_are_refused() -> None:
    good = {"A": 1.02, "delta": -0.97, "V": -1.1, "dt": 0.99}
    assert _distillation.flux_of_law(PowerLaw(1.0, good, 0.0, 0.0), HEAT) == symbol("alpha") * symbol("A") / symbol(
        "delta"
    )
    area = {**good, "delta": 0.1}
    assert _distillation.flux_of_law(PowerLaw(1.0, area, 0.0, 0.0), HEAT) == symbol("alpha") * symbol("A")
    for name, power, line in (
        ("A", 0.6, "has exponents that are not integers; train longer"),
        ("A", np.nan, "has exponents that are not integers; train longer"),
        ("V", 0.0, "is not Δt/V times a flux"),
        ("dt", 2.0, "is not Δt/V times a flux"),
    ):
        with pytest.raises(DiscoveryError, match=line):
            _distillation.flux_of_law(PowerLaw(1.0, {**good, name: power}, 0.0, 0.0), HEAT)


def test_each_power_over_two_hops_has_to_be_that_of_two_fluxes() -> None:
    near = PowerLaw(1.0, {"A": 1.0, "delta": -1.0, "V": -1.0, "dt": 1.0}, 0.0, 0.0)
    far = {"A_PN": 1.0, "delta_PN": -1.0, "A_NQ": 1.0, "delta_NQ": -1.0, "V_P": -1.0, "V_N": -1.0, "dt": 2.0}
    assert _distillation.is_repeated(near, PowerLaw(0.5, far, 0.0, 0.0))
    for name, power in far.items():
        assert not _distillation.is_repeated(near, PowerLaw(0.5, {**far, name: power + 1.0}, 0.0, 0.0))


@pytest.mark.slow
def test_a_network_whose_second_message_is_no_flux_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A (h_N − h_P) without δ in the second layer: over one hop the powers are whole, over two hops they differ."""
    own = spec()
    stacked = jax.tree.map(
        lambda leaf: leaf[None] if eqx.is_array(leaf) else leaf, network(own, first=FLUX, second=AREA)
    )
    done = Trained(stacked, (own.name,), 1, 1, (0,), (False,), stopped_early=False)
    monkeypatch.setattr(_distillation, "train", lambda *_, **__: done)
    # Both draw problems to measure a loss, which plays no part here.
    monkeypatch.setattr(_distillation, "choose_member", lambda *_: 0)
    monkeypatch.setattr(_distillation, "measure_network_loss", lambda *_: 1e-3)
    document = discover(own, tmp_path / "run").document
    assert document["recovered"] is False
    (reason,) = document["reasons"]
    assert reason.startswith("stage distil: the stencil over two hops, ")
    assert reason.endswith("is not that of the flux applied twice")
    assert not (tmp_path / "run" / "scheme.json").exists()
    assert not (tmp_path / "run" / "candidate.json").exists()
    assert (tmp_path / "run" / "report.html").exists()


def searched(monkeypatch: pytest.MonkeyPatch, *formulas: sp.Expr, units: bool) -> Front:
    """What a search keeps when its engine finds these formulas."""
    names = ("T_N", "T_P", "A", "delta")
    rng = np.random.default_rng(0)
    each = Sampled("z1", "message", 0, tabulate(names, rng.random((20, 4)), rng.random(20)), tuple(map(symbol, names)))

    def search_front(engine: object, table: object, search: object, *, seed: int) -> Front:
        assert table is each.table
        return Front(tuple(Candidate(formula, k + 1, 0.1 / (k + 1)) for k, formula in enumerate(formulas)))

    monkeypatch.setattr(_distillation, "search_front", search_front)
    return _distillation.search_module(each, recipe.override(recipe.load("first-order"), {"search.units": units}))


T_N, T_P, A, delta = map(symbol, ("T_N", "T_P", "A", "delta"))
MIXED, PURE = T_N + A, A / delta * (T_N - T_P)


def test_candidates_that_mix_units_are_dropped_if_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def kept(units: bool) -> list[sp.Expr]:
        return [each.expression for each in searched(monkeypatch, MIXED, PURE, T_P - delta, units=units)]

    assert kept(units=True) == [PURE]
    assert kept(units=False) == [MIXED, PURE, T_P - delta]


def test_if_every_candidate_mixes_units_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        DiscoveryError, match=r"no formula found for 'z1' is consistent in its units; set search\.units = false"
    ):
        searched(monkeypatch, MIXED, T_P - delta, units=True)


def test_an_mlp_that_has_learned_nothing_is_named() -> None:
    rng = np.random.default_rng(0)
    flat = Sampled("z1", "message", 0, tabulate(("A",), rng.random((20, 1)), np.full(20, 0.25)), (A,))
    with pytest.raises(DiscoveryError, match=r"message 'z1' has the same value for all inputs \(0\.25\)"):
        _distillation.search_module(flat, recipe.load("first-order"))
