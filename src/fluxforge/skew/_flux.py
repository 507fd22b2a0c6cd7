"""Balances of the cells for fluxes F = A [ψ (T_N − T_P)/δ + ḡ·n − ψ ḡ·d/δ], as sparse matrices for any ψ on the faces.

ḡ is the mean of the least-squares gradients of the two cells, and that of the owner at a wall with a value. The matrix
is linear in ψ, so that everything but ψ is computed once per mesh. With a conductivity the flux is that of the built-in
schemes (`fluxforge.scheme`):

    F = A λ [ (T_N − T_P)/(d·n) + ḡ·(c/λ − d/(d·n)) + γ κ r/(d·n) ],   κ = ψ cos θ − 1,

with c = K n and λ = n·K n; across a jump λ is the harmonic mean, γ = 4 k_P k_N/(k_P + k_N)² (otherwise 1), the
gradients are fitted along vectors e with ∇T_P·e = T_N − T_P, and
r = (T_N − T_P) − (k_N ∇T_P·e_P + k_P ∇T_N·e_N)/(k_P + k_N).

The free coefficient is chosen among ψ = (c₀ + c₁ ν + c₂ ν²) (σ/cos θ + (1 − σ) cos θ).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import splu

from fluxforge._types import FaceField
from fluxforge.mesh._dual import DualGraph
from fluxforge.pde._equation import HEAT
from fluxforge.scheme._damped import Damping, damped_space
from fluxforge.scheme._integrate import integrate
from fluxforge.scheme._scheme import Scheme
from fluxforge.scheme._tableau import EULER
from fluxforge.skew._problems import SCALAR, Conductivity

DIGITS = 2
"""The number of digits to which the chosen constants are rounded."""
# Coefficients up to this size are round-off: their terms are left out of the text of a flux.
LEAST_SHOWN = 1e-12


class Constants(NamedTuple):
    """c₀ + c₁ ν + c₂ ν² at walls (ν = 0), between rectangles (ν = 1) and between triangles (ν = 4/3), and σ."""

    wall: float
    square: float
    triangle: float
    mix: float


CORRECTED = Constants(1.0, 1.0, 1.0, 1.0)
"""The over-relaxed correction: ψ = 1/cos θ."""
RANGES = {"wall": (0.8, 2.0), "square": (0.7, 1.35), "triangle": (0.6, 1.25), "mix": (0.3, 1.0)}
"""The ranges in which constants are searched."""


def least_squares_gradients(graph: DualGraph, near: np.ndarray, far: np.ndarray) -> tuple[csr_array, csr_array]:
    """∂/∂x and ∂/∂y in the cells from values at the nodes, cells first: weights 1/|e|², walls included.

    e are the vectors `near` from the owner's side and `far` from the neighbour's, which points the same way.
    """
    owner, other, inner = graph.owner, graph.neighbour, graph.interior
    here = np.concatenate([owner, other[:inner]])
    there = np.concatenate([other, owner[:inner]])
    d = np.concatenate([near, -far[:inner]])
    weight = 1.0 / (d**2).sum(axis=1)
    M = np.zeros((graph.cells, 2, 2))
    np.add.at(M, here, weight[:, None, None] * d[:, :, None] * d[:, None, :])
    c = weight[:, None] * np.einsum("eab,eb->ea", np.linalg.inv(M)[here], d)
    rows, columns = np.concatenate([here, here]), np.concatenate([there, here])
    shape = (graph.cells, graph.cells + graph.ghosts)
    x, y = (csr_array((np.concatenate([c[:, k], -c[:, k]]), (rows, columns)), shape) for k in range(2))
    return x, y


@dataclass(frozen=True)
class Invariants:
    """Numbers of a face that no rotation changes: cos θ = d·n/δ, ν = 2 A d·n/(V_P + V_N), and |V_P − V_N|/(V_P + V_N).

    At a wall with a value V_N = ∞: ν = 0 and the contrast is 1.
    """

    cosine: FaceField
    nu: FaceField
    contrast: FaceField


def face_invariants(graph: DualGraph, conductivity: Conductivity = SCALAR) -> Invariants:
    """The invariants of all faces."""
    normal = (graph.d * graph.n).sum(axis=1)
    ghosts = np.full(graph.ghosts, np.inf)
    V = np.concatenate([graph.V, ghosts])
    own, far = V[graph.owner], V[graph.neighbour]
    inside = np.isfinite(far)
    contrast = np.where(inside, np.abs(own - np.where(inside, far, 0.0)) / (own + np.where(inside, far, 1.0)), 1.0)
    delta, K = graph.delta, conductivity.tensor
    if conductivity.weighted and K is not None:
        delta = np.sqrt(_form(graph.d, np.linalg.inv(K)) * _form(graph.n, K))
    return Invariants(normal / delta, 2.0 * graph.A * normal / (own + far), contrast)


def face_weights(constants: Constants, invariants: Invariants) -> FaceField:
    """ψ on the faces."""
    c0, c1, c2 = _polynomial(constants)
    nu, cosine = invariants.nu, invariants.cosine
    return np.asarray((c0 + c1 * nu + c2 * nu**2) * (constants.mix / cosine + (1.0 - constants.mix) * cosine))


def _polynomial(constants: Constants) -> tuple[float, float, float]:
    rise, on = constants.square - constants.wall, constants.triangle - constants.wall
    c2 = 2.25 * on - 3.0 * rise
    return constants.wall, rise - c2, c2


def _form(vectors: np.ndarray, K: np.ndarray) -> np.ndarray:
    """v·K v of every row."""
    return np.asarray(np.einsum("fi,ij,fj->f", vectors, K, vectors))


class FluxOperator:
    """The fluxes of one mesh whose walls have values; `matrix(psi)` has a row per cell and a column per node."""

    def __init__(self, graph: DualGraph, conductivity: Conductivity = SCALAR) -> None:
        self.graph, self.conductivity = graph, conductivity
        self.invariants = face_invariants(graph, conductivity)
        faces, inner = len(graph.A), graph.interior
        nodes, number = graph.cells + graph.ghosts, np.arange(len(graph.A))
        ends = np.concatenate([graph.neighbour, graph.owner])
        signs = np.repeat([1.0, -1.0], faces)
        self.rise = csr_array((signs, (np.tile(number, 2), ends)), (faces, nodes))
        cells = np.concatenate([graph.owner, graph.neighbour[:inner]])
        # The gradient at a wall is its owner's.
        shown = np.where(number < inner, graph.neighbour, graph.owner)
        self.ends = tuple(
            csr_array((np.ones(faces), (number, end)), (faces, graph.cells)) for end in (graph.owner, shown)
        )
        k = conductivity.on_cells(graph)
        self.near, self.far = k[graph.owner], k[shown]
        gradients = least_squares_gradients(graph, *self._reach())
        self.gradient = tuple(0.5 * (self.ends[0] + self.ends[1]) @ each for each in gradients)
        self._gradients = gradients
        self.divergence = csr_array(
            (np.concatenate([np.ones(faces), -np.ones(inner)]), (cells, np.concatenate([number, number[:inner]]))),
            (graph.cells, faces),
        )

    def along(self, vectors: np.ndarray) -> csr_array:
        """ḡ·v on the faces, v having a row per face."""
        x, y = (diags_array(vectors[:, k]) @ self.gradient[k] for k in range(2))
        return csr_array(x + y)

    def _reach(self) -> tuple[np.ndarray, np.ndarray]:
        """The vectors e of the owners and of the neighbours, both pointing to the neighbour; d without a jump."""
        graph, (near, far) = self.graph, (self.near, self.far)
        normal = (graph.d * graph.n).sum(axis=1)[:, None] * graph.n
        beyond = self._neighbour_share[:, None]
        return (
            graph.d + ((near / far - 1.0)[:, None] * beyond) * normal,
            graph.d + ((far / near - 1.0)[:, None] * (1.0 - beyond)) * normal,
        )

    @cached_property
    def _neighbour_share(self) -> FaceField:
        """The share of d·n behind the face, taken as V_N/(V_P + V_N); 1 at walls."""
        V = np.concatenate([self.graph.V, np.full(self.graph.ghosts, np.inf)])
        return np.asarray(1.0 / (1.0 + V[self.graph.owner] / V[self.graph.neighbour]))

    def _rise_by_gradients(self) -> csr_array:
        """T_N − T_P on the faces by the gradients of the two cells."""
        weights = (self.far / (self.near + self.far), self.near / (self.near + self.far))
        parts = [
            diags_array(weight * e[:, axis]) @ end @ self._gradients[axis]
            for weight, e, end in zip(weights, self._reach(), self.ends, strict=True)
            for axis in range(2)
        ]
        return csr_array(sum(parts[1:], parts[0]))

    @cached_property
    def _parts(self) -> tuple[csr_array, FaceField, csr_array]:
        """The fluxes with κ = 0, the weights A λ γ/(d·n) of κ r, and r, all on the faces."""
        graph, K = self.graph, self.conductivity.tensor
        normal = (graph.d * graph.n).sum(axis=1)
        scale = (
            1.0 / ((1.0 - self._neighbour_share) / self.near + self._neighbour_share / self.far)
            if K is None
            else _form(graph.n, K)
        )
        conormal = scale[:, None] * graph.n if K is None else graph.n @ K
        two_point = diags_array(graph.A * scale / normal)
        across = diags_array(graph.A) @ self.along(conormal - (scale / normal)[:, None] * graph.d)
        jump = 4.0 * self.near * self.far / (self.near + self.far) ** 2
        rest = csr_array(self.rise - self._rise_by_gradients())
        return csr_array(two_point @ self.rise + across), graph.A * scale * jump / normal, rest

    @cached_property
    def _corrected_balances(self) -> csr_array:
        """The balances with κ = 0."""
        return csr_array(self.divergence @ self._parts[0])

    def _excess_fluxes(self, psi: FaceField) -> csr_array:
        _, weight, rest = self._parts
        return csr_array(diags_array(weight * (psi * self.invariants.cosine - 1.0)) @ rest)

    def matrix(self, psi: FaceField) -> csr_array:
        """Σ F of the cells from the values at the nodes."""
        return csr_array(self._corrected_balances + self.divergence @ self._excess_fluxes(psi))

    def face_fluxes(self, psi: FaceField) -> csr_array:
        """F into the owners from the values at the nodes: a row per face."""
        return csr_array(self._parts[0] + self._excess_fluxes(psi))

    def plain_fluxes(self) -> csr_array:
        """The two-point flux A (T_N − T_P)/δ into the owners, k = 1."""
        return csr_array(diags_array(self.graph.A / self.graph.delta) @ self.rise)

    def plain_matrix(self) -> csr_array:
        """Σ F of the cells with the two-point flux."""
        return csr_array(self.divergence @ self.plain_fluxes())


Balances = Callable[[FluxOperator], csr_array]


def balances_of(constants: Constants) -> Balances:
    """The balances of a law on any mesh."""
    return lambda operator: operator.matrix(face_weights(constants, operator.invariants))


def solve_steady(matrix: csr_array, graph: DualGraph, source: np.ndarray, walls: np.ndarray) -> np.ndarray:
    """T with Σ F + V S = 0 in every cell; T, sources and wall values have a column per problem."""
    system = splu(csr_array(-matrix[:, : graph.cells]).tocsc())
    return np.asarray(system.solve(graph.V[:, None] * source + matrix[:, graph.cells :] @ walls))


def largest_step(matrix: csr_array, graph: DualGraph) -> float:
    """The longest stable step of forward Euler: the least 2 Re μ/|μ|² over the eigenvalues μ of −Σ F/V.

    0 where an eigenvalue lies in the left half plane.
    """
    mu = np.linalg.eigvals(-matrix[:, : graph.cells].toarray() / graph.V[:, None])
    return max(0.0, float((2.0 * mu.real / np.abs(mu) ** 2).min()))


def coercivity(matrix: csr_array, graph: DualGraph, width: float) -> float:
    """The smallest eigenvalue of the symmetric part of −Σ F, for the mass V, over π²/w².

    π²/w² is the lowest eigenvalue of −Δ in a strip of width w. Above 0, the balances are coercive.
    """
    scale = 1.0 / np.sqrt(graph.V)
    W = -matrix[:, : graph.cells].toarray() * scale[:, None] * scale[None, :]
    return float(np.linalg.eigvalsh(0.5 * (W + W.T))[0]) * width**2 / np.pi**2


def to_damping(constants: Constants) -> Damping:
    """The constants as fractions of a power of ten, for a scheme."""
    return Damping(*(Fraction(round(value * 10**DIGITS), 10**DIGITS) for value in constants))


def law_text(constants: Constants) -> str:
    """ψ as a formula of ν and cos θ, like (1.08 + 0.185 ν − 0.195 ν²)(0.67/cos θ + 0.33 cos θ)."""
    sizes = _sum_text(zip(_polynomial(constants), ("", " ν", " ν²"), strict=True))
    angles = _sum_text(((constants.mix, "/cos θ"), (1.0 - constants.mix, " cos θ")))
    return f"{sizes}{angles}"


def _sum_text(terms: Iterable[tuple[float, str]]) -> str:
    """A sum of multiples in brackets, those that round to 0 left out."""
    text = " ".join(f"{value:+.4g}{of}" for value, of in terms if abs(value) > LEAST_SHOWN)
    text = text.replace("-", "− ").replace("+", "+ ")
    return f"({text.removeprefix('+ ') or '0'})"


@dataclass(frozen=True)
class ChosenLaw:
    """Constants with the name of the objective for which they were chosen."""

    objective: str
    constants: Constants

    def scheme(self, name: str) -> Scheme:
        """The scheme of the heat equation with this flux and forward Euler."""
        summary = f"flux for skewed meshes, its free coefficient chosen for {self.objective}"
        space = damped_space(name, summary, to_damping(self.constants))
        return integrate(EULER, HEAT, space, name=name)
