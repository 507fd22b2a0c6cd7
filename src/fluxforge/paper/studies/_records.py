"""Records of all studies: options, claims with their verdicts, and rates over the seeds of trained networks."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar, get_args

import msgspec
from msgspec import Struct

from fluxforge import recipe
from fluxforge._files import read_document
from fluxforge._machine import environment
from fluxforge.errors import DocumentError
from fluxforge.run._record import Document
from fluxforge.run.result import to_document as result_to_document

R = TypeVar("R")
Verdict: TypeAlias = Literal["holds", "holds under a condition", "does not hold", "cannot be tested from the text"]
UNTESTABLE: Verdict = "cannot be tested from the text"


@dataclass(frozen=True)
class StudyConfig:
    """The options of every study: the preset of sizes, and changes of the recipes with which it trains."""

    preset: str = "quick"
    changes: recipe.Changes = field(default_factory=dict)

    def load_recipe(self, name: str, preset: str, changes: recipe.Changes) -> recipe.Recipe:
        """A recipe with the changes of the run, except that of `seeds`, and after these with `changes`."""
        shared = {key: value for key, value in self.changes.items() if key != "seeds"}
        return recipe.override(recipe.load(name, preset=preset), {**shared, **changes})


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper, the verdict computed from a result, and the evidence: a text with the numbers.

    `condition` names the condition of a verdict "holds under a condition"; it may be empty.
    """

    name: str
    text: str
    verdict: Verdict
    evidence: str
    condition: str = ""


def to_verdict(holds: bool, in_part: bool = False) -> Verdict:
    """The verdict "holds" if `holds`, "holds under a condition" if `in_part`, otherwise "does not hold"."""
    return "holds" if holds else "holds under a condition" if in_part else "does not hold"


def find_objection(reasons: Iterable[str]) -> str | None:
    """The first reason of a verdict that is a failed condition; None if there is none."""
    return next((text for text in reasons if not text.startswith("yes")), None)


def to_number(value: float) -> float | None:
    """A number for a JSON document: None if it is not finite."""
    return value if math.isfinite(value) else None


def to_document(result: msgspec.Struct, claims: Sequence[Claim]) -> Document:
    """The JSON document of a study: the fields of its result, the environment and the claims."""
    document = result_to_document(result)
    return {**document, "environment": environment(), "claims": [asdict(claim) for claim in claims]}


def read_result(document: Document, kind: type[R]) -> R:
    """The result of a study from its JSON document; fields that the record does not have are ignored.

    Raises DocumentError if a field is missing or of another type.
    """
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise DocumentError(f"not a result of {document.get('experiment', 'this study')}: {error}") from error


Outcome: TypeAlias = Literal["recovered", "approximation", "refused"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
# A sentence about trained networks is judged on at least LEAST_SEEDS seeds. It holds if it is true of the share SHARE
# of them, and does not hold if it is true of less than HALF.
LEAST_SEEDS = 5
SHARE, HALF = 0.9, 0.5
# Texts of conditions of verdicts on networks.
BUILT_IN = "with T + Δt/V built into the network"
SMALL_STEPS = "in the limit of small steps"


class Rate(Struct, frozen=True):
    """The number of seeds for which a statement is true, and the number of all seeds."""

    reached: int
    of: int

    @property
    def text(self) -> str:
        """The rate as text, such as "4 of 5 seeds"."""
        return f"{self.reached} of {self.of} seeds"


class Spread(Struct, frozen=True):
    """Median and quartiles over seeds."""

    q1: float
    median: float
    q3: float


class Tally(Struct, frozen=True):
    """Counts and medians over the seeds of one recipe.

    `expected` is the outcome that the recipe expects, `update` and `theta` are its network's update and its residual's
    θ. `rate` counts the seeds that ended as expected, `rates` those for which a named statement is true.
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
    """The part of the document of `rates` that other studies read."""

    recipes: dict[str, Tally]


def weigh(claim: Claim, rate: Rate | None) -> Claim:
    """Judge a claim about trained networks by a rate over seeds: true of 90 % to hold, of half under a condition.

    The verdict of the given claim is the best possible one, or "does not hold" if that follows without any network.
    With fewer than five seeds the claim cannot be tested.
    """
    if claim.verdict == "does not hold":
        return claim
    if rate is None or rate.of < LEAST_SEEDS:
        seeds = "one seed" if rate is None else f"{rate.of} seeds"
        why = f"Judged on {seeds}; {LEAST_SEEDS} are required (fluxforge reproduce rates). "
        return Claim(claim.name, claim.text, UNTESTABLE, why + claim.evidence)
    verdict: Verdict = claim.verdict
    if rate.reached < HALF * rate.of:
        verdict = "does not hold"
    elif rate.reached < SHARE * rate.of and verdict == "holds":
        verdict = "holds under a condition"
    condition = claim.condition if verdict == "holds under a condition" else ""
    return Claim(claim.name, claim.text, verdict, f"True of {rate.text}. {claim.evidence}", condition)


def find_rate(tallies: Mapping[str, Tally] | None, recipe: str, name: str) -> Rate | None:
    """The rate of a named statement for a recipe; None if `rates` was not run, or does not have it."""
    tally = (tallies or {}).get(recipe)
    return None if tally is None else tally.rates.get(name)


def read_rates(folder: Path, recipes: Sequence[str]) -> dict[str, Tally] | None:
    """The tallies of these recipes from the part `rates`; None if it was not run in the same reproduction.

    `folder` is that of another part, beside the folder of `rates`.
    """
    path = folder.parent / "rates" / "rates.json"
    return select_rates(read_document(path, "rates", 1), recipes) if path.exists() else None


def select_rates(document: Mapping[str, object], recipes: Sequence[str]) -> dict[str, Tally]:
    """The tallies of these recipes from a document of `rates`, without its single seeds."""
    tallies = read_result(document, _Tallies).recipes
    return {name: tallies[name] for name in recipes if name in tallies}
