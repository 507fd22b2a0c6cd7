"""The kind of every number in a result, which decides the tolerance when two results are compared.

The kind is that of the first rule in the table of the part whose pattern matches the number's place.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from types import MappingProxyType

# The same arithmetic on another processor. Measured on an AMD EPYC between its own instruction set, AVX2 with the BLAS
# kernels of Haswell, and SSE4.2 with those of Nehalem: of 7,472 deterministic numbers of setup, theorems, convergence
# and consistency none but orders differed by more than the floor and by more than 1e-9 of itself.
RELATIVE = 1e-9
# Absolute: numbers of size one, and errors relative to such, after some thousand roundings of 2.2e-16.
FLOOR = 1e-12
# An order comes from the logarithms of small errors, which are differences of numbers of size one: between those
# instruction sets it differed by up to 1.4e-8. A constant of least residual comes from a programme solved to 1e-7.
SOLVED = 1e-6


class Kind(StrEnum):
    """How a number is obtained, which decides how much it may differ."""

    EXACT = "deterministic"
    FITTED = "fitted, with an uncertainty of its own"
    MEDIAN = "median over trained seeds"
    RATE = "rate over trained seeds"
    SPREAD = "uncertainty or spread"
    SEED = "single seed or weight"
    MACHINE = "time, memory or hardware"


# Kinds that are counted, not compared; spreads are the tolerances of other numbers.
NOT_COMPARED = frozenset({Kind.SPREAD, Kind.SEED, Kind.MACHINE})


@dataclass(frozen=True)
class Rule:
    """Numbers whose place matches `pattern` are of this kind.

    A place is a path of names: keys of mappings, and for elements of lists their `scheme`, `name`, `family` or
    `engine`, or else their index. In a pattern `*` stands for part of a name and `**` for any number of names.

    `relative` and `floor` are the tolerance of deterministic numbers. `of` says where the number of seeds of a rate
    is, and `uncertainty` where that of a fitted number is: a path from the number's own mapping, with `..` for the
    mapping around it, from the document's root if it begins with `/`, and with `*` for the number's own name.
    A median with the quartiles `q1` and `q3` beside it is a number; a list of one value per seed is taken as the
    median of its values.
    """

    pattern: str
    kind: Kind
    relative: float = RELATIVE
    floor: float = FLOOR
    of: str = ""
    uncertainty: str = ""

    def matches(self, names: tuple[str, ...]) -> bool:
        """Whether a place is one of this rule's."""
        return _compile_pattern(self.pattern).fullmatch("/".join((*names, ""))) is not None


@cache
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    """A pattern as a regular expression of a path that ends in a slash; keys of documents have no slash."""
    words = {"**": "(?:[^/]+/)*"}
    parts = (words.get(each) or "[^/]*".join(map(re.escape, each.split("*"))) + "/" for each in pattern.split("/"))
    return re.compile("".join(parts))


def _exact(pattern: str, *, relative: float = RELATIVE, floor: float = FLOOR) -> Rule:
    return Rule(pattern, Kind.EXACT, relative=relative, floor=floor)


def _median(pattern: str) -> Rule:
    return Rule(pattern, Kind.MEDIAN)


def _rate(pattern: str, of: str) -> Rule:
    return Rule(pattern, Kind.RATE, of=of)


def _fitted_rule(pattern: str, uncertainty: str) -> Rule:
    return Rule(pattern, Kind.FITTED, relative=SOLVED, uncertainty=uncertainty)


def _spread(pattern: str) -> Rule:
    return Rule(pattern, Kind.SPREAD)


def _seed(pattern: str) -> Rule:
    return Rule(pattern, Kind.SEED)


def _machine(pattern: str) -> Rule:
    return Rule(pattern, Kind.MACHINE)


# Rules of every part, before its own.
COMMON = (
    _machine("environment/**"),
    _machine("took_s"),
    _machine("inputs"),
    _machine("format_version"),
    _machine("**/*seconds*"),
    _machine("**/*seconds*/**"),
)
TABLES: Mapping[str, tuple[Rule, ...]] = MappingProxyType(
    {
        "setup": (),
        "generalisation": (
            _median("summary/*/*/*/median"),
            _spread("summary/*/*/*/q*"),
            _rate("summary/*/*/stuck", "/seeds"),
            _rate("reduced/reached", "of"),
            _exact("reduced/lemma_nonzeros"),
            _exact("reduced/of"),
            _seed("**/last_layer/**"),
            _seed("**/units_after_merging/**"),
            _exact("**/stability_limit_over_fourier/**"),
            _median("sparse/*"),
            _median("dense/*"),
            _median("variants/*/sparse/*"),
            _median("variants/*/dense/*"),
            _median("**/extrapolation/*/*/sparse"),
            _median("**/extrapolation/*/*/dense"),
            _median("reduced/*"),
        ),
        "theorems": (
            _rate("linear/violations*", "networks"),
            _rate("deep/trained/violations*", "networks"),
            _rate("linear/hypotheses_failing/*", "../networks"),
            _rate("deep/trained/hypotheses_failing/*", "../networks"),
            _median("linear/ratios"),
            _median("linear/eps"),
            _median("deep/trained/ratios"),
            _median("deep/trained/eps"),
            _exact("linear/networks"),
            _exact("deep/trained/networks"),
            _seed("linear/**"),
            _seed("deep/trained/**"),
        ),
        "rates": (
            _rate("recipes/*/verdicts/*", "/recipes/*/rate/of"),
            _rate("recipes/*/rate/reached", "of"),
            _rate("recipes/*/rates/*/reached", "of"),
            _median("recipes/*/medians/*/median"),
            _spread("recipes/*/medians/*/q*"),
            _seed("recipes/*/rows/**"),
        ),
        "controls": (
            _rate("counts/*", "/decoys"),
            _seed("rows/**"),
        ),
        "symbolic": (
            _rate("recovery/*/recovered", "of"),
            _rate("recovery/*/exact", "of"),
            _seed("recovery/*/worst_constant"),
            _seed("rows/**"),
            _seed("fronts/**"),
            _seed("rates/**"),
            _seed("against_step/*/rows/*/network/**"),
            _fitted_rule("against_step/*/limit/*", "../uncertainty/*"),
            _spread("against_step/*/uncertainty/*"),
            _fitted_rule("against_step/*/rows/*/constants/*", "../error/*"),
            _spread("against_step/*/rows/*/error/*"),
            _exact("against_step/*/rows/**", relative=SOLVED),
        ),
        "higher-order": (
            _seed("discovered/**"),
            _seed("rates/**"),
            _seed("networks/*/residual/network"),
            _seed("networks/*/by_step/*/network"),
            _seed("networks/*/by_step/*/constants/**"),
            _seed("networks/*/skipped"),
            _fitted_rule("direct*/*/limit/*", "../uncertainty/*"),
            _spread("direct*/*/uncertainty/*"),
            _fitted_rule("direct*/*/rows/*/constants/*", "../error/*"),
            _spread("direct*/*/rows/*/error/*"),
            _exact("direct*/**", relative=SOLVED),
        ),
        "convergence": (
            _seed("rows/network-*/**"),
            _seed("space/network-*/**"),
            _seed("orders/network-*/**"),
            # Steps are small numbers that nothing cancels in: no floor.
            _exact("meshes/**", floor=0.0),
            _exact("rows/*/dt", floor=0.0),
            _exact("orders/**", relative=SOLVED),
        ),
        "memory": (
            _machine("baseline/*/start"),
            _machine("baseline/*/whole"),
            _machine("baseline/*/stepping"),
            _machine("rows/*/whole"),
            _machine("rows/*/stepping"),
            _machine("bytes_per_cell/*/stepping"),
            _machine("bytes_per_cell/*/whole"),
            _machine("bytes_per_cell/*/largest_by_step/**"),
        ),
        "consistency": (
            _exact("families/*/steady/*/rates/**", relative=SOLVED),
            _exact("families/*/steady/*/order", relative=SOLVED),
            _exact("time_order/**", relative=SOLVED),
        ),
    }
)
_REST = Rule("**", Kind.EXACT)


# Both sides of a comparison have the same places.
@lru_cache(maxsize=2**16)
def rule_of(part: str, names: tuple[str, ...]) -> Rule:
    """The rule of a place in a part's document; numbers without a rule are deterministic."""
    return next(rule for rule in _rules(part) if rule.matches(names))


@cache
def _rules(part: str) -> tuple[Rule, ...]:
    return (*COMMON, *TABLES.get(part, ()), _REST)
