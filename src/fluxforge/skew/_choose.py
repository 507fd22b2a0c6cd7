"""Three choices of the free coefficient, each the best by one objective among those that meet the same conditions.

- `error`: the least geometric mean of steady errors over the families and kinds of problems;
- `step`: the largest geometric mean of stable steps;
- `coercivity`: the largest of the smallest eigenvalues of the symmetric part, on random meshes up to aspect 30; among
  equals, the least error.

Conditions for all: no error above that of the corrected flux, for either kind of problems on any family; no step below
0.86 of that flux's, and at least half of its coercivity. These leave a margin to the limits of the validation, 1.02 for
errors and 0.8 for steps, since the laws are validated on other meshes and problems; no constants were found with errors
below 0.99 for both kinds on all families. When candidates are compared, a missed condition costs a hundred times the
amount by which it is missed.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
from scipy.optimize import Bounds, NonlinearConstraint, minimize
from threadpoolctl import threadpool_limits

from fluxforge.skew._flux import CORRECTED, DIGITS, RANGES, ChosenLaw, Constants
from fluxforge.skew._objective import Scores

OBJECTIVES = ("error", "step", "coercivity")
MOST_ERROR, LEAST_STEP, LEAST_COERCIVITY = 1.0, 0.86, 0.5
_PENALTY = 100.0
# So small that coercivity decides wherever it differs by more than about a thousandth.
_ERROR_WEIGHT = 0.01
# The initial trust-region radii of the two runs of an objective, relative to the ranges; each starts from the best so
# far.
_RADII = (0.1, 0.03)
Tell = Callable[[str, int, int], None]
SPREAD = "spread"
"""The part of the search before the objectives: constants spread over their ranges."""


@dataclass(frozen=True)
class Trial:
    """Constants that were tried and their scores."""

    constants: Constants
    scores: Scores


@dataclass(frozen=True)
class SearchPart:
    """The trials that a finished part of the search added, in order, and the constants that it chose, if any."""

    trials: tuple[Trial, ...]
    chosen: Constants | None = None


class AbstractParts(ABC):
    """A store of the finished parts of a search, by name: `SPREAD` and the objectives."""

    @abstractmethod
    def read(self, name: str) -> SearchPart | None:
        """The part of that name, or None if it is not finished."""

    @abstractmethod
    def keep(self, name: str, part: SearchPart) -> None:
        """Store a finished part under its name."""


class NoParts(AbstractParts):
    """A store that keeps nothing."""

    def read(self, name: str) -> SearchPart | None:
        """No part is ever stored: None."""

    def keep(self, name: str, part: SearchPart) -> None:
        """The part is discarded."""


@dataclass(frozen=True)
class Choice:
    """The law that each objective chose, with its scores, and everything that was tried."""

    laws: Mapping[str, ChosenLaw]
    scores: Mapping[str, Scores]
    trials: tuple[Trial, ...]


def _margins(scores: Scores, corrected: Scores) -> np.ndarray:
    """The amount by which each condition is met; negative if it is missed."""
    errors, steps = (np.array(list(each.values())) for each in (scores.error, scores.step))
    coercive = scores.coercivity - LEAST_COERCIVITY * corrected.coercivity
    return np.concatenate([MOST_ERROR - errors, steps - LEAST_STEP, [coercive]])


def missed_by(scores: Scores, corrected: Scores) -> float:
    """The sum of the amounts by which conditions are missed; 0 if all hold."""
    missed = -_margins(scores, corrected)
    # Up to 1e-9 is round-off: the corrected flux itself lies on the border.
    return float(missed[missed > 1e-9].sum())


def _aim(objective: str, scores: Scores) -> float:
    """The value to minimise for an objective."""
    error = np.log(scores.mean_error)
    return float(
        {
            "error": error,
            "step": -np.log(max(scores.mean_step, 1e-12)),
            "coercivity": -scores.coercivity + _ERROR_WEIGHT * error,
        }[objective]
    )


def cost(objective: str, scores: Scores, corrected: Scores) -> float:
    """The value by which candidates are compared: the objective, with a penalty for missed conditions."""
    return _aim(objective, scores) + _PENALTY * missed_by(scores, corrected)


def choose_laws(
    judge: Callable[[Constants], Scores],
    *,
    evaluations: int,
    seed: int,
    parts: AbstractParts | None = None,
    tell: Tell = lambda *_: None,
) -> Choice:
    """Search the constants: a quarter of the evaluations spread over their ranges, the others from the best.

    The constants are rounded to two digits at the end. The same seed gives the same laws, even if the search was
    interrupted: parts that are stored in `parts` are not repeated. BLAS uses one thread, since the matrices are so
    small that several threads would mostly wait for each other.
    """
    search = _Search(judge, evaluations, parts or NoParts(), tell)
    with threadpool_limits(1, "blas"):
        search.finish_part(SPREAD, lambda: search.spread(seed))
        chosen = {name: search.finish_part(name, partial(search.refine, name)) for name in OBJECTIVES}
    laws = {name: ChosenLaw(name, constants) for name, constants in chosen.items() if constants is not None}
    scores = {name: search.tried[law.constants] for name, law in laws.items()}
    return Choice(laws, scores, tuple(Trial(*each) for each in search.tried.items()))


class _Search:
    """The trials of a search so far; a part continues from all trials of the parts before it."""

    def __init__(
        self, judge: Callable[[Constants], Scores], evaluations: int, parts: AbstractParts, tell: Tell
    ) -> None:
        self.judge, self.evaluations, self.parts, self.tell = judge, evaluations, parts, tell
        self.tried: dict[Constants, Scores] = {}
        self.low, self.high = (np.array([bounds[k] for bounds in RANGES.values()]) for k in (0, 1))

    def finish_part(self, name: str, run: Callable[[], Constants | None]) -> Constants | None:
        """Read a stored part, or run it and store it; returns the constants that it chose."""
        part = self.parts.read(name)
        if part is None:
            before = len(self.tried)
            chosen = run()
            part = SearchPart(tuple(Trial(*each) for each in list(self.tried.items())[before:]), chosen)
            self.parts.keep(name, part)
        self.tried |= {trial.constants: trial.scores for trial in part.trials}
        return part.chosen

    def score(self, values: np.ndarray) -> Scores:
        """The scores of constants, clipped to their ranges; those of constants tried before are not computed again."""
        constants = Constants(*(round(float(value), 6) for value in np.clip(values, self.low, self.high)))
        if constants not in self.tried:
            self.tried[constants] = self.judge(constants)
            self.tell("choosing the free coefficient", len(self.tried), self.evaluations)
        return self.tried[constants]

    def spread(self, seed: int) -> None:
        """The corrected flux, and constants spread over the ranges."""
        from scipy.stats import qmc  # a second of importing, which only a search needs

        self.score(np.array(CORRECTED))
        points = qmc.LatinHypercube(len(RANGES), rng=np.random.default_rng(seed)).random(self.evaluations // 4)
        for point in points:
            self.score(self.low + point * (self.high - self.low))

    def refine(self, objective: str) -> Constants:
        """Optimise by quadratic models from the best so far, twice; return the best constants, rounded up or down.

        The models are those of COBYQA, for constrained optimisation without derivatives.
        """
        spans, corrected = self.high - self.low, self.tried[CORRECTED]
        most = max(8, (self.evaluations - self.evaluations // 4) // len(OBJECTIVES) // len(_RADII))

        def cost_of(constants: Constants) -> float:
            return cost(objective, self.tried[constants], corrected)

        def score(shares: np.ndarray) -> Scores:
            return self.score(self.low + shares * spans)

        for radius in _RADII:
            # Not a simplex method with a penalty: the allowed region is narrow and has corners, where a simplex gets
            # stuck.
            minimize(
                lambda shares: _aim(objective, score(shares)),
                (np.array(min(self.tried, key=cost_of)) - self.low) / spans,
                method="COBYQA",
                bounds=Bounds(np.zeros(len(spans)), np.ones(len(spans))),
                constraints=NonlinearConstraint(lambda shares: _margins(score(shares), corrected), 0.0, np.inf),
                options={"initial_tr_radius": radius, "final_tr_radius": 1e-3, "maxfev": most},
            )
        best, unit = np.array(min(self.tried, key=cost_of)), 10.0**-DIGITS
        sides = product(*zip(np.floor(best / unit + 1e-6), np.ceil(best / unit - 1e-6), strict=True))
        rounded = [Constants(*(round(float(value * unit), DIGITS) for value in side)) for side in dict.fromkeys(sides)]
        return min(rounded, key=lambda constants: cost(objective, self.score(np.array(constants)), corrected))
