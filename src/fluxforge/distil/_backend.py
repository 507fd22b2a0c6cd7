"""What every engine of symbolic regression does, and the fit made of it."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import sympy as sp

from fluxforge.distil._front import Front, merge
from fluxforge.distil._search import Search
from fluxforge.distil._simplify import Polisher
from fluxforge.distil._table import Table, refuse_constant
from fluxforge.errors import DiscoveryError, FluxforgeError

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
        """The word that chooses it."""

    @abstractmethod
    def available(self) -> str | None:
        """Nothing if it can be used, otherwise one line that says how to install it."""

    @abstractmethod
    def explore(self, table: Table, search: Search, *, seed: int, end: float) -> Explored:
        """What one search finds; the same for the same seed unless `time.monotonic()` reaches `end` first."""

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
            found = self.explore(table.thinned(search.rows, seed=int(child)), search, seed=int(child), end=end)
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
