"""What an engine is asked to do."""

import math
from dataclasses import dataclass

from fluxforge.errors import InputError

OPERATORS = ("+", "-", "*", "/", "square", "sqrt", "exp", "log", "sin", "cos", "abs")


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
