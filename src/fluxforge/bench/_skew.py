"""`fluxforge bench skew`: discovered fluxes, compared with the corrected and two-point flux and a hybrid scheme."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np

from fluxforge.bench._hybrid import solve_hybrid
from fluxforge.bench._skew_conductivity import ConductivityRow, bench_conductivities
from fluxforge.bench._skew_range import BlendRow, RangeRow, blend_rows, range_rows
from fluxforge.scheme._damped import SKEWED
from fluxforge.skew._flux import CORRECTED, Constants, FluxOperator, balances_of
from fluxforge.skew._objective import SteadyProblem
from fluxforge.skew._problems import FAMILIES, make_mesh, manufactured_problems

SIZES: Mapping[str, tuple[int, ...]] = MappingProxyType({"quick": (6, 12, 24, 48), "default": (9, 18, 36, 72)})
CONDUCTIVITY_SIZES: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {"quick": (4, 8, 16, 24), "default": (6, 12, 24, 48)}
)
# Other seeds than those of the search and of its validation.
_SEED, _MESHES, _PROBLEMS = 3 * 10**6, 2, 4
RANGE_MESHES: Mapping[str, int] = MappingProxyType({"quick": 8, "default": 32})
BLEND_SIZES: Mapping[str, tuple[int, ...]] = MappingProxyType({"quick": (12,), "default": (12, 24, 48)})
HYBRID, BLENDED = "hybrid", "skew-error"
LAWS = {name: Constants(*map(float, damping.constants)) for name, damping in SKEWED.items()}


@dataclass(frozen=True)
class SkewRow:
    """A scheme on meshes of one family and size: unknowns, RMS of the L2 errors, order from the next coarser size."""

    family: str
    scheme: str
    cells: int
    unknowns: int
    error: float
    order: float | None


@dataclass(frozen=True)
class SkewComparison:
    """The error of a scheme on the finest meshes of a family over that of the hybrid and of the corrected scheme.

    For equal unknowns, the error is extrapolated from the last two sizes, as a power of the number of unknowns.
    """

    family: str
    scheme: str
    equal_cells: float
    equal_unknowns: float
    over_corrected: float


@dataclass(frozen=True)
class SkewBench:
    """The rows, comparisons derived from them, rows for a tensor and for a jump of the conductivity, and rows of blends
    whose fields keep the range of the values at the walls.
    """

    size: str
    rows: tuple[SkewRow, ...]
    compared: tuple[SkewComparison, ...]
    conductivities: tuple[ConductivityRow, ...]
    ranges: tuple[RangeRow, ...]
    blends: tuple[BlendRow, ...]

    def document(self) -> dict[str, Any]:
        """The JSON document."""
        parts = ("rows", "compared", "conductivities", "ranges", "blends")
        return {"skew": {"size": self.size, **{name: [asdict(each) for each in getattr(self, name)] for name in parts}}}


def _schemes() -> dict[str, Callable[[FluxOperator], Any]]:
    schemes: dict[str, Callable[[FluxOperator], Any]] = {
        "two-point": lambda operator: operator.plain_matrix(),
        "corrected": balances_of(CORRECTED),
    }
    return schemes | {name: balances_of(constants) for name, constants in LAWS.items()}


def _errors(cases: Sequence[SteadyProblem], scheme: str) -> tuple[float, int]:
    """The root mean square of the errors of a scheme over cases, and its number of unknowns on the first mesh."""
    if scheme != HYBRID:
        balances = _schemes()[scheme]
        errors = [case.errors_of(balances(case.operator)) for case in cases]
        return float(np.sqrt(np.mean(np.square(errors)))), cases[0].graph.cells
    squares, unknowns = [], 0
    for case in cases:
        V = case.graph.V
        for k in range(case.exact.shape[1]):
            solved = solve_hybrid(case.graph, case.source[:, k], case.walls[:, k])
            squares.append(V @ (solved.cells - case.exact[:, k]) ** 2 / V.sum())
            unknowns = unknowns or solved.unknowns
    return float(np.sqrt(np.mean(squares))), unknowns


def _family_rows(family: str, sizes: Sequence[int]) -> list[SkewRow]:
    fields = manufactured_problems(_SEED, _PROBLEMS)
    names = [*_schemes(), HYBRID]
    rows: dict[str, list[SkewRow]] = {name: [] for name in names}
    for n in sizes:
        cases = [SteadyProblem(make_mesh(family, n, _SEED + k), fields) for k in range(_MESHES)]
        for name in names:
            error, unknowns = _errors(cases, name)
            cells, before = cases[0].graph.cells, rows[name][-1:]
            order = [np.log(row.error / error) / (0.5 * np.log(cells / row.cells)) for row in before]
            rows[name].append(SkewRow(family, name, cells, unknowns, error, float(order[0]) if order else None))
    return [row for each in rows.values() for row in each]


def _compare(rows: Sequence[SkewRow], family: str) -> list[SkewComparison]:
    chosen = {
        name: [row for row in rows if (row.family, row.scheme) == (family, name)] for name in [*_schemes(), HYBRID]
    }
    finest = chosen[HYBRID][-1]
    comparisons = []
    for name, own in chosen.items():
        ((coarse, last),) = list(pairwise(own))[-1:]
        slope = np.log(last.error / coarse.error) / np.log(last.unknowns / coarse.unknowns)
        moved = last.error * (finest.unknowns / last.unknowns) ** slope
        comparisons.append(
            SkewComparison(
                family,
                name,
                last.error / finest.error,
                float(moved / finest.error),
                last.error / chosen["corrected"][-1].error,
            )
        )
    return comparisons


def bench_skew(*, size: str = "default", progress: Callable[[str], None] | None = None) -> SkewBench:
    """Solve manufactured steady problems on every family of meshes, with the sizes SIZES[size]."""
    rows: list[SkewRow] = []
    for family in FAMILIES:
        if progress is not None:
            progress(family)
        rows += _family_rows(family, SIZES[size])
    compared = tuple(each for family in FAMILIES for each in _compare(rows, family))
    if progress is not None:
        progress("tensor and jump")
    conductivities = tuple(bench_conductivities(CONDUCTIVITY_SIZES[size]))
    if progress is not None:
        progress("ranges of the walls")
    laws = {"corrected": CORRECTED, BLENDED: LAWS[BLENDED]}
    ranges, blends = range_rows(laws, RANGE_MESHES[size]), blend_rows(laws, BLEND_SIZES[size])
    return SkewBench(size, tuple(rows), compared, conductivities, tuple(ranges), tuple(blends))
