"""A chosen law on meshes and problems that the search did not use: orders, errors, steps, coercivity, extrema."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fluxforge.mesh._build import dual
from fluxforge.skew._flux import (
    CORRECTED,
    Balances,
    FluxOperator,
    balances_of,
    coercivity,
    largest_step,
    solve_steady,
)
from fluxforge.skew._objective import ASPECT, SteadyProblem
from fluxforge.skew._problems import SCALAR, SINES, WAVES, Conductivity, Stretched, random_meshes

# Far from the seeds of the search; it was drawn after the search, its margins and SIZES had been settled with other
# seeds. No choice may be made with it: if the search is changed because of its results, another seed has to be drawn.
_VALIDATION_SEED = 380_889_514
# The distance between the seeds of two meshes and of their problems, so that runs with neighbouring seeds share none.
_STRIDE = 10_007
SIZES = (9, 18, 36, 72)
_SPECTRUM = 9
_FIXED_FAMILIES = ("squares", "right")


@dataclass(frozen=True)
class HeldOut:
    """The data on which a law is validated, for each family: `meshes` of every size, each with `problems` of its own.

    The two kinds of problems alternate. On the finest meshes only `finest` problems each, two or more, are solved:
    orders are fitted to the errors of these alone.
    """

    meshes: int = 8
    problems: int = 192
    finest: int = 32
    sizes: tuple[int, ...] = SIZES


@dataclass(frozen=True)
class KindScore:
    """A scheme compared with the corrected flux, on one family of meshes with problems of one kind.

    - `errors`: root mean squares of L2 errors over the problems, coarse to fine, and `order`, fitted to them;
    - `error_ratio`: error over that of the corrected flux on the same mesh with the same problem, as a geometric mean
      over problems, meshes and sizes; `ratio_error` is its standard error, from the scatter between groups of problems
      that share a mesh; `share_below`, of the problems, has a smaller error than the corrected flux.
    """

    kind: str
    errors: tuple[float, ...]
    order: float
    error_ratio: float
    ratio_error: float
    share_below: float


@dataclass(frozen=True)
class FamilyScore:
    """A scheme compared with the corrected flux, on one family of meshes by kind of problems.

    `worst` is the kind with the largest error over the corrected flux's; `step_ratio` is the least over the meshes of
    the stable step over that of the corrected flux.
    """

    family: str
    cells: tuple[int, ...]
    kinds: tuple[KindScore, ...]
    step_ratio: float

    @property
    def worst(self) -> KindScore:
        """The kind with the largest error ratio."""
        return max(self.kinds, key=lambda each: each.error_ratio)

    @property
    def order(self) -> float:
        """The lower order of the two kinds."""
        return min(each.order for each in self.kinds)

    @property
    def errors(self) -> tuple[float, ...]:
        """Root mean squares of the errors over the kinds, coarse to fine."""
        return tuple(float(each) for each in np.sqrt(np.mean(np.square([each.errors for each in self.kinds]), axis=0)))


def fit_order(cells: Sequence[int], errors: Sequence[float]) -> float:
    """The slope of log error over log cells^(−½), by least squares."""
    return float(np.polyfit(-0.5 * np.log(cells), np.log(errors), 1)[0])


def held_out_cases(
    family: str, n: int, seed: int, size: HeldOut, conductivity: Conductivity = SCALAR
) -> list[SteadyProblem]:
    """Meshes of one size, each with problems of its own; for a family of one mesh, that mesh with all problems."""
    count = size.finest if n == max(size.sizes) else size.problems
    first = [_VALIDATION_SEED + seed + k * _STRIDE for k in range(size.meshes)]
    fields = [conductivity.problems(each, size.problems)[:count] for each in first]
    if family in _FIXED_FAMILIES:
        first, fields = first[:1], [tuple(each for group in fields for each in group)]
    groups = zip(first, fields, strict=True)
    return [SteadyProblem(conductivity.mesh(family, n, each), problems, conductivity) for each, problems in groups]


def score_family(
    family: str,
    laws: Mapping[str, Balances],
    *,
    seed: int,
    size: HeldOut | None = None,
    conductivity: Conductivity = SCALAR,
) -> dict[str, FamilyScore]:
    """Steady errors and longest stable steps of laws on the held-out problems and meshes of a family."""
    size = size or HeldOut()
    cells: list[int] = []
    errors: dict[tuple[str, str], list[float]] = {(name, kind): [] for name in laws for kind in (WAVES, SINES)}
    logs: dict[tuple[str, str], list[np.ndarray]] = {key: [] for key in errors}
    for n in size.sizes:
        cases = held_out_cases(family, n, seed, size, conductivity)
        cells.append(cases[0].graph.cells)
        base = np.concatenate([case.corrected_errors for case in cases]).reshape(size.meshes, -1)
        # The kinds alternate in the same way on every mesh.
        kinds = np.concatenate([case.kinds for case in cases]).reshape(base.shape)[0]
        for name, balances in laws.items():
            law_errors = np.concatenate([case.errors_of(balances(case.operator)) for case in cases]).reshape(base.shape)
            for kind in (WAVES, SINES):
                finest = law_errors[:, : size.finest][:, kinds[: size.finest] == kind]
                errors[name, kind].append(float(np.sqrt(np.mean(finest**2))))
                logs[name, kind].append(np.log(law_errors / base)[:, kinds == kind])
    steps = _step_ratios(family, laws, seed, size.meshes, conductivity)

    def score(name: str, kind: str) -> KindScore:
        by_size = errors[name, kind]
        return KindScore(kind, tuple(by_size), fit_order(cells, by_size), *summarise_ratios(logs[name, kind]))

    return {
        name: FamilyScore(family, tuple(cells), (score(name, WAVES), score(name, SINES)), steps[name]) for name in laws
    }


def summarise_ratios(logs: Sequence[np.ndarray]) -> tuple[float, float, float]:
    """The mean ratio, its standard error and the share of problems below 1, from logarithms (meshes × problems).

    Problems are the same at every size, so the groups of one mesh are independent, but the sizes of a group are not.
    """
    groups = np.mean([each.mean(axis=1) for each in logs], axis=0)
    ratio = float(np.exp(groups.mean()))
    error = float(groups.std(ddof=1) / np.sqrt(len(groups))) if len(groups) > 1 else np.inf
    below = np.mean(np.concatenate([each.ravel() for each in logs]) < 0.0)
    return ratio, ratio * error, float(below)


def _step_ratios(
    family: str, laws: Mapping[str, Balances], seed: int, meshes: int, conductivity: Conductivity
) -> dict[str, float]:
    least = dict.fromkeys(laws, np.inf)
    for k in range(1 if family in _FIXED_FAMILIES else meshes):
        mesh = conductivity.mesh(family, _SPECTRUM, _VALIDATION_SEED + seed + k * _STRIDE)
        operator = FluxOperator(dual(mesh), conductivity)
        base = largest_step(balances_of(CORRECTED)(operator), operator.graph)
        for name, balances in laws.items():
            least[name] = min(least[name], largest_step(balances(operator), operator.graph) / base)
    return least


def least_coercivity(
    balances: Balances, *, seed: int, count: int = 96, n: int = 6, conductivity: Conductivity = SCALAR
) -> float:
    """The smallest coercivity over the families, and over random meshes with aspect ratios up to 30."""
    conductivity = conductivity.on_random_meshes
    meshes = [conductivity.mesh(family, n, _VALIDATION_SEED + seed) for family in conductivity.families]
    squares = [coercivity(balances(o), o.graph, 1.0) for o in (FluxOperator(dual(m), conductivity) for m in meshes)]
    chosen = _stretched_operators(count, n, seed, conductivity)
    return min(*squares, *(coercivity(balances(o), o.graph, each.width) for each, o in chosen))


# Cached, since laws are validated one after the other on the same meshes: one set for coercivity, one for extrema.
@lru_cache(maxsize=2)
def _stretched_operators(
    count: int, n: int, seed: int, conductivity: Conductivity
) -> tuple[tuple[Stretched, FluxOperator], ...]:
    chosen = random_meshes(count, n, seed + _VALIDATION_SEED, ASPECT)
    return tuple((each, FluxOperator(each.graph, conductivity.on_random_meshes)) for each in chosen)


@dataclass(frozen=True)
class Extremes:
    """The number of stretched meshes on which the steady field leaves the walls' range [0, 1], and by how much."""

    meshes: int
    violated: int
    worst: float


def measure_extremes(
    balances: Balances, *, seed: int, count: int = 64, n: int = 8, conductivity: Conductivity = SCALAR
) -> Extremes:
    """Extrema of steady fields without a source on stretched meshes, one half of the walls at 1 and the other at 0."""
    worst = []
    for _, operator in _stretched_operators(count, n, seed, conductivity):
        graph = operator.graph
        at = graph.centre[graph.interior :, 0]
        walls = (at > np.median(at)).astype(float)[:, None]
        T = solve_steady(balances(operator), graph, np.zeros((graph.cells, 1)), walls)
        worst.append(max(0.0, float(T.max()) - 1.0, -float(T.min())))
    # Up to 1e-9 is round-off of the solve.
    return Extremes(count, sum(each > 1e-9 for each in worst), max(worst))
