"""Candidate formulas, and the best of them for every length."""

import csv
import io
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import sympy as sp
from jaxtyping import Float

from fluxforge.distil._complexity import complexity
from fluxforge.distil._predict import predict
from fluxforge.distil._table import Table
from fluxforge.expression import to_text


@dataclass(frozen=True)
class Candidate:
    """A formula, its length, and its error: rms(y − f)/rms(y − mean y) on the table, in float64."""

    expression: sp.Expr
    complexity: int
    error: float

    @property
    def text(self) -> str:
        """The formula as our parser reads it."""
        return to_text(self.expression)


@dataclass(frozen=True)
class Front:
    """Candidates none of which is beaten in both length and error, the shortest first.

    `ended_by_clock`: the search stopped at its limit in seconds before its evaluations were done.
    """

    candidates: tuple[Candidate, ...]
    ended_by_clock: bool = False

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.candidates)

    def __len__(self) -> int:
        return len(self.candidates)

    @property
    def best_error(self) -> float:
        """The smallest error, infinite if there is no candidate."""
        return min((candidate.error for candidate in self.candidates), default=math.inf)

    def rows(self) -> list[tuple[int, float, str]]:
        """(complexity, error, formula) of every candidate."""
        return [(candidate.complexity, candidate.error, candidate.text) for candidate in self.candidates]

    def to_csv(self) -> str:
        """`complexity,error,formula` and a line per candidate."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(("complexity", "error", "formula"))
        writer.writerows((length, repr(error), formula) for length, error, formula in self.rows())
        return text.getvalue()


def front_of(candidates: Iterable[Candidate]) -> Front:
    """The Pareto set: each candidate is longer than the one before it, and has a smaller error."""
    kept: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda c: (c.complexity, c.error, c.text)):
        if not kept or candidate.error < kept[-1].error:
            kept.append(candidate)
    return Front(tuple(kept))


def merge(*fronts: Front) -> Front:
    """The Pareto set of several; ended by the clock if one of them was."""
    found = front_of(candidate for front in fronts for candidate in front)
    return replace(found, ended_by_clock=any(front.ended_by_clock for front in fronts))


def measure(expr: sp.Expr, table: Table) -> Candidate | None:
    """The formula with its length and error, or nothing if it is not finite on the table."""
    error = relative_error(predict(expr, table), table)
    return Candidate(expr, complexity(expr), error) if math.isfinite(error) else None


def relative_error(f: Float[np.ndarray, " rows"], table: Table) -> float:
    """rms(y − f)/rms(y − mean y)."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.linalg.norm(table.y - f) / table.spread)
