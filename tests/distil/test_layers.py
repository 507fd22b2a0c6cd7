"""Families of schemes with every number free: with the right numbers they are the built-in ones."""

from fractions import Fraction
from functools import cache

import jax
import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from fluxforge.distil import Free, layer_stages, two_hop
from fluxforge.graph import PaddedGraph, evaluate_stages, pad_graph
from fluxforge.mesh import dual
from fluxforge.scheme import Hop, Scheme, Stage, find, symbol
from strategies import BOUNDARIES, SIDED, few, noise

FLUX = symbol("alpha") * symbol("A") / symbol("delta")
MIDPOINT = {"a1": 0.5, "c1": 0.5, "a2": 1.0, "c2": 1.0}
TWO_HOP = {"d": 1.0, "e": 0.5, "b": 0.5, "a2": 1.0}
# The triangles of "jittered" are among the cells of "mixed".
every_graph = pytest.mark.parametrize(
    ("mesh", "boundary"),
    [
        pytest.param(mesh, boundary, marks=[pytest.mark.slow] if mesh == "jittered" else [])
        for mesh in SIDED
        for boundary in BOUNDARIES
    ],
)


@cache
def graph(mesh: str, boundary: str) -> PaddedGraph:
    return pad_graph(dual(SIDED[mesh], BOUNDARIES[boundary]), (Hop.EDGE, Hop.PATH))


def after(stages: tuple[Stage, ...], around: PaddedGraph, seed: int = 0, dt: float = 0.004) -> np.ndarray:
    cells = len(around.V)
    T, S = (jax.numpy.asarray(noise(cells, seed + k)) for k in (1, 2))
    return np.asarray(evaluate_stages(stages, around, T, S, parameters={"dt": dt, "alpha": 1.7}))


def gap(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(one - other).max() / np.abs(other).max())


@every_graph
def test_two_layers_with_the_right_constants_are_the_midpoint_rule(mesh: str, boundary: str) -> None:
    around = graph(mesh, boundary)
    free = layer_stages(FLUX, MIDPOINT, 2)
    assert free.values == MIDPOINT
    assert gap(after(free.fill_constants(MIDPOINT), around), after(find("midpoint").stages, around)) < 1e-13
    for name in MIDPOINT:
        other = {**MIDPOINT, name: MIDPOINT[name] + 0.1}
        assert gap(after(free.fill_constants(other), around), after(find("midpoint").stages, around)) > 1e-6


@every_graph
def test_one_layer_with_ones_is_the_first_order_scheme(mesh: str, boundary: str) -> None:
    around = graph(mesh, boundary)
    ones = {"a1": 1.0, "c1": 1.0}
    assert (
        gap(after(layer_stages(FLUX, ones, 1).fill_constants(ones), around), after(find("euler").stages, around))
        < 1e-14
    )


@every_graph
def test_two_hops_with_the_right_constants_are_the_built_in_ones(mesh: str, boundary: str) -> None:
    around = graph(mesh, boundary)
    free = two_hop(FLUX, MIDPOINT)
    assert free.values == TWO_HOP
    stepped = after(free.fill_constants(TWO_HOP), around)
    assert gap(stepped, after(find("two-hop").stages, around)) < 1e-13
    assert gap(stepped, after(find("midpoint").stages, around)) < 1e-13
    for name in TWO_HOP:
        other = {**TWO_HOP, name: TWO_HOP[name] + 0.1}
        assert gap(after(free.fill_constants(other), around), after(find("two-hop").stages, around)) > 1e-6


constants = st.floats(0.2, 1.5)


@few(8)
@given(st.fixed_dictionaries(dict.fromkeys(MIDPOINT, constants)), st.integers(0, 99))
def test_two_hops_start_from_what_two_layers_do(start: dict[str, float], seed: int) -> None:
    """d = c₂, e = c₁c₂, b = a₁c₂: the same step, written over edges or over paths."""
    around = graph("mixed", "both")
    over_paths = two_hop(FLUX, start)
    one = after(over_paths.fill_constants(over_paths.values), around, seed)
    other = after(layer_stages(FLUX, start, 2).fill_constants(start), around, seed)
    assert gap(one, other) < 1e-12


def test_the_families_are_schemes_with_exact_numbers() -> None:
    exact = {name: sp.Rational(*Fraction(value).as_integer_ratio()) for name, value in MIDPOINT.items()}
    scheme = Scheme("found", layer_stages(FLUX, MIDPOINT, 2).fill_constants(exact))
    assert scheme.hops() == {Hop.EDGE}
    half, whole = (stage.outputs for stage in scheme.stages)
    dt, S, T, V = map(symbol, ("dt", "S", "T", "V"))
    assert sp.expand(half["h1"].expression - (T + dt * S / 2 + dt / V * symbol("z1") / 2)) == 0
    assert sp.expand(whole["T_new"].expression - (T + dt * S + dt / V * symbol("z2"))) == 0
    wide = {name: sp.Rational(*Fraction(value).as_integer_ratio()) for name, value in TWO_HOP.items()}
    assert Scheme("wide", two_hop(FLUX, MIDPOINT).fill_constants(wide)).hops() == {Hop.EDGE, Hop.PATH}


def test_as_many_layers_as_asked_for_each_reading_the_one_before() -> None:
    start = {f"{letter}{k}": float(k) for k in (1, 2, 3) for letter in "ac"}
    free = layer_stages(FLUX, start, 3)
    assert isinstance(free, Free)
    assert dict(free.values) == start
    read = [next(iter(stage.messages.values())).expression.free_symbols for stage in free.stages]
    assert [sorted(str(s) for s in each if str(s).endswith("_N")) for each in read] == [["T_N"], ["h1_N"], ["h2_N"]]
    assert [list(stage.outputs) for stage in free.stages] == [["h1"], ["h2"], ["T_new"]]
