"""The numbers of a document by their places, with the quartiles, counts and uncertainties that belong to them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluxforge.paper._kinds import Kind, Rule, rule_of
from fluxforge.run._record import Document

# The keys that name an element of a list, in order of preference.
IDENTITY = ("scheme", "name", "family", "engine")
# The provenance of a kept result, which is not compared.
PROVENANCE = frozenset({"command", "commit", "hardware", "seed", "digits"})


@dataclass(frozen=True)
class Number:
    """A number, or the median of a list of one value per seed, with the rule that its place has.

    `count` is how many values of the document it stands for, `rounded` whether it can have lost digits when it was
    kept. `quartiles` are those of the seeds, `of` the number of seeds of a rate, `uncertainty` that of a fitted one.
    """

    where: str
    value: float
    rule: Rule
    count: int = 1
    rounded: bool = False
    quartiles: tuple[float, float] | None = None
    of: float | None = None
    uncertainty: float | None = None


def numbers(part: str, document: Document) -> dict[str, Number]:
    """Every number of a part's document by its place, which reads like `rows[3].error`."""
    own = {key: value for key, value in document.items() if key not in PROVENANCE}
    return {number.where: number for number in _walk(part, own, "", (), (own,))}


def _walk(part: str, value: Any, where: str, names: tuple[str, ...], around: tuple[Any, ...]) -> Iterator[Number]:
    if isinstance(value, Mapping):
        for name, each in value.items():
            inner = f"{where}.{name}" if where else str(name)
            yield from _walk(part, each, inner, (*names, str(name)), (*around, value))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        yield from _walk_list(part, value, where, names, around)
    elif _is_number(value):
        yield _number(rule_of(part, names), value, where, names, around)


def _walk_list(
    part: str, values: Sequence[Any], where: str, names: tuple[str, ...], around: tuple[Any, ...]
) -> Iterator[Number]:
    rule = rule_of(part, names)
    if rule.kind is Kind.MEDIAN and all(each is None or isinstance(each, bool) or _is_number(each) for each in values):
        plain = [float(each) for each in values if _is_number(each)]
        if plain:
            low, middle, high = (float(each) for each in np.quantile(plain, (0.25, 0.5, 0.75)))
            yield Number(f"{where}[median]", middle, rule, len(plain), rounded=True, quartiles=(low, high))
        return
    for k, each in enumerate(values):
        called = (
            next((str(each[key]) for key in IDENTITY if key in each), str(k)) if isinstance(each, Mapping) else str(k)
        )
        yield from _walk(part, each, f"{where}[{k}]", (*names, called), (*around, values))


def _number(rule: Rule, value: float, where: str, names: tuple[str, ...], around: tuple[Any, ...]) -> Number:
    beside = around[-1]
    quartiles = None
    if rule.kind is Kind.MEDIAN and isinstance(beside, Mapping) and {"q1", "q3"} <= set(beside):
        quartiles = (float(beside["q1"]), float(beside["q3"]))
    return Number(
        where,
        float(value),
        rule,
        rounded=isinstance(value, float),
        quartiles=quartiles,
        of=_look_up(rule.of, names, around),
        uncertainty=_look_up(rule.uncertainty, names, around),
    )


def _look_up(reference: str, names: tuple[str, ...], around: tuple[Any, ...]) -> float | None:
    """The number at the place that a rule refers to; None if there is none."""
    if not reference:
        return None
    path = reference.split("/")
    # The root is there twice, as the document and as what is around its first names.
    at = around[0] if path[0] == "" else around[-1]
    depth = 0
    for k, name in enumerate(path[1:] if path[0] == "" else path):
        if name == "..":
            depth += 1
            at = around[-1 - depth]
            continue
        wanted = (names[k] if path[0] == "" else names[-1]) if name == "*" else name
        if not isinstance(at, Mapping) or wanted not in at:
            return None
        at = at[wanted]
    return float(at) if _is_number(at) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def round_document(part: str, document: Document, *, digits: int = 6) -> Document:
    """Round the numbers of a document to so many digits, except deterministic and fitted ones, which are compared."""
    found = numbers(part, document)
    full = {where for where, number in found.items() if number.rule.kind in (Kind.EXACT, Kind.FITTED)}
    return _round_value(document, "", full, digits)


def _round_value(value: Any, where: str, full: set[str], digits: int) -> Any:
    if isinstance(value, Mapping):
        return {
            name: _round_value(each, f"{where}.{name}" if where else str(name), full, digits)
            for name, each in value.items()
        }
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_round_value(each, f"{where}[{k}]", full, digits) for k, each in enumerate(value)]
    return float(f"{value:.{digits}g}") if isinstance(value, float) and where not in full else value
