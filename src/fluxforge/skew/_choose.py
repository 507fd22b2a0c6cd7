"""Three choices of the free coefficient, each the best by one objective among those that meet the same conditions.

- `error`: the least geometric mean of steady errors over the families;
- `step`: the largest geometric mean of stable steps;
- `coercivity`: the largest of the smallest eigenvalues of the symmetric part, on random meshes up to aspect 30.

Conditions for all: no family's error above 0.98 of that of the corrected flux, no step below 0.82 of its, and a
coercivity of 0.25 on every random mesh: a margin, since the laws are validated on other meshes and problems. A
condition that is missed costs a hundred times the amount.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.stats import qmc
from threadpoolctl import threadpool_limits

from fluxforge.skew._law import CORRECTED, RANGES, ChosenLaw, Constants, round_constants
from fluxforge.skew._objective import Judge, Scores

OBJECTIVES = ("error", "step", "coercivity")
MOST_ERROR, LEAST_STEP, LEAST_COERCIVITY = 0.98, 0.82, 0.25
_PENALTY = 100.0
Tell = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Trial:
    """Constants that were tried and their scores."""

    constants: Constants
    scores: Scores


@dataclass(frozen=True)
class Choice:
    """The law that each objective chose, with its scores, and everything that was tried."""

    laws: Mapping[str, ChosenLaw]
    scores: Mapping[str, Scores]
    trials: tuple[Trial, ...]


def cost(objective: str, scores: Scores) -> float:
    """What is minimised: the objective, and the conditions that are missed."""
    missed = sum(max(0.0, each - MOST_ERROR) for each in scores.error.values())
    missed += sum(max(0.0, LEAST_STEP - each) for each in scores.step.values())
    missed += max(0.0, LEAST_COERCIVITY - scores.coercivity)
    wanted = {
        "error": np.log(scores.mean_error),
        "step": -np.log(max(scores.mean_step, 1e-12)),
        "coercivity": -scores.coercivity,
    }[objective]
    return float(wanted + _PENALTY * missed)


def choose_laws(judge: Judge, *, evaluations: int, seed: int, tell: Tell = lambda *_: None) -> Choice:
    """Search the constants: half of the evaluations spread over their ranges, the others from the best by simplex.

    The constants are rounded to two digits at the end. The same seed gives the same laws. One thread: the matrices are
    so small that several threads wait for each other longest.
    """
    tried: dict[Constants, Scores] = {}
    low, high = (np.array([bounds[k] for bounds in RANGES.values()]) for k in (0, 1))

    def score(values: np.ndarray) -> Scores:
        constants = Constants(*(round(float(value), 6) for value in np.clip(values, low, high)))
        if constants not in tried:
            tried[constants] = judge(constants)
            tell("choosing the free coefficient", len(tried), evaluations)
        return tried[constants]

    with threadpool_limits(1, "blas"):
        return _search(score, tried, evaluations, seed, (low, high))


def _search(
    score: Callable[[np.ndarray], Scores],
    tried: Mapping[Constants, Scores],
    evaluations: int,
    seed: int,
    ranges: tuple[np.ndarray, np.ndarray],
) -> Choice:
    low, high = ranges
    score(np.array(CORRECTED))
    for point in qmc.LatinHypercube(len(RANGES), rng=np.random.default_rng(seed)).random(evaluations // 2):
        score(low + point * (high - low))
    each = max(8, (evaluations - evaluations // 2) // len(OBJECTIVES))
    laws, scores = {}, {}
    for objective in OBJECTIVES:
        best = _refine(objective, score, tried, each, high - low)
        laws[objective] = ChosenLaw(objective, best)
        scores[objective] = score(np.array(best))
    return Choice(laws, scores, tuple(Trial(constants, found) for constants, found in tried.items()))


def _refine(
    objective: str,
    score: Callable[[np.ndarray], Scores],
    tried: Mapping[Constants, Scores],
    evaluations: int,
    spans: np.ndarray,
) -> Constants:
    """A simplex from the best so far; then the best of all with rounded constants."""
    start = np.array(min(tried, key=lambda constants: cost(objective, tried[constants])))
    simplex = np.vstack([start, start + 0.1 * np.diag(np.where(np.arange(len(spans)) % 2, -spans, spans))])
    minimize(
        lambda values: cost(objective, score(values)),
        start,
        method="Nelder-Mead",
        options={"initial_simplex": simplex, "maxfev": evaluations, "xatol": 1e-3, "fatol": 1e-4},
    )
    ranked = sorted(tried, key=lambda constants: cost(objective, tried[constants]))[:3]
    rounded = [round_constants(constants) for constants in ranked]
    return min(rounded, key=lambda constants: cost(objective, score(np.array(constants))))
