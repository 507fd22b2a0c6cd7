"""From a network near a sparse solution to the sparse solution."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fluxforge.data import Problem, problem
from fluxforge.errors import InputError
from fluxforge.gnn import Network
from fluxforge.gnn.exact import nonzeros, sparse_network
from fluxforge.graph import pad_graph
from fluxforge.mesh import Dirichlet, Neumann, dual, fourier_step, jittered, unit_volume
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import network_stepper
from fluxforge.train import Reduced, sparsify
from strategies import noise, whole_step

WIDTH = 4


@cache
def problems() -> Problem:
    """A few states on a mesh whose cells have two or three neighbours, and walls that are held."""
    around = pad_graph(unit_volume(dual(jittered(3, 0.3, seed=2), Dirichlet("x - y")))[0])
    unit = jnp.ones(())
    fields = [[jnp.asarray(noise(18, seed)) for seed in (k, k + 9)] for k in range(4)]
    posed = [problem(around, T, S, dt=0.1 * unit, parameters={"alpha": 1.5 * unit}) for T, S in fields]
    return jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *posed)


def shaken(seed: int, size: float) -> Network:
    """The lemma's network with every parameter moved, the idle ones included."""
    rng = np.random.default_rng(seed)
    exact = sparse_network(2, 2, WIDTH)
    return jax.tree.map(lambda leaf: leaf + size * jnp.asarray(rng.standard_normal(leaf.shape)), exact)


@cache
def reduced() -> Reduced:
    (reduction,) = sparsify([shaken(0, 0.02)], problems())
    return reduction


def test_a_network_near_the_lemmas_is_brought_back_to_it() -> None:
    """Exact on the data, with no more parameters than 2m(L+1) + 4 = 16."""
    assert reduced().exact
    assert reduced().training_defect <= 1e-9
    assert reduced().nonzeros <= 16
    assert nonzeros(reduced().network) == reduced().nonzeros


def test_the_sparse_network_is_the_first_order_scheme_on_meshes_it_has_not_seen() -> None:
    graph = dual(jittered(4, 0.3, seed=1), {"left": Neumann(0.4)})
    T, dt = noise(graph.cells), 0.4 * fourier_step(graph)
    stepped = np.asarray(network_stepper(reduced().network, graph, dt)(T))
    assert np.abs(stepped - whole_step(BUILT_IN["euler"], graph, dt)(T)).max() <= 1e-7


def test_what_merging_alone_did_is_told() -> None:
    assert len(reduced().units) == 4
    assert all(2 <= units <= 2 * WIDTH and units % 2 == 0 for units in reduced().units)
    assert 0.0 <= reduced().merged_defect < 0.2


def test_no_networks_are_refused() -> None:
    with pytest.raises(InputError, match="there are no networks to reduce"):
        sparsify([], problems())
