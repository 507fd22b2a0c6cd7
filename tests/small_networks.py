"""Small networks whose weights NumPy draws, which takes no compilation, and what loops make of them."""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from fluxforge import recipe
from fluxforge.gnn import MLP, AbstractMLP, GatedMLP, Linear, Network, build
from fluxforge.mesh import DualGraph


def spec(**options: object) -> recipe.Network:
    """A recipe's network section, small unless told otherwise."""
    return recipe.Network(**{"width": 3, "depth": 2, **options})  # type: ignore[arg-type]


def random_network(of: recipe.Network, seed: int = 0) -> Network:
    """The network of a section, every entry uniform in ±1."""
    rng = np.random.default_rng(seed)
    shape = eqx.filter_eval_shape(build, of, jax.random.key(0))
    return jax.tree.map(lambda leaf: jnp.asarray(rng.uniform(-1.0, 1.0, leaf.shape)), shape)


class Numbers(NamedTuple):
    """A state, a source, a step and a diffusivity."""

    T: np.ndarray
    S: np.ndarray
    dt: float
    alpha: float


def affine(layer: Linear, x: np.ndarray) -> np.ndarray:
    """W x + b."""
    return np.asarray(layer.weight) @ x + np.asarray(layer.bias)


def of_row(f: AbstractMLP, x: np.ndarray) -> np.ndarray:
    """An MLP of one row, as the paper writes it."""
    if isinstance(f, GatedMLP):
        for gate in f.layers:
            left = affine(gate.left, x)
            gelu = np.array([0.5 * a * (1.0 + math.erf(a / math.sqrt(2.0))) for a in left])
            x = affine(gate.final, gelu * affine(gate.right, x))
        return x
    assert isinstance(f, MLP)
    for layer in f.layers[:-1]:
        x = np.maximum(affine(layer, x), 0.0)
    return affine(f.layers[-1], x)


class Plain:
    """A network's step by loops over cells and slots, on the arrays of a dual graph.

    `rows` are those every MLP was given, layer by layer, messages before update.
    """

    def __init__(self, of: recipe.Network, network: Network, graph: DualGraph, numbers: Numbers) -> None:
        self.of, self.network, self.graph, self.numbers = of, network, graph, numbers
        self.states: list[np.ndarray] = [numbers.T]
        self.rows: list[list[np.ndarray]] = []

    def step(self) -> np.ndarray:
        """T' of every cell."""
        for number in range(self.of.layers):
            sums = np.zeros((self.graph.cells, 0))
            for which in range(self.of.hops):
                self.rows.append([])
                own = [self.sums(which, cell, number) for cell in range(self.graph.cells)]
                sums = np.concatenate([sums, own], axis=1)
            self.rows.append([])
            states = np.array([self.updated(cell, z, number) for cell, z in enumerate(sums)])
            self.states = list(states.T)
        return self.states[0]

    def given(self, f: AbstractMLP, row: list[float]) -> np.ndarray:
        """An MLP of a row, which is written down."""
        self.rows[-1].append(np.array(row))
        return of_row(f, np.array(row))

    def shown(self, field: np.ndarray, node: int, *, temperature: bool = True) -> float:
        """What a node shows of a field: g or nothing at Dirichlet ghosts, the owner's at Neumann ghosts."""
        g = self.graph
        if node < g.cells:
            return field[node]
        k = node - g.cells
        face = g.interior + k
        if g.neumann[k]:
            return field[g.owner[face]] + (g.value[k] * g.delta[face] if temperature else 0.0)
        return g.value[k] if temperature else 0.0

    def volume(self, node: int) -> float:
        """V of a node."""
        g = self.graph
        if node < g.cells:
            return g.V[node]
        k = node - g.cells
        return g.V[g.owner[g.interior + k]] if g.neumann[k] else math.inf

    def edges(self, cell: int) -> list[tuple[int, float, float]]:
        """The node across each face of a cell, A and δ."""
        g = self.graph
        used = np.flatnonzero(g.slot_mask[cell])
        return [(int(g.slot_node[cell, k]), g.A[g.slot_face[cell, k]], g.delta[g.slot_face[cell, k]]) for k in used]

    def sums(self, which: int, cell: int, number: int) -> np.ndarray:
        """What a cell gathers over one hop or two."""
        f = self.network.layers[number].messages[which].f
        rows = (self.near if which == 0 else self.rings if self.of.two_hop == "ring" else self.paths)(cell)
        sent = [self.given(f, row) for row in rows]
        if not sent:
            return np.zeros(self.of.message_width)
        total = {"sum": np.sum, "mean": np.mean, "min": np.min, "max": np.max}[self.of.aggregate]
        return np.asarray(total(np.array(sent), axis=0))

    def near(self, cell: int) -> list[list[float]]:
        """α A/δ (T_N − T_P), or h_N, h_P, A, δ."""
        T, alpha = self.numbers.T, self.numbers.alpha
        if self.of.features == "simplified":
            return [[alpha * A / delta * (self.shown(T, N) - T[cell])] for N, A, delta in self.edges(cell)]
        return [
            [*(self.shown(h, N) for h in self.states), *(h[cell] for h in self.states), A, delta]
            for N, A, delta in self.edges(cell)
        ]

    def paths(self, cell: int) -> list[list[float]]:
        """T, S at P, N, Q; V_P, V_N, 1/V_Q; Δt; A and δ of both legs; one row per path."""
        T, S, dt, _ = self.numbers
        return [
            [
                *(T[cell], T[N], self.shown(T, Q), S[cell], S[N], self.shown(S, Q, temperature=False)),
                *(self.graph.V[cell], self.graph.V[N], 1.0 / self.volume(Q), dt, A, delta, far_A, far_delta),
            ]
            for N, A, delta in self.edges(cell)
            if self.graph.cells > N
            for Q, far_A, far_delta in self.edges(N)
        ]

    def rings(self, cell: int) -> list[list[float]]:
        """The mean of the rows of the paths that lead to each cell at distance two."""
        beside = {N for N, _, _ in self.edges(cell)}
        ends = [Q for N, _, _ in self.edges(cell) if self.graph.cells > N for Q, _, _ in self.edges(N)]
        kept: dict[int, list[list[float]]] = {}
        for Q, row in zip(ends, self.paths(cell), strict=True):
            if self.graph.cells > Q and cell != Q and Q not in beside:
                kept.setdefault(Q, []).append(row)
        return [np.mean(rows, axis=0).tolist() for rows in kept.values()]

    def updated(self, cell: int, z: np.ndarray, number: int) -> np.ndarray:
        """f of the cell's features, or T + Δt/V f."""
        T, S, dt, _ = self.numbers
        V = self.graph.V[cell]
        if self.of.features == "simplified":
            row = [*(h[cell] for h in self.states), dt * S[cell], *(dt / V * z)]
        else:
            row = [T[cell], S[cell], dt, V, *(h[cell] for h in self.states if number), *z]
        f = self.given(self.network.layers[number].update.f, row)
        return f if self.of.update == "direct" else T[cell] + dt / V * f
