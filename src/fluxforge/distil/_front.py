"""Candidate formulas: length and error, the Pareto front of both, units, the choice of one, and fits of constants."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import sympy as sp
from jaxtyping import Float

from fluxforge.distil._solvers import gauss_newton
from fluxforge.distil._table import Table, predict
from fluxforge.errors import InputError
from fluxforge.expression._print import to_text
from fluxforge.expression._symbols import symbol
from fluxforge.pde._equation import HEAT, Equation
from fluxforge.pde._parameter import Clash, Unit, dimensions
from fluxforge.scheme._scheme import symbol_units


def complexity(expr: sp.Expr) -> int:
    """Operators + variables + constants of the formula as it is printed; signs and brackets are free.

    a − b is 3, and so are x·x (printed x**2), −2·x and 1/x; a function is one operator, so sqrt(x) is 2; a number is
    one constant, rational or not; 0.3·A/δ·(T_N − T_P) is 9. SymPy multiplies 0.3·(a − b) out, so a coefficient that
    all terms of a sum have in common counts once.
    """
    if expr.is_Add:
        return _sum(expr)
    if expr.is_Mul:
        return _product(expr)
    if expr.is_Pow:
        return _power(expr.base, expr.exp) + 2 * _is_inverse(expr)
    return 1 + sum(complexity(argument) for argument in expr.args) + max(0, len(expr.args) - 2)


def _sum(expr: sp.Add) -> int:
    terms = [term.as_coeff_Mul() for term in expr.args]
    common = {abs(number) for number, _ in terms}
    if len(common) == 1 and common != {sp.S.One}:
        return 2 + complexity(sp.Add(*(sp.sign(number) * rest for number, rest in terms)))
    return sum(complexity(term) for term in expr.args) + len(expr.args) - 1


def _product(expr: sp.Mul) -> int:
    """Factors above and below the line; if there is none above, a 1 is printed."""
    factors = [factor for factor in expr.args if factor != -1]
    parts = [_power(factor.base, factor.exp) if factor.is_Pow else complexity(factor) for factor in factors]
    return sum(parts) + len(parts) - 1 + 2 * all(_is_inverse(factor) for factor in factors)


def _power(base: sp.Expr, exponent: sp.Expr) -> int:
    """Length of b**|e|; a negative exponent is printed as a division."""
    size = abs(exponent)
    return complexity(base) + (0 if size == 1 else 1 if size == sp.S.Half else 2)


def _is_inverse(factor: sp.Expr) -> bool:
    return bool(factor.is_Pow and factor.exp.is_Number and factor.exp.is_negative)


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


def front_of(candidates: Iterable[Candidate]) -> Front:
    """The Pareto set: each candidate is longer than the one before it, and has a smaller error."""
    kept: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda c: (c.complexity, c.error, c.text)):
        if not kept or candidate.error < kept[-1].error:
            kept.append(candidate)
    return Front(tuple(kept))


def merge(*fronts: Front) -> Front:
    """The Pareto set of several; ended by the clock if one of them was."""
    merged = front_of(candidate for front in fronts for candidate in front)
    return replace(merged, ended_by_clock=any(front.ended_by_clock for front in fronts))


def measure(expr: sp.Expr, table: Table) -> Candidate | None:
    """The formula with its length and error; None if it is not finite on the table."""
    error = relative_error(predict(expr, table), table)
    return Candidate(expr, complexity(expr), error) if math.isfinite(error) else None


def relative_error(f: Float[np.ndarray, " rows"], table: Table) -> float:
    """rms(y − f)/rms(y − mean y)."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.linalg.norm(table.y - f) / table.spread)


KNEE_PRICE = 0.2
"""The price of a symbol in log error: one more symbol has to lower the error by about a fifth, to exp(−0.2) of it."""

KNEE_FLOOR = 1e-5
"""Errors below this count as equal: no network is more accurate."""


def choose_knee(front: Front) -> Candidate:
    """The candidate that minimises log max(error, 10⁻⁵) + 0.2 · complexity.

    Where the error stops falling by a fifth per symbol, longer formulas describe the network's own error, which is
    smooth, so that they approach it slowly. On tables with smooth errors of 0.1, 1 and 3 % every price from 0.15 to
    0.25 chooses the formula they were made with; 0.1 follows the network's error too far at 3 %, 0.3 leaves out the
    source of a cell. Raises InputError for an empty front.
    """
    if not front.candidates:
        raise InputError("front: there is no candidate to choose from")
    return min(
        front, key=lambda candidate: math.log(max(candidate.error, KNEE_FLOOR)) + KNEE_PRICE * candidate.complexity
    )


def units_of(names: tuple[str, ...], equation: Equation = HEAT) -> dict[str, Unit]:
    """Units of the known names, such as T_N or delta_PQ; without those of sums, which depend on the gauge."""
    known = symbol_units(equation)
    return {name: unit for name in names if (unit := known.get(name)) is not None}


def consistent(front: Front, units: Mapping[str, Unit]) -> Front:
    """The candidates of a front whose units do not clash."""
    kept = tuple(c for c in front if not isinstance(dimensions(c.expression, units), Clash))
    return Front(kept, front.ended_by_clock)


# Beyond e^700 numbers in double precision are infinite, and below e^-700 zero, or nearly so.
LARGEST_EXPONENT = 700.0
# Rounds of a fit of constants, and the relative step of its finite differences.
_ROUNDS = 20
_STEP = 1e-6
_RANK = 1e-7
"""Singular values below this part of the largest are those of redundant constants, up to finite differences."""


class Fit(NamedTuple):
    """A formula with its constants, and ‖y − f‖."""

    expression: sp.Expr
    residual: float


def fit_constants(expr: sp.Expr, table: Table, *, gain: float = 1e-9, largest_residual: float = math.inf) -> Fit | None:
    """The formula with its decimals c replaced by the minimiser of ‖y − f(X; c)‖; exact numbers stay.

    Decimals of equal size are one constant, so 0.3·a − 0.3·b has one and 0.3·a − 0.4·b two. Gauss–Newton from the
    present values, with halved steps where needed, until a round lowers the residual by less than its fraction `gain`.
    None if the formula is not finite on the table, or if the linear model of the first round predicts a residual
    beyond `largest_residual`.
    """
    with np.errstate(all="ignore"):
        return _fit(expr, table, gain=gain, largest_residual=largest_residual)


def _fit(expr: sp.Expr, table: Table, *, gain: float, largest_residual: float) -> Fit | None:
    skeleton, start = parametrise(expr)
    linearise = partial(_linearise, skeleton, tuple(start), table)
    values = np.array(list(start.values()))
    solution = gauss_newton(linearise, values, rounds=_ROUNDS, gain=gain, rank=_RANK, largest_residual=largest_residual)
    if solution is None or not np.isfinite(solution[1]).all():
        return None
    c, r = solution
    fitted = put_numbers(skeleton, {name: sp.Float(float(value)) for name, value in zip(start, c, strict=True)})
    return Fit(fitted, float(np.linalg.norm(r)))


def _linearise(
    skeleton: sp.Expr, names: tuple[sp.Symbol, ...], table: Table, c: Float[np.ndarray, " constants"]
) -> tuple[np.ndarray, np.ndarray]:
    """f(X; c) − y and its Jacobian by finite differences, from one evaluation of a batch of shifted constants."""
    steps = _STEP * np.abs(c)
    batch = np.vstack((c, c + np.diag(steps)))
    columns = {name: batch[:, k : k + 1] for k, name in enumerate(names)}
    f = np.atleast_2d(predict(skeleton, table, columns))
    return f[0] - table.y, ((f[1:] - f[0]) / steps[:, None]).T


def fit_scale(expr: sp.Expr, table: Table) -> sp.Expr:
    """a·f + b with a and b of least squares; f itself if it is not finite on the table."""
    f = predict(expr, table)
    if not np.all(np.isfinite(f)):
        return expr
    (a, b), *_ = np.linalg.lstsq(np.column_stack((f, np.ones_like(f))), table.y, rcond=None)
    return sp.Float(float(a)) * expr + sp.Float(float(b))


def parametrise(expr: sp.Expr) -> tuple[sp.Expr, Mapping[sp.Symbol, float]]:
    """The formula with one symbol for all decimals ±c of equal size, and the values c by symbol."""
    decimals = {number: float(number) for number in expr.atoms(sp.Float) if number}
    sizes = sorted({abs(value) for value in decimals.values()})
    symbols = {size: symbol(f"_c{k}") for k, size in enumerate(sizes)}
    signed = {number: symbols[value] if value > 0 else -symbols[-value] for number, value in decimals.items()}
    return expr.xreplace(signed), {symbols[size]: size for size in sizes}


def put_numbers(expr: sp.Expr, numbers: Mapping[sp.Symbol, sp.Float]) -> sp.Expr:
    """The formula with numbers for symbols, like `xreplace`, but with `bounded_exponential` for exp."""
    if not expr.args:
        return numbers.get(expr, expr)
    parts = [put_numbers(part, numbers) for part in expr.args]
    return bounded_exponential(*parts) if isinstance(expr, sp.exp) else expr.func(*parts)


def bounded_exponential(argument: sp.Expr) -> sp.Expr:
    """The exponential, a numerical argument limited to ±700, where double precision ends.

    SymPy evaluates it with as many digits as the argument has before its point: exp(-exp(1e6)) takes minutes.
    """
    if not argument.is_Float or abs(argument) <= LARGEST_EXPONENT:
        return sp.exp(argument)
    return sp.exp(sp.Float(LARGEST_EXPONENT if argument > 0 else -LARGEST_EXPONENT))


def structure_key(expr: sp.Expr) -> tuple[sp.Expr, int]:
    """A key that is equal for formulas which differ in the values of their constants only."""
    decimals = expr.atoms(sp.Float)
    mask = symbol("_c")
    return expr.xreplace(dict.fromkeys(decimals, mask)), len({abs(number) for number in decimals})
