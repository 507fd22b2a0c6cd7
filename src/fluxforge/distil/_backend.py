"""Symbolic regression: the settings of a search, the interface of an engine, and the fit over several restarts."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import sympy as sp

from fluxforge import recipe
from fluxforge.distil._front import Front, merge
from fluxforge.distil._simplify import Polisher
from fluxforge.distil._table import Table, refuse_constant
from fluxforge.errors import DiscoveryError, FluxforgeError, InputError

OPERATORS = ("+", "-", "*", "/", "square", "sqrt", "exp", "log", "sin", "cos", "abs", "min", "max")


@dataclass(frozen=True, kw_only=True)
class Search:
    """The operators a formula may have, how long it may be, and how long to look for it.

    `restarts` searches from different random numbers are merged. After `population` random formulas, each of them
    creates, fits and measures `evaluations` more in rounds of `population` (the last is a whole one), on `rows` rows at
    most; the front is measured on all rows. The same seed then gives the same front however busy the machine is.
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
        """Rounds of one restart."""
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


Tell = Callable[[int, int, float], None]
"""tell(restart, restarts, best error so far), after each restart."""


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

    @final
    def fit(self, table: Table, search: Search, *, seed: int, tell: Tell | None = None) -> Front:
        """The front of all restarts: formulas simplified, constants fitted and errors measured by us.

        Raises DiscoveryError if there is no formula to put on it.
        """
        if hint := self.available():
            raise FluxforgeError(hint)
        refuse_constant(table)
        end = math.inf if search.seconds is None else time.monotonic() + search.seconds
        front, polisher = Front(()), Polisher(table)
        for restart, child in enumerate(np.random.SeedSequence(seed).generate_state(search.restarts), start=1):
            if time.monotonic() >= end:
                front = replace(front, ended_by_clock=True)
                break
            found = self.explore(table.draw_rows(search.rows, seed=int(child)), search, seed=int(child), end=end)
            polished = polisher.front(found.formulas, max_complexity=search.max_complexity)
            front = merge(front, replace(polished, ended_by_clock=found.ended_by_clock))
            if tell:
                tell(restart, search.restarts, front.best_error)
        if not front.candidates:
            spent = f"{search.seconds:g} s" if front.ended_by_clock else f"{search.evaluations} evaluations per restart"
            raise DiscoveryError(
                f"{self.name}: no formula of at most {search.max_complexity} symbols in {spent}; "
                "give it more of them, or a larger max_complexity"
            )
        return front
