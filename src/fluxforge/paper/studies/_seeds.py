"""What several trainings say together: rates, medians with their spread, and verdicts that one seed cannot decide."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from fluxforge._files import read_document
from fluxforge.paper.studies._claim import Claim, Verdict

Outcome: TypeAlias = Literal["recovered", "approximation", "refused"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
# A sentence about trained networks is judged on that many seeds at least,
ENOUGH = 5
# holds if it is true of this share of them, and does not if it is true of fewer than half.
SHARE, HALF = 0.9, 0.5
UNTESTABLE: Verdict = "cannot be tested from the text"
# Where `rates` is beside the other parts of a reproduction.
PART = "rates"


@dataclass(frozen=True)
class Rate:
    """So many of so many seeds."""

    reached: int
    of: int

    @property
    def text(self) -> str:
        """In words."""
        return f"{self.reached} of {self.of} seeds"

    def document(self) -> dict[str, int]:
        """As plain JSON."""
        return asdict(self)


def outcome(document: Mapping[str, Any]) -> Outcome:
    """The verdict of a discovery; documents of older runs have `recovered` alone."""
    if "verdict" not in document:
        return "recovered" if document.get("recovered") else "refused"
    found: Outcome = document["verdict"]
    return found


def constants_of(document: Mapping[str, Any]) -> dict[str, float]:
    """The constants of a discovery: the network's own in the limit of small steps, where it has any, or refitted ones.

    What the network does not determine is left out; without a formula there is nothing.
    """
    values = document.get("limit") or document.get("constants") or {}
    return {str(name): float(each) for name, each in values.items() if isinstance(each, int | float)}


def rationals_of(document: Mapping[str, Any]) -> dict[str, float]:
    """The fractions that a discovery takes its constants for, those that it takes for any."""
    return {str(name): float(Fraction(each)) for name, each in (document.get("rational") or {}).items()}


def spread(values: Sequence[float]) -> dict[str, float] | None:
    """Median and quartiles over seeds; None of no values."""
    if not values:
        return None
    low, middle, high = (float(each) for each in np.quantile(values, (0.25, 0.5, 0.75)))
    return {"q1": low, "median": middle, "q3": high}


def weigh(claim: Claim, rate: Rate | None) -> Claim:
    """A claim that one network would have, judged on the seeds: it takes 9 of 10 to hold, and half for a condition.

    The given verdict is what is left to decide by the seeds: the best that the claim can have, or "does not hold" if
    that is known without any network. On fewer than five seeds there is no verdict.
    """
    if claim.verdict == "does not hold":
        return claim
    if rate is None or rate.of < ENOUGH:
        seeds = "one seed" if rate is None else f"{rate.of} seeds"
        why = f"Judged on {seeds}; it takes {ENOUGH} (fluxforge reproduce {PART}). "
        return Claim(claim.name, claim.text, UNTESTABLE, why + claim.evidence)
    verdict: Verdict = claim.verdict
    if rate.reached < HALF * rate.of:
        verdict = "does not hold"
    elif rate.reached < SHARE * rate.of and verdict == "holds":
        verdict = "holds under a condition"
    condition = claim.condition if verdict == "holds under a condition" else ""
    return Claim(claim.name, claim.text, verdict, f"True of {rate.text}. {claim.evidence}", condition)


def rate_of(result: Mapping[str, Any], recipe: str, name: str) -> Rate | None:
    """A rate that a document took over from `rates`; None if that has not been run beside it."""
    found = ((result.get("rates") or {}).get(recipe) or {}).get("rates", {}).get(name)
    return None if found is None else Rate(found["reached"], found["of"])


def rates_before(folder: Path | None, recipes: Sequence[str]) -> dict[str, Any] | None:
    """What `rates` says of these recipes, without its rows; None if it has not been run in the same reproduction.

    `folder` is another part's own, beside it.
    """
    if folder is None or not (path := folder.parent / PART / f"{PART}.json").exists():
        return None
    return taken_over(read_document(path, PART, 1), recipes)


def taken_over(document: Mapping[str, Any], recipes: Sequence[str]) -> dict[str, Any]:
    """The recipes of a document of `rates` as other parts keep them: counts and medians, no single seeds."""
    found = document["recipes"]
    return {
        name: {key: value for key, value in found[name].items() if key != "rows"} for name in recipes if name in found
    }
