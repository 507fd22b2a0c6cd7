"""Compare a fresh run with kept results: which verdicts changed, and which numbers differ by more than allowed.

Deterministic numbers agree to round-off on any processor. Medians and rates over trained seeds agree within the scatter
of the seeds. Values of single seeds are not compared: the same seed gives another network on another processor.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from decimal import Decimal

from fluxforge.paper._claims import judge_claims
from fluxforge.paper._network_kinds import NOT_RUN
from fluxforge.paper._numbers import KEPT_DIGITS, NOT_COMPARED, Kind, Number, find_numbers
from fluxforge.paper._run import PARTS
from fluxforge.run._record import Document

# Two rates differ if, by Fisher's exact test, equal rates give such counts with a probability below this.
SIGNIFICANCE = 0.01


@dataclass(frozen=True)
class Moved:
    """A number that differs: the kept and the fresh value (None if missing), and the difference allowed.

    `allowed` is absolute; None for a rate, where `chance` is the probability of such counts at equal rates.
    """

    part: str
    where: str
    kind: str
    kept: float
    fresh: float | None
    allowed: float | None = None
    chance: float | None = None


@dataclass(frozen=True)
class PartComparison:
    """A part in both results: how many numbers of each kind it has, and which differ.

    Numbers are compared if both were run at the same preset; `digits` is the smaller number of digits the results were
    kept with, None if neither was rounded.
    """

    part: str
    preset_kept: str | None
    preset_fresh: str | None
    counts: Mapping[str, int]
    compared: int
    digits: int | None
    moved: tuple[Moved, ...]

    @property
    def same_preset(self) -> bool:
        """Whether numbers were compared."""
        return self.preset_kept == self.preset_fresh


@dataclass(frozen=True)
class Turned:
    """A sentence of the paper whose verdict differs."""

    claim: str
    text: str
    kept: str
    fresh: str


@dataclass(frozen=True)
class Comparison:
    """Verdicts that differ, claims judged in one result only, parts with their numbers, parts in one result only.

    `kept_rates` are the parts of the fresh run that were judged with the kept rates over seeds, since `rates` was not
    run beside them.
    """

    verdicts: tuple[Turned, ...]
    kept_rates: tuple[str, ...]
    unjudged: tuple[str, ...]
    parts: tuple[PartComparison, ...]
    only_kept: tuple[str, ...]
    only_fresh: tuple[str, ...]

    def document(self) -> Document:
        """The comparison as JSON types."""
        return asdict(self)


def compare(fresh: Mapping[str, Document], kept: Mapping[str, Document]) -> Comparison:
    """Compare a fresh run with kept results, both as documents by the names of their parts.

    Numbers are compared if both were run at the same preset: other sizes give other numbers, but the same verdicts.
    Claims on trained networks are judged on the rates over seeds: a part that was run without them is judged anew with
    the kept ones, since fewer seeds are less evidence, not another result.
    """
    kept_rates = tuple(name for name in kept if name in fresh and _has_rates(kept[name]) > _has_rates(fresh[name]))
    before = {row.claim: row.verdict for row in judge_claims(kept)}
    now = judge_claims({**fresh, **{name: _judge_with_rates(name, fresh[name], kept[name]) for name in kept_rates}})
    pairs = [(row, before[row.claim]) for row in now]
    return Comparison(
        verdicts=tuple(
            Turned(row.claim, row.text, was, row.verdict)
            for row, was in pairs
            if row.verdict != was and NOT_RUN not in (row.verdict, was)
        ),
        kept_rates=kept_rates,
        unjudged=tuple(row.claim for row, was in pairs if (row.verdict == NOT_RUN) != (was == NOT_RUN)),
        parts=tuple(_compare_part(name, fresh[name], kept[name]) for name in kept if name in fresh),
        only_kept=tuple(name for name in kept if name not in fresh),
        only_fresh=tuple(name for name in fresh if name not in kept),
    )


def _has_rates(document: Document) -> bool:
    return bool(document.get("rates"))


def _judge_with_rates(name: str, fresh: Document, kept: Document) -> Document:
    """The fresh document of a part with the kept rates over seeds, and its claims judged anew."""
    document = {**fresh, "rates": kept["rates"]}
    return {**document, "claims": [asdict(claim) for claim in PARTS[name].judge(document)]}


def _compare_part(name: str, fresh: Document, kept: Document) -> PartComparison:
    presets = kept.get("preset"), fresh.get("preset")
    before = find_numbers(name, kept)
    if presets[0] != presets[1]:
        return PartComparison(name, *presets, counts={}, compared=0, digits=None, moved=())
    now = find_numbers(name, fresh)
    digits = [each for each in (_find_digits(kept, before), _find_digits(fresh, now)) if each is not None]
    pairs = [(each, now.get(each.where)) for each in before.values() if each.rule.kind not in NOT_COMPARED]
    moved = [
        difference for was, is_now in pairs if (difference := _compare_number(name, was, is_now, digits)) is not None
    ]
    return PartComparison(
        name, *presets, _count_kinds(before), len(pairs), min(digits, default=None), tuple(sorted(moved, key=_sort_key))
    )


def _count_kinds(numbers: Mapping[str, Number]) -> dict[str, int]:
    """How many numbers of each kind there are. A list of seeds counts as one median, its values as single seeds."""
    counts = Counter[str]()
    for number in numbers.values():
        counts[str(number.rule.kind)] += 1
        if number.count > 1:
            counts[str(Kind.SEED)] += number.count
    return {str(kind): counts[str(kind)] for kind in Kind if counts[str(kind)]}


def _find_digits(document: Document, numbers: Mapping[str, Number]) -> int | None:
    """The digits a document is kept with: as it states, or KEPT_DIGITS if no number has more; None if in full."""
    if isinstance(stated := document.get("digits"), int):
        return stated
    if "hardware" not in document:
        # A document that a run wrote is not rounded; only kept ones name the hardware.
        return None
    exact = [number for number in numbers.values() if number.rule.kind is Kind.EXACT and number.rounded]
    most = max((len(Decimal(repr(each.value)).normalize().as_tuple().digits) for each in exact), default=0)
    return KEPT_DIGITS if 0 < most <= KEPT_DIGITS else None


def _compare_number(part: str, kept: Number, fresh: Number | None, digits: list[int]) -> Moved | None:
    """The difference of two numbers; None if it is within what is allowed."""
    kind = str(kept.rule.kind)
    if fresh is None and kept.rule.kind is Kind.RATE:
        # Counts of zero are left out of some documents.
        fresh = replace(kept, value=0.0)
    if fresh is None:
        return Moved(part, kept.where, kind, kept.value, None)
    if kept.rule.kind is Kind.RATE and kept.of and fresh.of:
        from scipy.stats import fisher_exact  # a second of importing

        table = [[count.value, (count.of or 0.0) - count.value] for count in (kept, fresh)]
        chance = float(fisher_exact(table).pvalue)
        return Moved(part, kept.where, kind, kept.value, fresh.value, chance=chance) if chance < SIGNIFICANCE else None
    allowed = _allowed_difference(kept, fresh, digits)
    if abs(fresh.value - kept.value) <= allowed:
        return None
    return Moved(part, kept.where, kind, kept.value, fresh.value, allowed)


def _allowed_difference(kept: Number, fresh: Number, digits: list[int]) -> float:
    """The largest absolute difference at which two numbers count as equal.

    For a median over n seeds the interquartile range of the kept seeds: two medians of 16 seeds each differ with a
    standard deviation of 0.33 of it, of 10 with 0.41, of 5 with 0.59, if seeds are normally distributed.
    """
    size = max(abs(kept.value), abs(fresh.value))
    round_off = max(kept.rule.relative * size, kept.rule.floor)
    if kept.rounded or fresh.rounded:
        round_off += sum(_half_unit(size, each) for each in digits)
    if kept.quartiles is not None:
        return round_off + kept.quartiles[1] - kept.quartiles[0]
    return round_off + (kept.uncertainty or 0.0) + (fresh.uncertainty or 0.0)


def _half_unit(size: float, digits: int) -> float:
    """Half a unit in the last of so many digits."""
    return 0.0 if size == 0.0 else 0.5 * 10.0 ** (math.floor(math.log10(size)) + 1 - digits)


def _sort_key(moved: Moved) -> float:
    """Sort key: missing numbers first, then by how far they exceed the difference allowed."""
    if moved.fresh is None:
        return -math.inf
    if moved.allowed is None:
        return -1.0 / max(moved.chance or 0.0, 1e-300)
    return -abs(moved.fresh - moved.kept) / max(moved.allowed, 1e-300)
