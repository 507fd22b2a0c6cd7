"""What a step does, as a series in its own operator: the built-in schemes have the coefficients they are known by."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxforge import recipe
from fluxforge.data import Problem, ensemble, heat, meshes, unseen_problems
from fluxforge.distil import Series, layer_stages, series
from fluxforge.graph import evaluate_stages
from fluxforge.mesh import Conditions, Dirichlet, Neumann
from fluxforge.scheme import Hop, find, symbol
from strategies import few

ALPHA = 1.7
FLUX = symbol("alpha") * symbol("A") / symbol("delta")
# One side held and three insulated or heated: neither kind of ghost may enter a column that it does not belong to.
HEATED: Conditions = {"left": Dirichlet(), "right": Neumann(0.7), "bottom": Neumann(), "top": Neumann(-0.4)}


@cache
def problems() -> Problem:
    generated = meshes(recipe.Meshes(meshes=3, cells=(20, 36), engine="builtin"), 0)
    around = ensemble(generated, (Hop.EDGE, Hop.PATH, Hop.RING), boundary=HEATED)
    return unseen_problems(around, 0, fourier=0.5, model=heat(ALPHA), field="mixed")


@cache
def of(name: str, order: int) -> Series:
    stages = find(name).stages
    return series(
        lambda p: evaluate_stages(stages, p.graph, p.T, p.S, parameters=p.step_parameters),
        problems(),
        order,
    )


KNOWN = {
    "euler": ([1], [1]),
    "midpoint": ([1, 1 / 2], [1, 1 / 2]),
    "midpoint-printed": ([1, 1 / 2], [1, 1]),
    "two-hop": ([1, 1 / 2], [1, 1 / 2]),
    "rk4": ([1, 1 / 2, 1 / 6, 1 / 24], [1, 1 / 2, 1 / 6, 1 / 24]),
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_built_in_scheme_has_its_known_coefficients(name: str) -> None:
    temperature, source = KNOWN[name]
    coefficients = of(name, len(temperature))
    np.testing.assert_allclose(coefficients.temperature, temperature, rtol=0, atol=1e-9)
    np.testing.assert_allclose(coefficients.source, source, rtol=0, atol=1e-9)
    assert coefficients.unexplained < 1e-11


def test_terms_that_a_scheme_does_not_have_are_zero() -> None:
    coefficients = of("euler", 2)
    np.testing.assert_allclose(coefficients.temperature, [1.0, 0.0], atol=1e-9)
    np.testing.assert_allclose(coefficients.source, [1.0, 0.0], atol=1e-9)


def test_nested_constants_are_those_of_the_layers() -> None:
    assert of("midpoint", 2).nested == pytest.approx({"a1": 0.5, "c1": 0.5, "a2": 1.0, "c2": 1.0}, abs=1e-9)
    assert of("midpoint-printed", 2).nested == pytest.approx({"a1": 1.0, "c1": 0.5, "a2": 1.0, "c2": 1.0}, abs=1e-9)
    wanted = {f"{letter}{k}": 1 / (5 - k) for k in (1, 2, 3, 4) for letter in "ac"}
    assert of("rk4", 4).nested == pytest.approx(wanted, abs=1e-9)


def test_what_is_no_series_in_the_operator_stays_unexplained() -> None:
    assert of("two-hop-printed", 2).unexplained > 0.1
    # A series that is too short leaves the rest: here the two last terms of RK4.
    assert of("rk4", 2).unexplained > 1e-3


def test_values_in_padding_do_not_change_the_coefficients() -> None:
    """Noise in cells that do not exist changes nothing."""
    plain = problems()
    assert not bool(plain.graph.live.all())
    dirty = [jnp.where(plain.graph.live, field, 1e6) for field in (plain.T, plain.S)]
    spoilt = Problem(plain.graph, dirty[0], dirty[1], plain.dt, plain.parameters, plain.answer)
    stages = find("midpoint").stages

    def step(p: Problem) -> jax.Array:
        after = evaluate_stages(stages, p.graph, p.T, p.S, parameters=p.step_parameters)
        return jnp.where(p.graph.live, after, -1e9)

    coefficients = series(step, spoilt, 2)
    np.testing.assert_allclose([*coefficients.temperature, *coefficients.source], [1.0, 0.5, 1.0, 0.5], atol=1e-9)


@few(4)
@given(st.integers(1, 3), st.data())
def test_the_constants_of_a_layered_scheme_are_found_again(layers: int, data: st.DataObject) -> None:
    values = {
        f"{letter}{k}": data.draw(st.floats(low, 1.5), label=f"{letter}{k}")
        for k in range(1, layers + 1)
        for letter, low in (("a", -1.0), ("c", 0.25))
    }
    stages = layer_stages(FLUX, values, layers).fill_constants(values)
    coefficients = series(
        lambda p: evaluate_stages(stages, p.graph, p.T, p.S, parameters=p.step_parameters),
        problems(),
        layers,
    )
    assert coefficients.nested == pytest.approx(values, abs=1e-8)
    assert coefficients.unexplained < 1e-11
