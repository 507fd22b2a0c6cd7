"""What an engine is asked to do."""

import math
from dataclasses import dataclass

from fluxforge.errors import InputError

OPERATORS = ("+", "-", "*", "/", "square", "sqrt", "exp", "log", "sin", "cos", "abs")


@dataclass(frozen=True, kw_only=True)
class Search:
    """The operators a formula may have, how long it may be, and how long to look for it.

    `restarts` searches from different random numbers are merged. Each has `generations` rounds of `population`
    formulas, judged on `rows` rows at most (the front is judged on all), and all of them together `seconds`: the
    result depends on the machine only if that time runs out first.
    """

    operators: tuple[str, ...] = ("+", "-", "*", "/")
    max_complexity: int = 25
    seconds: float = 60.0
    restarts: int = 3
    population: int = 600
    generations: int = 20
    rows: int = 300

    def __post_init__(self) -> None:
        if unknown := [name for name in self.operators if name not in OPERATORS]:
            raise InputError(f"search: unknown operator {unknown[0]!r:.60}; known: {' '.join(OPERATORS)}")
        if not {"+", "-", "*", "/"}.intersection(self.operators):
            raise InputError("search: operators should contain at least one of + - * /")
        if not (math.isfinite(self.seconds) and self.seconds > 0):
            raise InputError(f"search: seconds should be positive, got {self.seconds}")
        for name, least in (
            ("max_complexity", 3),
            ("restarts", 1),
            ("population", 10),
            ("generations", 1),
            ("rows", 10),
        ):
            if getattr(self, name) < least:
                raise InputError(f"search: {name} should be at least {least}, got {getattr(self, name)}")
