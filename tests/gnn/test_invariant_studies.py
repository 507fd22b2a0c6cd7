"""Messages that a small network learns with an invariant as input, and does not learn without it."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest

from carried_networks import CARRIED, posed, random_weights
from fluxforge.gnn import GatedMLP, inputs
from fluxforge.graph import pad_graph
from fluxforge.mesh import Dirichlet, DualGraph, dual, jittered, resolve, unit_volume
from fluxforge.train import levenberg_marquardt
from small_networks import spec


class Edges(NamedTuple):
    """The inputs of a network's messages on every edge of a graph, and the messages it should send."""

    x: jax.Array
    wanted: jax.Array


def error_after_training(train: Edges, test: Edges, *, steps: int, key: int = 1) -> float:
    """rms error over rms, on edges it was not shown."""
    mean, spread = (np.asarray(of(np.asarray(train.x), axis=0))[None, :] for of in (np.mean, np.std))
    size = np.sqrt(np.mean(np.square(train.wanted)))
    shown, unseen = (Edges((each.x - mean) / spread, each.wanted / size) for each in (train, test))
    f = GatedMLP.create(train.x.shape[1], 1, depth=2, width=6, key=jax.random.key(key))
    start, rebuilt = jax.flatten_util.ravel_pytree(f)

    @jax.jit
    def fitted(start: jax.Array, shown: Edges) -> jax.Array:
        return levenberg_marquardt(lambda weights: rebuilt(weights)(shown.x)[:, 0] - shown.wanted, start, steps=steps)

    off = np.asarray(rebuilt(fitted(start, shown))(unseen.x)[:, 0] - unseen.wanted)
    return float(np.linalg.norm(off) / np.linalg.norm(unseen.wanted))


class Case(NamedTuple):
    """A graph with Dirichlet walls, a field on it, a velocity per face, and the message of every slot."""

    graph: DualGraph
    T: np.ndarray
    a: np.ndarray
    wanted: np.ndarray

    @property
    def across(self) -> np.ndarray:
        """T_N."""
        return np.concatenate([self.T, self.graph.value])[self.graph.slot_node]


def edges_of(invariants: tuple[str, ...], cases: list[Case]) -> Edges:
    network = random_weights(spec(invariants=invariants), CARRIED, 2)
    tables, wanted = [], []
    for graph, T, a, sent in cases:
        fields = resolve(CARRIED, graph, {"a": a, "K": np.eye(2).tolist()})
        tables.append(inputs(network, posed(pad_graph(graph, parameters=fields), T))[0])
        wanted.append(sent[graph.slot_mask])
    return Edges(jnp.concatenate(tables), jnp.asarray(np.concatenate(wanted)))


def meshes(seeds: range) -> list[tuple[np.random.Generator, DualGraph]]:
    """Skewed triangles, in units of the mean cell volume, as networks see them."""
    graphs = ((np.random.default_rng(seed), dual(jittered(6, 0.3, seed), Dirichlet(0.0))) for seed in seeds)
    return [(rng, unit_volume(graph)[0]) for rng, graph in graphs]


def upwind(rng: np.random.Generator, graph: DualGraph) -> Case:
    """Random fields, walls and velocities; the message is −A (max(a·n, 0) u_P + min(a·n, 0) u_N)."""
    graph = eqx.tree_at(lambda g: g.value, graph, rng.uniform(-1.0, 1.0, graph.ghosts))
    T, a = rng.uniform(-1.0, 1.0, graph.cells), rng.uniform(-1.0, 1.0, graph.n.shape)
    speed = np.einsum("fi,fi->f", a, graph.n)[graph.slot_face] * graph.slot_sign
    case = Case(graph, T, a, np.zeros(0))
    carried = np.maximum(speed, 0.0) * T[:, None] + np.minimum(speed, 0.0) * case.across
    return case._replace(wanted=-graph.A[graph.slot_face] * carried)


@pytest.mark.slow
def test_upwinding_is_learned_with_a_n_and_not_without() -> None:
    shown, unseen = ([upwind(*each) for each in meshes(seeds)] for seeds in (range(5), range(5, 8)))
    with_it, without = (
        error_after_training(edges_of(names, shown), edges_of(names, unseen), steps=40) for names in (("a_n",), ())
    )
    # a·n is independent of u and A and as often positive as negative: without it the best guess is its mean,
    # −A m (u_P − u_N) with m = E max(a·n, 0). What that leaves is the floor.
    parts = [(case.graph.A[case.graph.slot_face] * (case.across - case.T[:, None]), case.wanted) for case in unseen]
    guess, wanted = (np.concatenate([part[k].ravel() for part in parts]) for k in (0, 1))
    floor = np.linalg.norm(wanted - (guess @ wanted) / (guess @ guess) * guess) / np.linalg.norm(wanted)
    print(f"upwind: with a_n {with_it:.4f}, without {without:.4f}, floor {floor:.4f}")
    assert with_it < 0.1
    # Both are measured on a thousand edges, which tell them to a few per cent.
    assert without > 0.95 * floor > 5 * with_it


def linear(rng: np.random.Generator, graph: DualGraph) -> Case:
    """T = b·x, walls included, for a random b; the message is the exact flux A b·n."""
    b, middle = rng.normal(size=2), graph.x.mean(axis=0)
    graph = eqx.tree_at(lambda g: g.value, graph, (graph.centre[graph.interior :] - middle) @ b)
    along = (graph.n @ b)[graph.slot_face] * graph.slot_sign
    return Case(graph, (graph.x - middle) @ b, np.zeros(graph.n.shape), graph.A[graph.slot_face] * along)


@pytest.mark.slow
def test_the_flux_on_skewed_meshes_is_learned_with_the_correction_and_not_without() -> None:
    shown, unseen = ([linear(*each) for each in meshes(seeds)] for seeds in (range(8), range(8, 12)))
    with_it, lengths, neither = (
        error_after_training(edges_of(names, shown), edges_of(names, unseen), steps=60)
        for names in (("d_n", "d_t", "correction"), ("d_n", "d_t"), ())
    )
    # T_N − T_P = b·d says nothing of b across d, and b has no preferred direction: without gradients the best guess of
    # b·n is (d·n/δ²) b·d. What that leaves is the floor.
    legs = [(case, case.graph.legs()) for case in unseen]
    guesses = [leg["A"] * leg["d_n"] / leg["delta"] ** 2 * (case.across - case.T[:, None]) for case, leg in legs]
    guess, wanted = (np.concatenate([part.ravel() for part in own]) for own in (guesses, [c.wanted for c in unseen]))
    floor = np.linalg.norm(wanted - guess) / np.linalg.norm(wanted)
    print(f"skewed: corrected {with_it:.4f}, d_n and d_t {lengths:.4f}, neither {neither:.4f}, floor {floor:.4f}")
    assert with_it < 0.1
    assert min(lengths, neither) > 0.95 * floor > 0.2
