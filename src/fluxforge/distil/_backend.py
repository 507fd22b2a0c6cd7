"""Symbolic regression: the settings of a search and the interface of an engine."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import sympy as sp

from fluxforge import recipe
from fluxforge.distil._table import Table
from fluxforge.errors import InputError

OPERATORS = ("+", "-", "*", "/", "square", "sqrt", "exp", "log", "sin", "cos", "abs", "min", "max")


@dataclass(frozen=True, kw_only=True)
class Search:
    """Operators and length of formulas, and the effort of the search. Raises InputError for unusable settings.

    `restarts` searches from different random numbers are merged. Each of them begins with `population` random formulas,
    then creates, fits and measures `evaluations` more in whole rounds of `population`, on at most `rows` rows; the
    front is measured on all rows. The same seed gives the same front however busy the machine is.
    `seconds`, if given, is a hard limit for all restarts together: a front that it ended is marked
    (`Front.ended_by_clock`), and depends on the machine.
    """

    operators: tuple[str, ...] = ("+", "-", "*", "/")
    max_complexity: int = 25
    seconds: float | None = None
    restarts: int = 3
    population: int = 600
    evaluations: int = 12_000
    rows: int = 300

    @classmethod
    def of_recipe(cls, wanted: recipe.Search) -> "Search":
        """The settings that a recipe asks for; its operators are named by words."""
        signs = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
        return cls(
            operators=tuple(signs.get(name, name) for name in wanted.operators),
            max_complexity=wanted.most_complex,
            seconds=wanted.seconds,
            restarts=wanted.restarts,
            evaluations=wanted.evaluations,
        )

    @property
    def generations(self) -> int:
        """The number of rounds of one restart."""
        return math.ceil(self.evaluations / self.population)

    def __post_init__(self) -> None:
        if unknown := [name for name in self.operators if name not in OPERATORS]:
            raise InputError(f"search: unknown operator {unknown[0]!r:.60}; known: {' '.join(OPERATORS)}")
        if not {"+", "-", "*", "/"}.intersection(self.operators):
            raise InputError("search: operators should contain at least one of + - * /")
        if self.seconds is not None and not (math.isfinite(self.seconds) and self.seconds > 0):
            raise InputError(f"search: seconds should be positive, got {self.seconds}")
        for name, least in (
            ("max_complexity", 3),
            ("restarts", 1),
            ("population", 10),
            ("evaluations", 1),
            ("rows", 10),
        ):
            if getattr(self, name) < least:
                raise InputError(f"search: {name} should be at least {least}, got {getattr(self, name)}")


@dataclass(frozen=True)
class Explored:
    """The formulas of one search, in the table's symbols, and whether its limit in seconds ended it."""

    formulas: Sequence[sp.Expr]
    ended_by_clock: bool = False


class AbstractBackend(ABC):
    """An engine of symbolic regression."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the engine in recipes."""

    @abstractmethod
    def available(self) -> str | None:
        """None if the engine can be used, otherwise one line that says how to install it."""

    @abstractmethod
    def explore(self, table: Table, search: Search, *, seed: int, end: float) -> Explored:
        """Formulas found by one search; the same for the same seed unless `time.monotonic()` reaches `end` first."""
