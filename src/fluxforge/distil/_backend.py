"""What every engine of symbolic regression does, and the fit made of it."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import final

import numpy as np
import sympy as sp

from fluxforge.distil._front import Front, merge
from fluxforge.distil._search import Search
from fluxforge.distil._simplify import Polisher
from fluxforge.distil._table import Table, refuse_constant
from fluxforge.errors import FluxforgeError

Tell = Callable[[int, int, float], None]
"""tell(restart, restarts, best error so far), after each restart."""


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
    def explore(self, table: Table, search: Search, *, seed: int, seconds: float) -> Sequence[sp.Expr]:
        """The formulas one search finds, in the table's symbols; the same for the same seed unless time runs out."""

    @final
    def fit(self, table: Table, search: Search, *, seed: int, tell: Tell | None = None) -> Front:
        """The front of all restarts: formulas simplified, constants fitted and errors measured by us."""
        if hint := self.available():
            raise FluxforgeError(hint)
        refuse_constant(table)
        end = time.monotonic() + search.seconds
        front, polisher = Front(()), Polisher(table)
        for restart, child in enumerate(np.random.SeedSequence(seed).generate_state(search.restarts), start=1):
            left = end - time.monotonic()
            if left <= 0:
                break
            found = self.explore(table.thinned(search.rows, seed=int(child)), search, seed=int(child), seconds=left)
            front = merge(front, polisher.front(found, max_complexity=search.max_complexity))
            if tell:
                tell(restart, search.restarts, front.best_error)
        if not front.candidates:
            raise FluxforgeError(
                f"{self.name}: no formula of at most {search.max_complexity} symbols in {search.seconds:g} s; "
                "give it more seconds or a larger max_complexity"
            )
        return front
