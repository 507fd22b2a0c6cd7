"""Meshes in units of their mean cell: the same graph, and the same heat equation in another unit of time."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given

from fluxforge.mesh import Dirichlet, DualGraph, Neumann, Robin, close_walls, dual, fourier_step, resolve, unit_volume
from fluxforge.pde import HEAT
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import generator
from strategies import BOUNDARIES, MESHES, few, moved, scales

GRAPH = dual(moved(MESHES["mixed"], scale=3.0, shift=(1.0, 2.0)), BOUNDARIES["both"])
LENGTHS = ("x", "A", "d", "delta", "centre")
KEPT = (
    "owner",
    "neighbour",
    "n",
    "slot_face",
    "slot_node",
    "slot_sign",
    "slot_mask",
    "tag",
    "neumann",
    "tags",
    "origin",
    "region",
    "regions",
    "inflow",
    "follow",
    "wrapped",
)


def test_the_mean_volume_is_one_and_every_length_is_divided_by_the_same() -> None:
    scaled, length = unit_volume(GRAPH)
    assert length == pytest.approx(np.sqrt(9.0 / GRAPH.cells), rel=1e-14)
    assert scaled.V.mean() == pytest.approx(1.0, rel=1e-14)
    assert np.allclose(scaled.V * length**2, GRAPH.V, rtol=1e-14)
    for name in LENGTHS:
        assert np.allclose(getattr(scaled, name) * length, getattr(GRAPH, name), rtol=1e-14, atol=1e-15)
    for name in KEPT:
        assert np.array_equal(getattr(scaled, name), getattr(GRAPH, name))
    assert {field.name for field in fields(DualGraph)} == {"V", "value", "transfer", *LENGTHS, *KEPT}


def test_the_step_behind_a_robin_wall_is_the_same_in_either_unit() -> None:
    graph = dual(moved(MESHES["mixed"], scale=3.0, shift=(1.0, 2.0)), Robin(h=0.7, outside=2.0))
    scaled, length = unit_volume(graph)
    here, there = (close_walls(each, HEAT, resolve(HEAT, each, {"alpha": 1.3})) for each in (graph, scaled))
    # Products of a few numbers near 1, in another order.
    assert np.allclose(here.follow, there.follow, rtol=1e-14)
    assert fourier_step(graph, 1.3) == pytest.approx(fourier_step(scaled, 1.3) * length**2, rel=1e-13)


def test_temperatures_are_kept_and_slopes_are_per_the_new_length() -> None:
    scaled, length = unit_volume(GRAPH)
    held = GRAPH.neumann
    assert held.any()
    assert not held.all()
    assert np.array_equal(scaled.value[~held], GRAPH.value[~held])
    assert np.allclose(scaled.value[held], GRAPH.value[held] * length, rtol=1e-15)
    before, after = (g.value * g.delta[g.interior :] for g in (GRAPH, scaled))
    assert np.allclose(before[held], after[held], rtol=1e-14)


@pytest.mark.parametrize("name", ["euler", "corrected"])
def test_the_heat_equation_keeps_its_form(name: str) -> None:
    """ℓ² (L T + r) is what the scaled graph's own L and r say, boundary data included."""
    scaled, length = unit_volume(GRAPH)
    before, after = (generator(BUILT_IN[name], graph, parameters={"alpha": 0.7}) for graph in (GRAPH, scaled))
    assert abs(after.M - length**2 * before.M).max() <= 1e-12 * abs(after.M).max()
    assert np.abs(after.b - length**2 * before.b).max() <= 1e-12 * np.abs(after.b).max()
    assert fourier_step(scaled) == pytest.approx(fourier_step(GRAPH) / length**2, rel=1e-14)


def same(one: DualGraph, other: DualGraph) -> bool:
    names = ("V", "A", "d", "delta", "n", "value")
    return all(np.allclose(getattr(one, name), getattr(other, name), rtol=1e-11, atol=1e-11) for name in names)


def test_a_mesh_in_its_own_units_stays_as_it_is() -> None:
    scaled, _ = unit_volume(GRAPH)
    again, length = unit_volume(scaled)
    assert length == pytest.approx(1.0, rel=1e-14)
    assert same(again, scaled)


@few(10)
@given(scale=scales)
def test_a_mesh_of_any_size_looks_the_same(scale: float) -> None:
    conditions = {"left": Dirichlet(2.0), "right": Neumann()}
    graphs = (dual(moved(MESHES["mixed"], scale=s), conditions) for s in (1.0, scale))
    (one, of_one), (other, of_other) = (unit_volume(graph) for graph in graphs)
    assert of_other == pytest.approx(scale * of_one, rel=1e-13)
    assert same(one, other)
