"""Constants of a formula of g, fitted to measured fluxes and rounded to fractions where the data allow it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
import sympy as sp
from jaxtyping import Float

from fluxforge.distil._constants import nearest_fraction
from fluxforge.distil._front import parametrise, put_numbers
from fluxforge.distil._simplify import divide_sum
from fluxforge.distil._solvers import gauss_newton
from fluxforge.experiment._setup import Dataset, Form
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import symbol

# Fluxes whose errors are below this fraction of their size have equal weights: error estimates are not that good.
FLOOR = 1e-6
# A formula agrees with the data if the fraction SHARE of the held-out fluxes is within WITHIN times their errors.
SHARE, WITHIN = 0.99, 3.0
# Error estimates are raised to at least this fraction of their root mean square: an estimate is the difference of two
# solutions, which is close to 0 by chance where it changes its sign. Of Riemann problems of Burgers' equation, 0.6 to
# 1.0 % are beyond three times their estimates, and 0.2 to 0.4 % with this.
LEAST_ERROR_SHARE = 0.03
# Difference by round-off of two forms of one formula, relative to the size of the fluxes.
ROUND_OFF = 1e-9
# The largest denominator of a fraction in place of a decimal.
DENOMINATOR = 12
# The relative step of finite differences, and the relative size of singular values that count as zero.
_STEP = 1e-6
_RANK = 1e-9

Residual = Callable[[Float[np.ndarray, "batch constants"]], Float[np.ndarray, "batch samples"]]


@dataclass(frozen=True)
class FittedFormula:
    """A formula of g, the flux that it gives, and its errors on held-out data.

    `error` is the root mean square and `worst` the largest error, both relative to the fluxes; `share` of the samples
    are within three times their own errors; `agrees` says whether the formula agrees with the data within their errors.
    """

    g: sp.Expr
    flux: sp.Expr
    error: float
    worst: float
    share: float
    agrees: bool


def fit_formula(g: sp.Expr, form: Form, data: Dataset) -> FittedFormula | None:
    """The formula with its constants fitted to the data, and replaced by fractions where these fit as well.

    None if the formula is not finite on the data.
    """
    g = normalise_extremes(g)
    fitted = _fit(g, form, data)
    if fitted is None:
        return None
    plain = judge_formula(fitted[0], form, data)
    rounded = _choose_rounded(plain, _round(*fitted, form, data))
    return _shorten(rounded, form, data) if rounded.agrees else rounded


def _shorten(formula: FittedFormula, form: Form, data: Dataset) -> FittedFormula:
    """Drop arguments of min and max, and replace decimals by fractions, as long as the formula agrees with the data."""
    changed = True
    while changed:
        changed = False
        for variant in (*_drop_arguments(formula.g), *_simplify_numbers(formula.g)):
            fitted = _fit(variant, form, data)
            tried = None if fitted is None else judge_formula(fitted[0], form, data)
            # For a shorter formula the error may rise by half of the data's own error.
            if tried is not None and tried.agrees and tried.error <= formula.error + 0.5 * data.held_out.relative_error:
                formula, changed = tried, True
                break
    return formula


def _drop_arguments(g: sp.Expr) -> Iterator[sp.Expr]:
    for extreme in sorted(g.atoms(sp.Min, sp.Max), key=sp.default_sort_key):
        for k in range(len(extreme.args)):
            yield g.xreplace({extreme: extreme.func(*extreme.args[:k], *extreme.args[k + 1 :])})


def _simplify_numbers(g: sp.Expr) -> Iterator[sp.Expr]:
    for size in sorted({abs(float(number)) for number in g.atoms(sp.Float)}):
        near = Fraction(size).limit_denominator(DENOMINATOR)
        exact = sp.Rational(near.numerator, near.denominator)
        yield g.xreplace({n: sp.sign(n) * exact for n in g.atoms(sp.Float) if abs(float(n)) == size})


def _choose_rounded(plain: FittedFormula, rounded: FittedFormula | None) -> FittedFormula:
    """The rounded formula if it agrees with the data, or is about as good as the plain one; else the plain one."""
    if rounded is None:
        return plain
    kept = rounded.agrees >= plain.agrees and rounded.error <= max(1.05 * plain.error, ROUND_OFF)
    return rounded if kept or rounded.agrees else plain


def _round(g: sp.Expr, uncertainty: dict[float, float], form: Form, data: Dataset) -> FittedFormula | None:
    """Replace constants by fractions one after the other, the most certain first, and refit the others each time."""
    done: set[float] = set()
    for _ in range(2 * len(uncertainty) + 1):
        sizes = [size for size in sorted(uncertainty, key=lambda size: uncertainty[size]) if size not in done]
        chosen = next(
            ((size, near) for size in sizes if (near := _nearest_rational(size, uncertainty[size])) is not None), None
        )
        if chosen is None:
            break
        size, near = chosen
        done.add(size)
        exact = {number: sp.sign(number) * near for number in g.atoms(sp.Float) if abs(float(number)) == size}
        again = _fit(g.xreplace(exact), form, data)
        if again is None:
            continue
        g, uncertainty = again
    return judge_formula(g, form, data)


def _nearest_rational(size: float, uncertainty: float) -> sp.Rational | None:
    near = nearest_fraction(size, uncertainty)
    return None if near is None else sp.Rational(near.numerator, near.denominator)


def judge_formula(g: sp.Expr, form: Form, data: Dataset) -> FittedFormula:
    """Measure the errors of a formula, with the constants that it has, on the held-out data."""
    held = data.held_out
    flux = form.compose(g)
    with np.errstate(all="ignore"):
        predicted = _predict(g, form, held)
    off = np.abs(predicted - held.flux)
    least = LEAST_ERROR_SHARE * held.relative_error * held.size
    allowed = WITHIN * np.maximum(held.error, least) + ROUND_OFF * held.size
    share = float(np.mean(off <= allowed))
    error = held.distance(predicted)
    # A few outliers are due to error estimates that are too small; but the errors' root mean square must fit, too.
    agrees = share >= SHARE and error <= WITHIN * held.relative_error + ROUND_OFF
    return FittedFormula(g, flux, error, float(off.max()) / held.size, share, bool(agrees))


def _predict(g: sp.Expr, form: Form, data: Dataset) -> Float[np.ndarray, " samples"]:
    arrays = form.arrays(data.samples)
    values = {symbol(name): arrays.columns[..., k] for k, name in enumerate(form.names)}
    inner = np.broadcast_to(np.asarray(evaluate(g, values, np), float), arrays.weights.shape)
    # 0 · ∞ has no value; a formula that is infinite where its weight is 0 is not finite.
    return arrays.offset + (arrays.weights * inner).sum(axis=1)


def _fit(g: sp.Expr, form: Form, data: Dataset) -> tuple[sp.Expr, dict[float, float]] | None:
    """Weighted least squares over the decimals: the formula, and the uncertainty by size of decimal.

    None if the formula is not finite on the data.
    """
    skeleton, start = parametrise(g)
    fitted = data.fitted
    arrays = form.arrays(fitted.samples)
    columns = {symbol(name): arrays.columns[None, ..., k] for k, name in enumerate(form.names)}
    trust = 1.0 / np.hypot(fitted.error, FLOOR * fitted.size)

    def residual(c: np.ndarray) -> np.ndarray:
        constants = {name: c[:, k, None, None] for k, name in enumerate(start)}
        inner = np.asarray(evaluate(skeleton, {**columns, **constants}, np), float)
        inner = np.broadcast_to(inner, (len(c), *arrays.weights.shape))
        return trust * (arrays.offset + (arrays.weights * inner).sum(axis=2) - fitted.flux)

    values = np.array(list(start.values()))
    with np.errstate(all="ignore"):
        best = gauss_newton(partial(_linearise, residual), values, rounds=40, gain=1e-6, rank=_RANK)
        if best is None or not np.isfinite(best[1]).all():
            return None
        c, r = best
        sigma = _uncertainties(residual, c, r)
    exact = {name: sp.Float(float(value)) for name, value in zip(start, c, strict=True)}
    return put_numbers(skeleton, exact), {abs(float(value)): float(s) for value, s in zip(c, sigma, strict=True)}


def _linearise(residual: Residual, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    steps = _STEP * np.maximum(np.abs(c), 1e-3)
    rows = residual(np.vstack((c, c + np.diag(steps))))
    return rows[0], ((rows[1:] - rows[0]) / steps[:, None]).T


def _uncertainties(residual: Residual, c: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Standard deviations of the constants, from the scatter of the residuals; infinite for undetermined ones."""
    if not len(c):
        return np.zeros(0)
    _, J = _linearise(residual, c)
    _, s, V = np.linalg.svd(J, full_matrices=False)
    kept = s > _RANK * s[0] if len(s) and s[0] > 0 else np.zeros(len(s), bool)
    scatter = float(np.sqrt(np.mean(r**2)))
    sigma = scatter * np.sqrt(((V[kept] / s[kept, None]) ** 2).sum(axis=0))
    lost = (V[~kept] ** 2).sum(axis=0) > 1e-6
    return np.where(lost, np.inf, np.maximum(sigma, 1e-12 * np.abs(c)))


def normalise_extremes(g: sp.Expr) -> sp.Expr:
    """max(2 x, 3 y) → 3 max(2/3 x, y): with a number in front and numbers inside, one would be redundant."""
    if not g.args:
        return g
    parts = [normalise_extremes(part) for part in g.args]
    if not isinstance(g, sp.Max | sp.Min):
        return g.func(*parts)
    lead = max((size for part in parts for size in _coefficients(part)), default=None)
    # A largest coefficient that is not a decimal is not fitted, so that the others are determined already.
    if lead is None or not lead.is_Float or lead == 1:
        return g.func(*parts)
    return lead * g.func(*(divide_sum(part, lead) for part in parts))


def _coefficients(part: sp.Expr) -> list[sp.Expr]:
    """The moduli of the coefficients of all terms except plain numbers."""
    terms = [term.as_coeff_Mul() for term in sp.Add.make_args(part)]
    return [abs(number) for number, rest in terms if rest != 1]
