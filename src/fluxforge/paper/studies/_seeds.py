"""Rates over seeds: what the networks of several seeds have in common, and verdicts that are judged by them."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import numpy as np
from msgspec import Struct

from fluxforge._files import read_document
from fluxforge.paper.studies._records import RATES, Claim, Verdict, read_result
from fluxforge.run.result import Discovery

Outcome: TypeAlias = Literal["recovered", "approximation", "refused"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
# A sentence about trained networks is judged on at least this many seeds. It holds if it is true of this share of
# them, and does not hold if it is true of fewer than half.
ENOUGH = 5
SHARE, HALF = 0.9, 0.5
# The words that the condition of a verdict on networks begins with.
BUILT_IN = "with T + Δt/V built into the network"
SMALL_STEPS = "in the limit of small steps"
UNTESTABLE: Verdict = "cannot be tested from the text"


class Rate(Struct, frozen=True):
    """The number of seeds of which something is true, and the number of all seeds."""

    reached: int
    of: int

    @property
    def text(self) -> str:
        """As words: "4 of 5 seeds"."""
        return f"{self.reached} of {self.of} seeds"


class Spread(Struct, frozen=True):
    """Median and quartiles over seeds."""

    q1: float
    median: float
    q3: float


class Tally(Struct, frozen=True):
    """The seeds of one recipe together.

    `expected` is the outcome that the recipe expects, `update` and `theta` are its network's update and its residual's
    θ. `rate` counts the seeds that ended as expected, `rates` those of which a named statement is true.
    """

    expected: str
    update: str
    theta: float | None
    verdicts: dict[str, int]
    rate: Rate
    rates: dict[str, Rate]
    medians: dict[str, Spread]
    seconds: Spread | None


class _Tallies(Struct, frozen=True):
    """The part of a document of `rates` that other studies read."""

    recipes: dict[str, Tally]


def outcome_of(discovery: Discovery) -> Outcome:
    """The verdict of a discovery; documents of older runs have `recovered` alone."""
    for each in OUTCOMES:
        if each == discovery.verdict:
            return each
    return "recovered" if discovery.recovered else "refused"


def constants_of(discovery: Discovery) -> dict[str, float]:
    """The constants of a discovery: the network's own in the limit of small steps if there are any, else refitted ones.

    Constants that the network does not determine are left out; without a formula there are none.
    """
    values = discovery.limit or discovery.constants or {}
    return {name: float(each) for name, each in values.items() if each is not None}


def rationals_of(discovery: Discovery) -> dict[str, float]:
    """The constants that a discovery rounded to fractions, as numbers."""
    return {name: float(Fraction(each)) for name, each in (discovery.rational or {}).items()}


def spread_of(values: Sequence[float]) -> Spread | None:
    """Median and quartiles; None of no values."""
    return Spread(*(float(each) for each in np.quantile(values, (0.25, 0.5, 0.75)))) if values else None


def weigh(claim: Claim, rate: Rate | None) -> Claim:
    """Judge on the seeds a claim about trained networks: 9 of 10 must agree for it to hold, half for a condition.

    The verdict of the given claim is the best that it can have, or "does not hold" if that is known without any
    network. On fewer than five seeds the claim cannot be tested.
    """
    if claim.verdict == "does not hold":
        return claim
    if rate is None or rate.of < ENOUGH:
        seeds = "one seed" if rate is None else f"{rate.of} seeds"
        why = f"Judged on {seeds}; it takes {ENOUGH} (fluxforge reproduce {RATES}). "
        return Claim(claim.name, claim.text, UNTESTABLE, why + claim.evidence)
    verdict: Verdict = claim.verdict
    if rate.reached < HALF * rate.of:
        verdict = "does not hold"
    elif rate.reached < SHARE * rate.of and verdict == "holds":
        verdict = "holds under a condition"
    condition = claim.condition if verdict == "holds under a condition" else ""
    return Claim(claim.name, claim.text, verdict, f"True of {rate.text}. {claim.evidence}", condition)


def rate_of(tallies: Mapping[str, Tally] | None, recipe: str, name: str) -> Rate | None:
    """The rate of a named statement; None if `rates` was not run beside the part, or does not have it."""
    tally = (tallies or {}).get(recipe)
    return None if tally is None else tally.rates.get(name)


def read_rates(folder: Path | None, recipes: Sequence[str]) -> dict[str, Tally] | None:
    """The tallies of these recipes from the part `rates`; None if it was not run in the same reproduction.

    `folder` is that of another part, beside the folder of `rates`.
    """
    if folder is None or not (path := folder.parent / RATES / f"{RATES}.json").exists():
        return None
    return select_rates(read_document(path, RATES, 1), recipes)


def select_rates(document: Mapping[str, object], recipes: Sequence[str]) -> dict[str, Tally]:
    """The tallies of these recipes from a document of `rates`, without its single seeds."""
    found = read_result(document, _Tallies).recipes
    return {name: found[name] for name in recipes if name in found}
