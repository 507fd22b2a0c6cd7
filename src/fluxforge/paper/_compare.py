"""Compare a fresh run with kept results: verdicts that changed, and numbers that differ by more than is allowed.

Deterministic numbers should agree to round-off on any processor, medians and rates over trained seeds within the
scatter of the seeds. Values of single seeds are not compared, since the same seed gives different networks on different
processors.
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

# Significance level: two rates differ if Fisher's exact test of equal rates has a p-value below this.
SIGNIFICANCE = 0.01


@dataclass(frozen=True)
class ChangedNumber:
    """A number that differs: the kept value, the fresh one (None if missing), and the allowed difference.

    `allowed` is absolute, and None for a rate, for which `chance` is the p-value of Fisher's exact test.
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
    """The comparison of a part: the number of its numbers by kind, how many were compared, and those that differ.

    Numbers are compared only if both results have the same preset. `digits` is the smaller number of digits to which
    the results were rounded, None if neither was.
    """

    part: str
    preset_kept: str | None
    preset_fresh: str | None
    counts: Mapping[str, int]
    compared: int
    digits: int | None
    moved: tuple[ChangedNumber, ...]

    @property
    def same_preset(self) -> bool:
        """Whether both results have the same preset, so that their numbers were compared."""
        return self.preset_kept == self.preset_fresh


@dataclass(frozen=True)
class ChangedVerdict:
    """A sentence of the paper with different verdicts in the kept and the fresh result."""

    claim: str
    text: str
    kept: str
    fresh: str


@dataclass(frozen=True)
class Comparison:
    """Verdicts that differ, and the comparisons of all parts that are in both results.

    `kept_rates` are the parts of the fresh run that were judged with the kept rates over seeds, since the fresh run has
    none. `unjudged` are claims that were judged in one result only; `only_kept`, `only_fresh` are parts of one only.
    """

    verdicts: tuple[ChangedVerdict, ...]
    kept_rates: tuple[str, ...]
    unjudged: tuple[str, ...]
    parts: tuple[PartComparison, ...]
    only_kept: tuple[str, ...]
    only_fresh: tuple[str, ...]

    def document(self) -> Document:
        """The comparison as a JSON document."""
        return asdict(self)


def compare(fresh: Mapping[str, Document], kept: Mapping[str, Document]) -> Comparison:
    """Compare a fresh run with kept results, each given as documents of parts by name.

    Numbers are compared only at the same preset, since other sizes give other numbers; verdicts should be the same.
    Claims on trained networks are judged by rates over seeds. A fresh part without rates is judged again with the kept
    ones, since fewer seeds are less evidence and not a different result.
    """
    kept_rates = tuple(name for name in kept if name in fresh and _has_rates(kept[name]) > _has_rates(fresh[name]))
    before = {row.claim: row.verdict for row in judge_claims(kept)}
    now = judge_claims({**fresh, **{name: _judge_with_rates(name, fresh[name], kept[name]) for name in kept_rates}})
    pairs = [(row, before[row.claim]) for row in now]
    return Comparison(
        verdicts=tuple(
            ChangedVerdict(row.claim, row.text, was, row.verdict)
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
    """The fresh document of a part with the rates over seeds of the kept one, and its claims judged with them."""
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
    """The count of numbers by kind; a list with a value per seed counts as one median and as its single seeds."""
    counts = Counter[str]()
    for number in numbers.values():
        counts[str(number.rule.kind)] += 1
        if number.count > 1:
            counts[str(Kind.SEED)] += number.count
    return {str(kind): counts[str(kind)] for kind in Kind if counts[str(kind)]}


def _find_digits(document: Document, numbers: Mapping[str, Number]) -> int | None:
    """The number of digits to which a document was rounded; None if it was not.

    If a kept document does not state it, it is KEPT_DIGITS, unless a number has more.
    """
    if isinstance(stated := document.get("digits"), int):
        return stated
    if "hardware" not in document:
        # Only kept documents name the hardware; one that a run wrote is not rounded.
        return None
    exact = [number for number in numbers.values() if number.rule.kind is Kind.EXACT and number.rounded]
    most = max((len(Decimal(repr(each.value)).normalize().as_tuple().digits) for each in exact), default=0)
    return KEPT_DIGITS if 0 < most <= KEPT_DIGITS else None


def _compare_number(part: str, kept: Number, fresh: Number | None, digits: list[int]) -> ChangedNumber | None:
    """The record of two numbers that differ; None if their difference is allowed."""
    kind = str(kept.rule.kind)
    if fresh is None and kept.rule.kind is Kind.RATE:
        # Some documents omit counts of zero.
        fresh = replace(kept, value=0.0)
    if fresh is None:
        return ChangedNumber(part, kept.where, kind, kept.value, None)
    if kept.rule.kind is Kind.RATE and kept.of and fresh.of:
        from scipy.stats import fisher_exact  # imported here, since it takes a second

        table = [[count.value, (count.of or 0.0) - count.value] for count in (kept, fresh)]
        chance = float(fisher_exact(table).pvalue)
        if chance >= SIGNIFICANCE:
            return None
        return ChangedNumber(part, kept.where, kind, kept.value, fresh.value, chance=chance)
    allowed = _allowed_difference(kept, fresh, digits)
    if abs(fresh.value - kept.value) <= allowed:
        return None
    return ChangedNumber(part, kept.where, kind, kept.value, fresh.value, allowed)


def _allowed_difference(kept: Number, fresh: Number, digits: list[int]) -> float:
    """The largest absolute difference at which two numbers count as equal.

    For a median over n seeds it is the interquartile range of the kept seeds. If seeds are normally distributed, the
    difference of two medians has a standard deviation of 0.33 of that range for n = 16, 0.41 for 10 and 0.59 for 5.
    """
    size = max(abs(kept.value), abs(fresh.value))
    round_off = max(kept.rule.relative * size, kept.rule.floor)
    if kept.rounded or fresh.rounded:
        round_off += sum(_half_unit(size, each) for each in digits)
    if kept.quartiles is not None:
        return round_off + kept.quartiles[1] - kept.quartiles[0]
    return round_off + (kept.uncertainty or 0.0) + (fresh.uncertainty or 0.0)


def _half_unit(size: float, digits: int) -> float:
    """Half a unit in the last digit of a number of this size that is rounded to `digits` significant digits."""
    return 0.0 if size == 0.0 else 0.5 * 10.0 ** (math.floor(math.log10(size)) + 1 - digits)


def _sort_key(moved: ChangedNumber) -> float:
    """Sort key: missing numbers first, the others by the ratio of their difference to the allowed one, descending."""
    if moved.fresh is None:
        return -math.inf
    if moved.allowed is None:
        return -1.0 / max(moved.chance or 0.0, 1e-300)
    return -abs(moved.fresh - moved.kept) / max(moved.allowed, 1e-300)
