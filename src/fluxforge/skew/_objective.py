"""Scores of a choice of ψ relative to the corrected flux on the same meshes: error, longest step, coercivity."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from fluxforge._types import CellField
from fluxforge.mesh._build import dual
from fluxforge.mesh._mesh import Mesh
from fluxforge.skew._flux import (
    CORRECTED,
    Constants,
    FluxOperator,
    balances_of,
    coercivity,
    largest_step,
    solve_steady,
)
from fluxforge.skew._problems import SCALAR, Conductivity, Field, Stretched, random_meshes

RANDOM = ("jittered", "regular", "irregular", "quadrilaterals")
"""The families of which several meshes are taken, since the scores of single ones scatter."""
ASPECT = 30.0
"""The largest aspect ratio of the random meshes."""


def cell_means(mesh: Mesh, values: np.ndarray) -> CellField:
    """Means over triangles, or over both triangles of a quadrilateral, from values at the middles of their sides."""
    corners = mesh.points[mesh.cells]
    assert values.shape[:2] == (len(corners), _middles(corners).shape[1])
    if corners.shape[1] == 3:
        return np.asarray(values.mean(axis=1))
    a, b = (_area(corners[:, list(three)]) for three in ((0, 1, 2), (0, 2, 3)))
    return np.asarray((a * values[:, :3].mean(axis=1) + b * values[:, 3:].mean(axis=1)) / (a + b))


def _area(corners: np.ndarray) -> np.ndarray:
    (ax, ay), (bx, by) = (corners[:, k].T - corners[:, 0].T for k in (1, 2))
    return np.asarray(0.5 * (ax * by - ay * bx))


def _middles(corners: np.ndarray) -> np.ndarray:
    """The middles of the sides of a triangle, or of both triangles of a quadrilateral: cells × points × 2."""
    threes = ((0, 1, 2),) if corners.shape[1] == 3 else ((0, 1, 2), (0, 2, 3))
    return np.concatenate([0.5 * (corners[:, list(t)] + corners[:, list(np.roll(t, -1))]) for t in threes], axis=1)


class SteadyProblem:
    """Manufactured steady problems on one mesh: T at the walls, the mean of −∇·K∇T in the cells."""

    def __init__(self, mesh: Mesh, fields: Sequence[Field], conductivity: Conductivity = SCALAR) -> None:
        self.graph = dual(mesh)
        self.operator = FluxOperator(self.graph, conductivity)
        middles = _middles(mesh.points[mesh.cells])
        self.source = np.stack([-cell_means(mesh, each.laplacian(middles)) for each in fields], axis=1)
        self.walls = np.stack([each.value(self.graph.centre[self.graph.interior :]) for each in fields], axis=1)
        self.exact = np.stack([each.value(self.graph.x) for each in fields], axis=1)
        self.kinds = np.array([each.kind for each in fields])

    def errors(self, constants: Constants) -> np.ndarray:
        """L2 error of each problem with a choice of ψ, the cells weighted by volume."""
        return self.errors_of(balances_of(constants)(self.operator))

    def errors_of(self, matrix: csr_array) -> np.ndarray:
        """L2 error of each problem for given balances of the cells."""
        off = solve_steady(matrix, self.graph, self.source, self.walls) - self.exact
        return np.asarray(np.sqrt(self.graph.V @ off**2 / self.graph.V.sum()))

    @cached_property
    def corrected_errors(self) -> np.ndarray:
        """Errors of the corrected flux."""
        return self.errors(CORRECTED)


class Spectrum:
    """One mesh on which the longest stable step is computed."""

    def __init__(self, mesh: Mesh, conductivity: Conductivity = SCALAR) -> None:
        self.operator = FluxOperator(dual(mesh), conductivity)

    def step(self, constants: Constants) -> float:
        """The longest stable step of forward Euler with a choice of ψ."""
        return largest_step(balances_of(constants)(self.operator), self.operator.graph)

    @cached_property
    def corrected_step(self) -> float:
        """The longest stable step with the corrected flux."""
        return self.step(CORRECTED)


@dataclass(frozen=True)
class Scores:
    """Error and longest stable step over those of the corrected flux, by family; the least coercivity.

    An error is the geometric mean over the problems of one kind and the meshes of a family, under the name of both
    (`squares, waves`); a step is the least over the meshes of a family.
    """

    error: Mapping[str, float]
    step: Mapping[str, float]
    coercivity: float

    @property
    def mean_error(self) -> float:
        """The geometric mean over the families and both kinds of problems."""
        return float(np.exp(np.mean(np.log(list(self.error.values())))))

    @property
    def mean_step(self) -> float:
        """The geometric mean over the families; 0 where a scheme is unstable at every step."""
        steps = np.array(list(self.step.values()))
        return float(np.exp(np.mean(np.log(steps)))) if (steps > 0).all() else 0.0


def _mean_ratios(constants: Constants, cases: Sequence[SteadyProblem]) -> dict[str, float]:
    """For each kind of problems, the geometric mean of error over corrected flux's error, over problems and meshes."""
    logs = np.concatenate([np.log(each.errors(constants) / each.corrected_errors) for each in cases])
    kinds = np.concatenate([each.kinds for each in cases])
    return {str(kind): float(np.exp(np.mean(logs[kinds == kind]))) for kind in np.unique(kinds)}


class Judge:
    """The meshes and problems on which choices of ψ are scored; parts that do not depend on ψ are computed once."""

    def __init__(
        self,
        *,
        n: int,
        seeds: Sequence[int],
        problems: int,
        stretched: int,
        seed: int,
        conductivity: Conductivity = SCALAR,
    ) -> None:
        # Errors scatter from problem to problem: every mesh has its own problems, a family of one mesh the problems of
        # all.
        fields = {k: conductivity.problems((seed, k), problems) for k in seeds}
        whole = {seeds[0]: tuple(each for group in fields.values() for each in group)}
        chosen = {family: fields if family in RANDOM else whole for family in conductivity.families}
        # Eigenvalues cost the cube of the cells, and the longest step and the coercivity hardly depend on their number.
        small, smallest = min(8, max(4, 2 * n // 3)), min(6, max(4, n // 2))
        self.cases = {
            f: [SteadyProblem(conductivity.mesh(f, n, k), group, conductivity) for k, group in many.items()]
            for f, many in chosen.items()
        }
        self.spectra = {
            f: [Spectrum(conductivity.mesh(f, small, k), conductivity) for k in many] for f, many in chosen.items()
        }
        self.stretched: tuple[tuple[Stretched, FluxOperator], ...] = tuple(
            (each, FluxOperator(each.graph, conductivity.on_random_meshes))
            for each in random_meshes(stretched, smallest, seed, ASPECT)
        )

    def __call__(self, constants: Constants) -> Scores:
        """The scores of the choice of ψ with these constants."""
        error = {
            f"{family}, {kind}": ratio
            for family, cases in self.cases.items()
            for kind, ratio in _mean_ratios(constants, cases).items()
        }
        step = {f: min(each.step(constants) / each.corrected_step for each in many) for f, many in self.spectra.items()}
        return Scores(error, step, min(self.coercivities(constants)))

    def coercivities(self, constants: Constants) -> list[float]:
        """The coercivity on every stretched mesh."""
        balances = balances_of(constants)
        return [coercivity(balances(operator), operator.graph, each.width) for each, operator in self.stretched]
