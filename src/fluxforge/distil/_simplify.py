"""A formula made shorter without changing what it says."""

import math
from collections.abc import Iterable, Iterator

import sympy as sp

from fluxforge.distil._forms import tidy
from fluxforge.distil._front import Candidate, Front, front_of, measure, merge
from fluxforge.distil._refit import refit, structure
from fluxforge.distil._steps import steps
from fluxforge.distil._table import Table
from fluxforge.errors import ExpressionError
from fluxforge.expression import parse, to_text
from fluxforge.scheme import symbol

SLACK = 1.5
"""A step may raise the error of the formula it starts from by this factor, once the constants are fitted again: what
two symbols, an operator and an operand, are worth at the knee of a front …"""

FLOOR = 1e-6
"""… or up to this error, whichever is more."""

REACH = 2.0
"""A step is given up if the first round of its fit foresees more than this multiple of the error it may have."""

WORTH = 0.05
"""Of the formulas an engine hands over, those are looked at which lower the error of the shorter ones by this part."""

Structure = tuple[sp.Expr, int]

_ROWS = 300
_GAIN = 1e-3


class Polisher:
    """Makes formulas shorter on one table, and remembers what it has fitted."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._few = table.thinned(_ROWS, seed=0)
        self._fits: dict[Structure, Candidate | None] = {}
        self._left: set[Structure] = set()

    def front(self, expressions: Iterable[sp.Expr], *, max_complexity: int) -> Front:
        """The front of the formulas not seen before and of all their simplifications, up to a length."""
        found = [step for expr in self._worthy(expressions) for step in self.simplifications(expr)]
        front = front_of(step for step in found if step.complexity <= max_complexity)
        # A way leaves aside what it did not choose: what is on the front deserves a way of its own.
        asked: set[Structure] = set()
        while aside := [step for step in front if structure(step.expression) not in asked]:
            asked.update(structure(step.expression) for step in aside)
            found = [further for step in aside for further in self.simplifications(step.expression)]
            front = merge(front, front_of(found))
        settled = self.settled(front)
        return front_of(step for step in settled if step.complexity <= max_complexity)

    def _worthy(self, expressions: Iterable[sp.Expr]) -> Iterator[sp.Expr]:
        """Those that lower the error of every shorter one by the part `WORTH`: a front has many that do not."""
        fits = [self._fitted(tidy(expr), limit=math.inf) for expr in expressions if measure(expr, self._few)]
        best = math.inf
        for fit in sorted((fit for fit in fits if fit), key=lambda fit: (fit.complexity, fit.error)):
            if fit.error <= (1 - WORTH) * best:
                best = fit.error
                yield fit.expression

    def settled(self, steps: Iterable[Candidate]) -> Front:
        """The front, its constants fitted on the whole table, as it is read back from its text."""
        fits = [refit(step.expression, self._table) for step in front_of(steps)]
        read = [_as_read(tidy(fit.expression), self._table) for fit in fits if fit]
        found = [measure(expr, self._table) for expr in read if expr is not None]
        return front_of(step for step in found if step)

    def simplifications(self, expr: sp.Expr) -> Iterator[Candidate]:
        """Each formula on the way to a shorter one, and every step tried there that is within the slack.

        The way takes the step that costs the least error, and ends where none is left or another has been before.
        """
        here = self._fitted(tidy(expr), limit=math.inf)
        while here:
            here = measure(tidy(here.expression), self._few) or here
            if (place := structure(here.expression)) in self._left:
                return
            self._left.add(place)
            yield here
            shorter = list(self._shorter(here))
            yield from shorter
            here = min(shorter, key=lambda step: step.error, default=None)

    def _shorter(self, here: Candidate) -> Iterator[Candidate]:
        limit = max(FLOOR, SLACK * here.error)
        for expr in steps(here.expression):
            step = self._fitted(expr, limit=limit)
            if step and step.error <= limit and step.complexity < here.complexity:
                yield step

    def _fitted(self, expr: sp.Expr, *, limit: float) -> Candidate | None:
        """The formula with its constants fitted; nothing if it is not finite, or the limit is out of reach."""
        key = structure(expr)
        if key not in self._fits:
            fit = refit(expr, self._few, gain=_GAIN, hopeless=REACH * limit * self._few.spread)
            if fit is None:
                return None
            self._fits[key] = measure(fit.expression, self._few)
        return self._fits[key]


def _as_read(expr: sp.Expr, table: Table) -> sp.Expr | None:
    """The formula our parser makes of its text: that is what a file will hold; nothing if the parser refuses it."""
    try:
        return parse(to_text(expr), {name: symbol(name) for name in table.names})
    except ExpressionError:
        return None


def simplify(expr: sp.Expr, table: Table) -> Candidate | None:
    """The shortest formula met whose error is within `SLACK` of the given one's; nothing if that is not finite."""
    fit = refit(expr, table)
    given = measure(fit.expression, table) if fit else None
    if given is None:
        return None
    polisher = Polisher(table)
    found = polisher.settled(polisher.simplifications(expr))
    return next((step for step in found if step.error <= max(FLOOR, SLACK * given.error)), given)
