"""Stencils as powers of geometry: known laws are found exactly, and what is no law is refused."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxforge import recipe
from fluxforge.data import Problem, ensemble, heat, meshes, unseen_problems
from fluxforge.distil import far_stencil, geometry, power_law, stencil
from fluxforge.distil._stencil import Step
from fluxforge.errors import DiscoveryError
from fluxforge.graph import evaluate_stages
from fluxforge.scheme import Hop, find
from strategies import few

ALPHA = 1.7
powers = st.floats(-3.0, 3.0)


@cache
def problems() -> Problem:
    """Meshes of different sizes, each with its own step."""
    generated = meshes(recipe.Meshes(meshes=4, cells=(20, 36), engine="builtin"), 0)
    around = ensemble(generated, (Hop.EDGE, Hop.PATH))
    return unseen_problems(around, 0, fourier=jnp.array([0.1, 0.2, 0.35, 0.5]), model=heat(ALPHA), field="mixed")


def step_of(name: str) -> Step:
    stages = find(name).stages

    def step(p: Problem) -> jax.Array:
        return evaluate_stages(stages, p.graph, p.T, p.S, parameters=p.step_parameters)

    return step


def columns(seed: int, rows: int = 60) -> dict[str, np.ndarray]:
    return dict(zip("xy", np.random.default_rng(seed).uniform(0.3, 3.0, (2, rows)), strict=True))


@few(30)
@given(st.floats(0.01, 100.0), st.booleans(), powers, powers, st.integers(0, 99))
def test_a_power_law_is_found_exactly(factor: float, negative: bool, a: float, b: float, seed: int) -> None:
    own = columns(seed)
    factor = -factor if negative else factor
    law = power_law(factor * own["x"] ** a * own["y"] ** b, own)
    assert law.factor == pytest.approx(factor, rel=1e-9)
    assert law.exponents == pytest.approx({"x": a, "y": b}, abs=1e-9)
    assert law.scatter < 1e-10
    assert law.wrong_signs == 0.0


def test_scatter_and_wrong_signs_are_told() -> None:
    own = columns(0, rows=4000)
    rng = np.random.default_rng(1)
    values = 2.0 * own["x"] / own["y"] * np.exp(0.1 * rng.standard_normal(4000))
    values[:400] *= -1.0
    law = power_law(values, own)
    assert law.wrong_signs == pytest.approx(0.1, abs=1e-12)
    assert law.scatter == pytest.approx(0.1, rel=0.1)
    assert law.exponents == pytest.approx({"x": 1.0, "y": -1.0}, abs=0.03)


def test_large_entries_count_more_than_small_ones() -> None:
    """An error of one size everywhere spoils the logarithm of small entries only."""
    own = columns(2, rows=4000)
    exact = own["x"] ** 2 / own["y"] ** 2
    law = power_law(exact + 0.02 * np.random.default_rng(3).standard_normal(4000), own)
    assert law.exponents == pytest.approx({"x": 2.0, "y": -2.0}, abs=4e-3)


@pytest.mark.parametrize("values", [np.zeros(60), np.full(60, np.nan), np.r_[1.0, np.zeros(59)]])
def test_a_stencil_without_entries_has_no_law(values: np.ndarray) -> None:
    with pytest.raises(DiscoveryError, match=r"not a product of powers of x, y: [01] of its 60 entries"):
        power_law(values, columns(0))
    with pytest.raises(DiscoveryError, match="0 of its 0 entries"):
        power_law(np.zeros(0), columns(0, rows=0))


def test_the_first_order_stencil_is_the_flux_over_the_volume_times_the_step() -> None:
    values, columns = stencil(step_of("euler"), problems()), geometry(problems())
    np.testing.assert_allclose(
        values, ALPHA * columns["A"] / columns["delta"] / columns["V"] * columns["dt"], rtol=1e-12
    )
    law = power_law(values, columns)
    assert law.exponents == pytest.approx({"A": 1.0, "delta": -1.0, "V": -1.0, "dt": 1.0}, abs=1e-9)
    assert law.factor == pytest.approx(ALPHA, rel=1e-9)


def test_edges_to_the_boundary_and_padding_are_left_out() -> None:
    around = problems().graph
    inner = np.asarray(around.hops["edge"].mask & (around.hops["edge"].ends["N"] < around.V.shape[1]))
    assert inner.sum() < np.asarray(around.hops["edge"].mask).sum() < inner.size
    assert len(stencil(step_of("euler"), problems())) == inner.sum()
    assert not bool(around.live.all())


def test_the_midpoint_rule_repeats_the_flux_over_two_hops() -> None:
    values, columns = far_stencil(step_of("midpoint"), problems())
    assert len(values) > 200
    law = power_law(values, columns)
    wanted = {"A_PN": 1, "delta_PN": -1, "A_NQ": 1, "delta_NQ": -1, "V_P": -1, "V_N": -1, "dt": 2}
    assert law.exponents == pytest.approx(wanted, abs=1e-9)
    assert law.factor == pytest.approx(ALPHA**2 / 2, rel=1e-9)
    assert law.scatter < 1e-9


def test_only_pairs_joined_by_a_single_path_are_looked_at() -> None:
    """Counted by loops over the edges of every mesh."""
    edge = problems().graph.hops["edge"]
    cells, count = problems().graph.V.shape[1], 0
    for mask, ends in zip(np.asarray(edge.mask), np.asarray(edge.ends["N"]), strict=True):
        beside = [[int(n) for n in ends[c][mask[c]] if n < cells] for c in range(cells)]
        for cell in range(cells):
            ways = [q for n in beside[cell] for q in beside[n]]
            count += sum(ways.count(q) == 1 for q in set(ways) - {cell, *beside[cell]})
    assert len(far_stencil(step_of("midpoint"), problems())[0]) == count


def test_the_first_order_scheme_does_nothing_over_two_hops() -> None:
    values, columns = far_stencil(step_of("euler"), problems())
    assert np.all(values == 0.0)
    with pytest.raises(DiscoveryError, match="not a product of powers of A_PN"):
        power_law(values, columns)
