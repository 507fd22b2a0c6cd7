"""Which formulas to believe, judged together: the simplest that do, composed and refitted, what the network does.

A front alone cannot tell. A message may be multiplied by any function of what the receiving cell knows, as long as
the update divides by it, and trained networks do so by a few per cent: longer formulas describe that gauge, not the
scheme. Composed, it cancels, and the refitted short formula has the smaller loss.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fluxforge import recipe
from fluxforge.data import Problem, model_of
from fluxforge.distil._compose import canonical, compose
from fluxforge.distil._constants import Fitted, refit
from fluxforge.distil._free import Free, set_free
from fluxforge.distil._front import Candidate, Front
from fluxforge.distil._sample import Sampled
from fluxforge.errors import DiscoveryError, SchemeError
from fluxforge.gnn import Network

# What a symbol of complexity has to lower the loss by, as on a single front; losses below FLOOR are all the same.
PRICE = 0.2
FLOOR = 1e-12
MOST_TRIES = 12


@dataclass(frozen=True)
class Choice:
    """One formula per MLP, the stages they make with their constants free, and the constants refitted."""

    chosen: Mapping[str, Candidate]
    free: Free
    fitted: Fitted
    tried: int

    @property
    def complexity(self) -> int:
        """Of all formulas together."""
        return sum(each.complexity for each in self.chosen.values())

    @property
    def score(self) -> float:
        """Log loss plus the price of complexity: the smaller the better."""
        return math.log(max(self.fitted.loss, FLOOR)) + PRICE * self.complexity


def choose(
    network: Network,
    sampled: Sequence[Sampled],
    fronts: Mapping[str, Front],
    *,
    spec: recipe.Recipe,
    samples: Sequence[Problem],
    network_loss: float,
    threshold: float,
) -> Choice:
    """Combinations of candidates below the threshold, simplest first, until one does as well as the network.

    If none does, the best by log loss plus 0.2 per symbol among those tried.
    """
    worthy = {name: [each for each in front if each.error <= threshold] for name, front in fronts.items()}
    if short := [name for name, found in worthy.items() if not found]:
        raise DiscoveryError(
            f"no formula for {short[0]!r} is within {threshold:g} of the network: the best has an error of "
            f"{fronts[short[0]].best_error:.3g}; train longer, or search longer"
        )
    meanings = {each.name: each for each in sampled}
    combinations = sorted(itertools.product(*worthy.values()), key=lambda some: sum(each.complexity for each in some))
    best: Choice | None = None
    for tried, some in enumerate(combinations[:MOST_TRIES], start=1):
        chosen = dict(zip(worthy, some, strict=True))
        formulas = {name: meanings[name].meaning(each.expression) for name, each in chosen.items()}
        try:
            stages = canonical(compose(network, formulas), model_of(spec))
            stages = (*(each.stage for each in network.before), *stages)
        except SchemeError:
            continue
        free = set_free(stages)
        found = Choice(chosen, free, refit(free, spec.loss, samples), tried)
        if best is None or found.score < best.score:
            best = found
        if found.fitted.loss <= network_loss:
            return found
    if best is None:
        raise DiscoveryError(
            "none of the formulas found can be composed into a scheme: no update is linear in its sums"
        )
    return best
