"""Three choices of the free coefficient, each the best by one objective among those that meet the same conditions.

- `error`: the least geometric mean of steady errors over the families;
- `step`: the largest geometric mean of stable steps;
- `coercivity`: the largest of the smallest eigenvalues of the symmetric part, on random meshes up to aspect 30.

Conditions for all: no family's error above 0.96 of that of the corrected flux, no step below 0.86 of its, and at least
half of its coercivity: a margin, since the laws are validated on other meshes and problems. A condition that is missed
costs a hundred times the amount.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.optimize import minimize
from scipy.stats import qmc
from threadpoolctl import threadpool_limits

from fluxforge.skew._flux import CORRECTED, RANGES, ChosenLaw, Constants, round_constants
from fluxforge.skew._objective import Scores

OBJECTIVES = ("error", "step", "coercivity")
MOST_ERROR, LEAST_STEP, LEAST_COERCIVITY = 0.96, 0.86, 0.5
_PENALTY = 100.0
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
    """What a finished part of the search added to the trials, in order; and the constants that it chose, if any."""

    trials: tuple[Trial, ...]
    chosen: Constants | None = None


class AbstractParts(ABC):
    """Where finished parts of a search are kept, by name: `SPREAD` and the objectives."""

    @abstractmethod
    def read(self, name: str) -> SearchPart | None:
        """The part of that name; None if it is not finished."""

    @abstractmethod
    def keep(self, name: str, part: SearchPart) -> None:
        """Keep a part that is finished."""


class NoParts(AbstractParts):
    """Nothing is kept."""

    def read(self, name: str) -> SearchPart | None:
        """None."""

    def keep(self, name: str, part: SearchPart) -> None:
        """Nothing is done."""


@dataclass(frozen=True)
class Choice:
    """The law that each objective chose, with its scores, and everything that was tried."""

    laws: Mapping[str, ChosenLaw]
    scores: Mapping[str, Scores]
    trials: tuple[Trial, ...]


def missed_by(scores: Scores, corrected: Scores) -> float:
    """By how much the conditions are missed, added up; 0 if all hold."""
    missed = sum(max(0.0, each - MOST_ERROR) for each in scores.error.values())
    missed += sum(max(0.0, LEAST_STEP - each) for each in scores.step.values())
    return missed + max(0.0, LEAST_COERCIVITY * corrected.coercivity - scores.coercivity)


def cost(objective: str, scores: Scores, corrected: Scores) -> float:
    """What is minimised: the objective, and the conditions that are missed."""
    wanted = {
        "error": np.log(scores.mean_error),
        "step": -np.log(max(scores.mean_step, 1e-12)),
        "coercivity": -scores.coercivity,
    }[objective]
    return float(wanted + _PENALTY * missed_by(scores, corrected))


def choose_laws(
    judge: Callable[[Constants], Scores],
    *,
    evaluations: int,
    seed: int,
    parts: AbstractParts | None = None,
    tell: Tell = lambda *_: None,
) -> Choice:
    """Search the constants: a quarter of the evaluations spread over their ranges, the others from the best by simplex.

    The constants are rounded to two digits at the end. The same seed gives the same laws, also if the search was
    interrupted: parts that `parts` has are not repeated. One thread: the matrices are so small that several threads
    wait for each other longest.
    """
    search = _Search(judge, evaluations, parts or NoParts(), tell)
    with threadpool_limits(1, "blas"):
        search.finish_part(SPREAD, lambda: search.spread(seed))
        chosen = {name: search.finish_part(name, partial(search.refine, name)) for name in OBJECTIVES}
    laws = {name: ChosenLaw(name, constants) for name, constants in chosen.items() if constants is not None}
    scores = {name: search.tried[law.constants] for name, law in laws.items()}
    return Choice(laws, scores, tuple(Trial(constants, found) for constants, found in search.tried.items()))


class _Search:
    """The trials of a search so far; a part continues from all trials of the parts before it."""

    def __init__(
        self, judge: Callable[[Constants], Scores], evaluations: int, parts: AbstractParts, tell: Tell
    ) -> None:
        self.judge, self.evaluations, self.parts, self.tell = judge, evaluations, parts, tell
        self.tried: dict[Constants, Scores] = {}
        self.low, self.high = (np.array([bounds[k] for bounds in RANGES.values()]) for k in (0, 1))

    def finish_part(self, name: str, run: Callable[[], Constants | None]) -> Constants | None:
        """Read a part, or run it and keep it; returns the constants that it chose."""
        part = self.parts.read(name)
        if part is None:
            before = len(self.tried)
            chosen = run()
            part = SearchPart(tuple(Trial(*each) for each in list(self.tried.items())[before:]), chosen)
            self.parts.keep(name, part)
        self.tried |= {trial.constants: trial.scores for trial in part.trials}
        return part.chosen

    def score(self, values: np.ndarray) -> Scores:
        """The scores of constants, moved into their ranges; those tried before are not computed again."""
        constants = Constants(*(round(float(value), 6) for value in np.clip(values, self.low, self.high)))
        if constants not in self.tried:
            self.tried[constants] = self.judge(constants)
            self.tell("choosing the free coefficient", len(self.tried), self.evaluations)
        return self.tried[constants]

    def spread(self, seed: int) -> None:
        """The corrected flux, and constants spread over the ranges."""
        self.score(np.array(CORRECTED))
        points = qmc.LatinHypercube(len(RANGES), rng=np.random.default_rng(seed)).random(self.evaluations // 4)
        for point in points:
            self.score(self.low + point * (self.high - self.low))

    def refine(self, objective: str) -> Constants:
        """A simplex from the best so far; then the best of all with rounded constants."""
        spans, corrected = self.high - self.low, self.tried[CORRECTED]

        def cost_of(constants: Constants) -> float:
            return cost(objective, self.tried[constants], corrected)

        start = np.array(min(self.tried, key=cost_of))
        simplex = np.vstack([start, start + 0.1 * np.diag(np.where(np.arange(len(spans)) % 2, -spans, spans))])
        most = max(8, (self.evaluations - self.evaluations // 4) // len(OBJECTIVES))
        minimize(
            lambda values: cost(objective, self.score(values), corrected),
            start,
            method="Nelder-Mead",
            options={"initial_simplex": simplex, "maxfev": most, "xatol": 1e-3, "fatol": 1e-4},
        )
        ranked = sorted(self.tried, key=cost_of)[:3]
        rounded = [round_constants(constants) for constants in ranked]
        return min(rounded, key=lambda constants: cost(objective, self.score(np.array(constants)), corrected))
