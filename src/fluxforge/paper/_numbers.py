"""The numbers of a document by their paths in it, each with a rule whose kind decides the tolerance of comparisons.

The rules are in numbers.toml; the rule of a number is the first one of its part whose pattern matches its path.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import numpy as np
from msgspec import Struct, toml

from fluxforge.run._record import Document

# Relative tolerance of deterministic numbers between processors. Measured on an AMD EPYC with its own instruction set,
# with AVX2 and the BLAS kernels of Haswell, and with SSE4.2 and those of Nehalem: of 7,472 deterministic numbers of
# setup, theorems, convergence and consistency only orders differed by more than both FLOOR and 1e-9 of the number.
RELATIVE = 1e-9
# Absolute tolerance: numbers of size one, and errors relative to such, after some thousand roundings of 2.2e-16.
FLOOR = 1e-12
# The number of digits to which numbers that need not be exact are rounded in kept results.
KEPT_DIGITS = 6


class Kind(StrEnum):
    """How a number is obtained, which decides by how much it may differ between runs."""

    EXACT = "deterministic"
    FITTED = "fitted, with an uncertainty of its own"
    MEDIAN = "median over trained seeds"
    RATE = "rate over trained seeds"
    SPREAD = "uncertainty or spread"
    SEED = "single seed or weight"
    MACHINE = "time, memory or hardware"


# Kinds that are not compared, only counted; spreads serve as the tolerances of other numbers.
NOT_COMPARED = frozenset({Kind.SPREAD, Kind.SEED, Kind.MACHINE})


class Rule(Struct, frozen=True, forbid_unknown_fields=True):
    """Numbers whose path matches `pattern` are of this kind.

    A path consists of names: keys of mappings; for elements of lists their `scheme`, `name`, `family` or `engine`, or
    else their index. In a pattern `*` matches part of a name and `**` any number of names.

    `relative` and `floor` are the tolerances of deterministic numbers. `of` is the path of the number of seeds of a
    rate, `uncertainty` that of the uncertainty of a fitted number: relative to the mapping that contains the number,
    with `..` for the enclosing mapping and `*` for the number's own name; from the document's root if it begins with
    `/`. A number of kind `MEDIAN` may have its quartiles `q1` and `q3` in the same mapping; of a list with one value
    per seed the median is taken.
    """

    pattern: str
    kind: Kind
    relative: float = RELATIVE
    floor: float = FLOOR
    of: str = ""
    uncertainty: str = ""


@cache
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    """A pattern as a regular expression for paths that end in a slash; keys of documents contain no slash."""
    words = {"**": "(?:[^/]+/)*"}
    parts = (words.get(each) or "[^/]*".join(map(re.escape, each.split("*"))) + "/" for each in pattern.split("/"))
    return re.compile("".join(parts))


# The rules by part; those under "common" are tried before those of the part.
RULES = toml.decode(files("fluxforge.paper").joinpath("numbers.toml").read_bytes(), type=dict[str, tuple[Rule, ...]])


# Cached, since both sides of a comparison have the same paths.
@lru_cache(maxsize=2**16)
def find_rule(part: str, names: tuple[str, ...]) -> Rule:
    """The rule of a path in a part's document; numbers without a rule are deterministic."""
    rules = (*RULES["common"], *RULES.get(part, ()), Rule("**", Kind.EXACT))
    place = "/".join((*names, ""))
    return next(rule for rule in rules if _compile_pattern(rule.pattern).fullmatch(place))


# The keys that name an element of a list, in order of preference.
IDENTITY = ("scheme", "name", "family", "engine")
# The provenance of a kept result, which is not compared.
PROVENANCE = frozenset({"command", "commit", "hardware", "seed", "digits"})


@dataclass(frozen=True)
class Number:
    """A number of a document, or the median of a list with one value per seed, and its rule.

    `count` is the number of values that it represents, `rounded` says whether it may have lost digits in a kept result.
    `quartiles` are those over the seeds of a median, `of` is the number of seeds of a rate, `uncertainty` that of a
    fitted number.
    """

    where: str
    value: float
    rule: Rule
    count: int = 1
    rounded: bool = False
    quartiles: tuple[float, float] | None = None
    of: float | None = None
    uncertainty: float | None = None


def find_numbers(part: str, document: Document) -> dict[str, Number]:
    """Every number of a part's document, by its place in the form `rows[3].error` or `rows[euler 3].error`.

    Both indices count from 0: the latter is that of a record among those of the same name.
    """
    content = {key: value for key, value in document.items() if key not in PROVENANCE}
    return {number.where: number for number in _walk(part, content, "", (), (content,))}


def _walk(part: str, value: Any, where: str, names: tuple[str, ...], around: tuple[Any, ...]) -> Iterator[Number]:
    if isinstance(value, Mapping):
        for name, each in value.items():
            inner = f"{where}.{name}" if where else str(name)
            yield from _walk(part, each, inner, (*names, str(name)), (*around, value))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        yield from _walk_list(part, value, where, names, around)
    elif _is_number(value):
        yield _make_number(find_rule(part, names), value, where, names, around)


def _walk_list(
    part: str, values: Sequence[Any], where: str, names: tuple[str, ...], around: tuple[Any, ...]
) -> Iterator[Number]:
    rule = find_rule(part, names)
    if rule.kind is Kind.MEDIAN and all(each is None or isinstance(each, bool) or _is_number(each) for each in values):
        plain = [float(each) for each in values if _is_number(each)]
        if plain:
            low, middle, high = (float(each) for each in np.quantile(plain, (0.25, 0.5, 0.75)))
            yield Number(f"{where}[median]", middle, rule, len(plain), rounded=True, quartiles=(low, high))
        return
    for each, (name, label) in zip(values, _label_elements(values), strict=True):
        yield from _walk(part, each, f"{where}[{label}]", (*names, name), (*around, values))


def _label_elements(values: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """The name of each element of a list, and its unique label: its name and a count, or its index without a name.

    By labels, records of a scheme are compared with records of the same scheme although the lists may have different
    schemes: networks are in them only if they were trained before.
    """
    seen = Counter[str]()
    for k, each in enumerate(values):
        named = each if isinstance(each, Mapping) else {}
        name = next((str(named[key]) for key in IDENTITY if key in named), None)
        yield (str(k), str(k)) if name is None else (name, f"{name} {seen[name]}")
        if name is not None:
            seen[name] += 1


def _make_number(rule: Rule, value: float, where: str, names: tuple[str, ...], around: tuple[Any, ...]) -> Number:
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
    """The number at the path `reference` of a rule, or None; `around` are the enclosing containers from the root."""
    if not reference:
        return None
    is_absolute = reference.startswith("/")
    # `around` begins with the root twice: as the document, and as the container of its first names.
    at, depth = around[0 if is_absolute else -1], 0
    for k, name in enumerate(reference.removeprefix("/").split("/")):
        if name == "..":
            depth += 1
            at = around[-1 - depth]
            continue
        wanted = names[k if is_absolute else -1] if name == "*" else name
        if not isinstance(at, Mapping) or wanted not in at:
            return None
        at = at[wanted]
    return float(at) if _is_number(at) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def round_document(part: str, document: Document) -> Document:
    """A document with its numbers rounded to KEPT_DIGITS, except deterministic and fitted ones."""
    numbers = find_numbers(part, document)
    full = {where for where, number in numbers.items() if number.rule.kind in (Kind.EXACT, Kind.FITTED)}
    return _round_value(document, "", full)


def _round_value(value: Any, where: str, full: set[str]) -> Any:
    if isinstance(value, Mapping):
        return {
            name: _round_value(each, f"{where}.{name}" if where else str(name), full) for name, each in value.items()
        }
    if isinstance(value, Sequence) and not isinstance(value, str):
        labels = (label for _, label in _label_elements(value))
        return [_round_value(each, f"{where}[{label}]", full) for each, label in zip(value, labels, strict=True)]
    return float(f"{value:.{KEPT_DIGITS}g}") if isinstance(value, float) and where not in full else value
