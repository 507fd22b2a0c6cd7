"""How often steady fields exceed the range of their values at walls, with linear fluxes and with monotone blends."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from fluxforge.skew._flux import Constants, FluxOperator, face_weights, solve_steady
from fluxforge.skew._monotone import solve_monotone
from fluxforge.skew._objective import ASPECT, SteadyProblem
from fluxforge.skew._problems import FAMILIES, make_mesh, manufactured_problems, random_meshes

# Other seed than those of the search, its validation and the other rows of the benchmark.
_SEED, _PROBLEMS, _N, _ROUND_OFF = 5 * 10**6, 4, 8, 1e-9


@dataclass(frozen=True)
class RangeRow:
    """The number of stretched meshes on which a steady field exceeds the range of its values at walls.

    `overshoot` is the largest excess. If `blended`, the flux is blended with the two-point flux where needed.
    `unconverged` iterations were stopped early: their fields are in the range, but their balances hold approximately.
    """

    scheme: str
    blended: bool
    meshes: int
    violated: int
    overshoot: float
    unconverged: int


@dataclass(frozen=True)
class BlendRow:
    """The RMS L2 error of a blend over steady problems, relative to that of its linear flux."""

    family: str
    scheme: str
    cells: int
    error_ratio: float


def range_rows(laws: Mapping[str, Constants], meshes: int) -> list[RangeRow]:
    """Measure steady fields without source on stretched meshes, with half of the walls at 1 and the others at 0."""
    operators = [FluxOperator(each.graph) for each in random_meshes(meshes, _N, _SEED, ASPECT)]
    rows = []
    with threadpool_limits(1, "blas"):
        for name, constants in laws.items():
            for blended in (False, True):
                overshoots = [_overshoot(operator, constants, blended) for operator in operators]
                beyond = [each for each, _ in overshoots]
                left, ended = sum(each > _ROUND_OFF for each in beyond), sum(converged for _, converged in overshoots)
                rows.append(RangeRow(name, blended, meshes, left, max(beyond), meshes - ended))
    return rows


def _overshoot(operator: FluxOperator, constants: Constants, blended: bool) -> tuple[float, bool]:
    graph, psi = operator.graph, face_weights(constants, operator.invariants)
    at = graph.centre[graph.interior :, 0]
    walls, nothing = (at > np.median(at)).astype(float), np.zeros(graph.cells)
    if blended:
        solved = solve_monotone(operator, psi, nothing, walls)
        T, converged = solved.cells, solved.converged
    else:
        T, converged = solve_steady(operator.matrix(psi), graph, nothing[:, None], walls[:, None]), True
    return max(0.0, float(T.max()) - 1.0, -float(T.min())), converged


def blend_rows(laws: Mapping[str, Constants], sizes: Sequence[int]) -> list[BlendRow]:
    """Measure the error of blends for smooth fields: manufactured steady problems on every family of meshes."""
    rows = []
    fields = manufactured_problems(_SEED, _PROBLEMS)
    for family in FAMILIES:
        for n in sizes:
            case = SteadyProblem(make_mesh(family, n, _SEED), fields)
            for name, constants in laws.items():
                psi = face_weights(constants, case.operator.invariants)
                solved = [
                    solve_monotone(case.operator, psi, case.source[:, k], case.walls[:, k]).cells
                    for k in range(_PROBLEMS)
                ]
                squares = case.graph.V @ (np.stack(solved, axis=1) - case.exact) ** 2
                linear = case.graph.V.sum() * case.errors(constants) ** 2
                rows.append(BlendRow(family, name, case.graph.cells, float(np.sqrt(squares.sum() / linear.sum()))))
    return rows
