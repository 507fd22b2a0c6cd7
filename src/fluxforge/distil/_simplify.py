"""Symbolic regression with an engine, and the simplification of what it finds.

A formula is simplified by a search through its equivalent forms and through variants with a term or a constant less.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np
import sympy as sp

from fluxforge.distil._backend import AbstractBackend, Search
from fluxforge.distil._front import Candidate, Front, complexity, fit_constants, front_of, measure, merge, structure_key
from fluxforge.distil._table import Table, refuse_constant
from fluxforge.errors import DiscoveryError, ExpressionError, FluxforgeError
from fluxforge.expression._parse import parse
from fluxforge.expression._print import to_text
from fluxforge.expression._symbols import symbol

# Formulas that would have more terms are not multiplied out: SymPy would take long to factor them again.
_MOST_TERMS = 24


def tidy(expr: sp.Expr) -> sp.Expr:
    """The shortest form of a formula; a product −2·a·(b − c) is written with a positive number, 2·a·(c − b)."""
    return _make_positive(min(list_forms(expr), key=complexity))


def list_forms(expr: sp.Expr) -> list[sp.Expr]:
    """The formula as it is, and multiplied out and factored again if that differs; both made monic."""
    forms = [make_monic(expr)]
    if _terms_if_expanded(expr) <= _MOST_TERMS:
        forms += [form for form in (make_monic(collect_factors(sp.expand(expr))),) if form not in forms]
    return forms


def _make_positive(expr: sp.Expr) -> sp.Expr:
    """−2·a·(b − c) → 2·a·(c − b)."""
    number, rest = expr.as_coeff_Mul()
    bracket = next((factor for factor in sp.Mul.make_args(rest) if factor.is_Add), None)
    if number >= 0 or bracket is None or bracket == rest:
        return expr
    return sp.Mul(-number, -bracket, *(factor for factor in rest.args if factor != bracket))


def make_monic(expr: sp.Expr) -> sp.Expr:
    """2·a·(3·b + 6·c) → 6·a·(b + 2·c): every bracket has a term with coefficient 1, which minimises constants."""
    if not expr.args:
        return expr
    inner = [make_monic(argument) for argument in expr.args]
    if not isinstance(expr, sp.Mul | sp.Pow | sp.Abs):
        return expr.func(*inner)
    pulled = [_pull_number(factor) for factor in (inner if expr.is_Mul else [expr.func(*inner)])]
    return sp.Mul(*(number for number, _ in pulled), *(rest for _, rest in pulled))


def _pull_number(factor: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """(number, rest): split a number off a bracket, its power or its modulus; off roots and moduli only its size."""
    inside = factor.args[0] if isinstance(factor, sp.Abs) else factor
    base, exponent = inside.as_base_exp()
    if not (base.is_Add and exponent.is_Rational):
        return sp.S.One, factor
    lead = _lead(base) if exponent.is_Integer and inside is factor else abs(_lead(base))
    return (sp.S.One, factor) if lead == 1 else (lead**exponent, factor.xreplace({base: divide_sum(base, lead)}))


def divide_sum(expr: sp.Expr, lead: sp.Number) -> sp.Expr:
    """expr/lead term by term, where lead/lead is the integer 1."""
    terms = [term.as_coeff_Mul() for term in sp.Add.make_args(expr)]
    return sp.Add(*(_ratio(number, lead) * rest for number, rest in terms))


def _ratio(number: sp.Number, lead: sp.Number) -> sp.Number:
    return sp.sign(number) * sp.sign(lead) if abs(number) == abs(lead) else number / lead


def _lead(bracket: sp.Add) -> sp.Number:
    """The largest coefficient of the terms that are not numbers; 1 if one of them has the coefficient ±1."""
    coefficients = [term.as_coeff_Mul()[0] for term in bracket.args if not term.is_Number]
    if any(abs(number) == 1 for number in coefficients):
        return sp.S.One
    return max(coefficients, key=lambda number: (abs(number), number))


def collect_factors(expr: sp.Expr) -> sp.Expr:
    """a·b + a·c + d → a·(b + c) + d, recursively, beginning with the factor that most terms share."""
    terms = sp.Add.make_args(expr)
    shared = Counter(factor for term in terms for factor in _unit_factors(term))
    best = min(shared, key=lambda factor: (-shared[factor], sp.default_sort_key(factor)), default=None)
    if best is None or shared[best] < 2:
        return expr
    inside = [term for term in terms if best in _unit_factors(term)]
    outside = [term for term in terms if term not in inside]
    return best * collect_factors(sp.Add(*(term / best for term in inside))) + collect_factors(sp.Add(*outside))


def _unit_factors(term: sp.Expr) -> set[sp.Expr]:
    """The factors x or 1/x for every power of x in a product."""
    powers = [factor.as_base_exp() for factor in sp.Mul.make_args(term) if not factor.is_Number]
    return {base if exponent > 0 else 1 / base for base, exponent in powers if exponent.is_Integer}


def _terms_if_expanded(expr: sp.Expr) -> int:
    if expr.is_Add:
        return sum(_terms_if_expanded(term) for term in expr.args)
    if expr.is_Mul:
        return int(sp.prod([_terms_if_expanded(factor) for factor in expr.args]))
    if expr.is_Pow and expr.exp.is_Integer and expr.exp > 0:
        return _terms_if_expanded(expr.base) ** int(expr.exp)
    return 1


VALUE_TOLERANCE = 0.25
"""Constants that differ by less than this part may become one constant, or the number 1."""


def shorten(expr: sp.Expr) -> Iterator[sp.Expr]:
    """Yield variants of a formula: one term of a sum or one argument of min or max left out, or one constant replaced.

    A constant is replaced by ±1, or by the size of other constants. A number may also be multiplied
    into a bracket if a constant there becomes ±1.
    """
    if expr.is_Float:
        yield from (sp.Integer(unit) for unit in (1, -1) if abs(expr - unit) < VALUE_TOLERANCE)
    if expr.is_Add:
        yield from (sp.Add(*expr.args[:k], *expr.args[k + 1 :]) for k in range(len(expr.args)))
        yield from _tie_coefficients(expr)
    if expr.is_Mul:
        yield from _move_inwards(expr)
    if isinstance(expr, sp.Min | sp.Max):
        yield from (expr.func(*expr.args[:k], *expr.args[k + 1 :]) for k in range(len(expr.args)))
    for k, argument in enumerate(expr.args):
        yield from (expr.func(*expr.args[:k], step, *expr.args[k + 1 :]) for step in shorten(argument))


def _tie_coefficients(expr: sp.Add) -> Iterator[sp.Expr]:
    """A sum whose coefficients are nearly of one size gets one coefficient."""
    terms = [term.as_coeff_Mul() for term in expr.args]
    sizes = [abs(number) for number, _ in terms]
    if all(size.is_Float for size in sizes) and 0 < max(sizes) - min(sizes) < VALUE_TOLERANCE * max(sizes):
        yield sp.Add(*(sp.sign(number) * sizes[0] * rest for number, rest in terms))


def _move_inwards(expr: sp.Mul) -> Iterator[sp.Expr]:
    """2·a·(b + 0.51·c) → a·(2·b + c): the number goes into a bracket if it makes 1 of a constant there."""
    number, rest = expr.as_coeff_Mul()
    brackets = [factor for factor in sp.Mul.make_args(rest) if factor.is_Add] if number.is_Float else []
    for bracket in brackets:
        terms = [(number * k, part) for k, part in (term.as_coeff_Mul() for term in bracket.args)]
        for place, (k, part) in enumerate(terms):
            if abs(abs(k) - 1) < VALUE_TOLERANCE:
                others = [c * m for c, m in terms[:place] + terms[place + 1 :]]
                yield sp.Add(sp.sign(k) * part, *others) * (rest / bracket)


ERROR_RATIO = 1.5
"""The factor by which a step may raise the error of the formula it starts from, after the constants are fitted again:
the price of two symbols, an operator and an operand, at the knee of a front, exp(0.4)."""

FLOOR = 1e-6
"""Errors up to this are always allowed."""

REACH = 2.0
"""A step is abandoned if the first round of its fit predicts an error above this multiple of the allowed one."""

LEAST_GAIN = 0.05
"""Of an engine's formulas, only those whose error is lower by this fraction than that of all shorter ones are used."""

Structure = tuple[sp.Expr, int]

# Rows on which simplifications are tried, and the relative gain at which their fits end; `settle` fits on all rows.
_TRIAL_ROWS = 300
_TRIAL_GAIN = 1e-3


class Polisher:
    """Shortens formulas on one table; fits are cached by structure."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._few = table.draw_rows(_TRIAL_ROWS, seed=0)
        self._fits: dict[Structure, Candidate | None] = {}
        self._passed: set[Structure] = set()

    def front(self, expressions: Iterable[sp.Expr], *, max_complexity: int) -> Front:
        """The front of the formulas not seen before and of all their simplifications, up to a length."""
        steps = [step for expr in self._select_worthy(expressions) for step in self.simplifications(expr)]
        front = front_of(step for step in steps if step.complexity <= max_complexity)
        # A path follows one step of several; the others that are on the front start paths of their own.
        followed: set[Structure] = set()
        while aside := [step for step in front if structure_key(step.expression) not in followed]:
            followed.update(structure_key(step.expression) for step in aside)
            steps = [further for step in aside for further in self.simplifications(step.expression)]
            front = merge(front, front_of(steps))
        settled = self.settle(front)
        return front_of(step for step in settled if step.complexity <= max_complexity)

    def _select_worthy(self, expressions: Iterable[sp.Expr]) -> Iterator[sp.Expr]:
        """The formulas whose error is lower by the fraction LEAST_GAIN than that of all shorter ones."""
        fits = [self._fit_constants(tidy(expr), limit=math.inf) for expr in expressions if measure(expr, self._few)]
        best = math.inf
        for fit in sorted((fit for fit in fits if fit), key=lambda fit: (fit.complexity, fit.error)):
            if fit.error <= (1 - LEAST_GAIN) * best:
                best = fit.error
                yield fit.expression

    def settle(self, candidates: Iterable[Candidate]) -> Front:
        """The front of the candidates with constants fitted on the whole table, as the parser reads their texts."""
        fits = [fit_constants(step.expression, self._table) for step in front_of(candidates)]
        read = [read_back(tidy(fit.expression), self._table) for fit in fits if fit]
        measured = [measure(expr, self._table) for expr in read if expr is not None]
        return front_of(step for step in measured if step)

    def simplifications(self, expr: sp.Expr) -> Iterator[Candidate]:
        """Yield each formula on a path to shorter ones, and all shorter variants of it whose error is allowed.

        The path follows the variant with the least error; it ends where there is none, or where an earlier path passed.
        """
        here = self._fit_constants(tidy(expr), limit=math.inf)
        while here:
            here = measure(tidy(here.expression), self._few) or here
            if (place := structure_key(here.expression)) in self._passed:
                return
            self._passed.add(place)
            yield here
            shorter = list(self._list_shorter(here))
            yield from shorter
            here = min(shorter, key=lambda step: step.error, default=None)

    def _list_shorter(self, here: Candidate) -> Iterator[Candidate]:
        limit = max(FLOOR, ERROR_RATIO * here.error)
        for expr in shorten(here.expression):
            step = self._fit_constants(expr, limit=limit)
            if step and step.error <= limit and step.complexity < here.complexity:
                yield step

    def _fit_constants(self, expr: sp.Expr, *, limit: float) -> Candidate | None:
        """The formula with its constants fitted; None if it is not finite, or if the limit is out of reach."""
        key = structure_key(expr)
        if key not in self._fits:
            fit = fit_constants(expr, self._few, gain=_TRIAL_GAIN, largest_residual=REACH * limit * self._few.spread)
            if fit is None:
                return None
            self._fits[key] = measure(fit.expression, self._few)
        return self._fits[key]


def read_back(expr: sp.Expr, table: Table) -> sp.Expr | None:
    """The formula as the parser reads its text, which is what files hold; None if the parser refuses it."""
    try:
        return parse(to_text(expr), {name: symbol(name) for name in table.names})
    except ExpressionError:
        return None


def simplify(expr: sp.Expr, table: Table) -> Candidate | None:
    """The shortest formula found whose error is within `ERROR_RATIO` of the given one's; None if that is not finite."""
    fit = fit_constants(expr, table)
    original = measure(fit.expression, table) if fit else None
    if original is None:
        return None
    polisher = Polisher(table)
    front = polisher.settle(polisher.simplifications(expr))
    return next((step for step in front if step.error <= max(FLOOR, ERROR_RATIO * original.error)), original)


Tell = Callable[[int, int, float], None]
"""tell(restart, restarts, best error so far), after each restart."""


def search_front(
    backend: AbstractBackend, table: Table, search: Search, *, seed: int, tell: Tell | None = None
) -> Front:
    """The front of all restarts of an engine, its formulas simplified, constants fitted and errors measured on `table`.

    Raises DiscoveryError if it is empty, FluxforgeError if the engine is not installed.
    """
    if hint := backend.available():
        raise FluxforgeError(hint)
    refuse_constant(table)
    end = math.inf if search.seconds is None else time.monotonic() + search.seconds
    front, polisher = Front(()), Polisher(table)
    for restart, child in enumerate(np.random.SeedSequence(seed).generate_state(search.restarts), start=1):
        if time.monotonic() >= end:
            front = replace(front, ended_by_clock=True)
            break
        explored = backend.explore(table.draw_rows(search.rows, seed=int(child)), search, seed=int(child), end=end)
        polished = polisher.front(explored.formulas, max_complexity=search.max_complexity)
        front = merge(front, replace(polished, ended_by_clock=explored.ended_by_clock))
        if tell:
            tell(restart, search.restarts, front.best_error)
    if not front.candidates:
        spent = f"{search.seconds:g} s" if front.ended_by_clock else f"{search.evaluations} evaluations per restart"
        raise DiscoveryError(
            f"{backend.name}: no formula of at most {search.max_complexity} symbols in {spent}; "
            "increase this limit or max_complexity"
        )
    return front
