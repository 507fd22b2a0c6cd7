"""The numbers of a formula: set free, fitted to the training loss in float64, and rounded where the loss allows it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import sympy as sp
from jaxtyping import Array, Float
from scipy.optimize import least_squares

from fluxforge import recipe
from fluxforge._types import State
from fluxforge.data import Problem
from fluxforge.loss import averaged, defect_of, norm_of
from fluxforge.scheme import Message, Output, Stage, symbol
from fluxforge.simulate import staged

# A rational is proposed up to this denominator, and taken if the loss rises by no more than this part of itself,
# or stays below what float64 leaves of an exact fit.
DENOMINATOR = 12
TOLERATED = 1e-3
NOTHING = 1e-9
# Where |r| is rounded, in units of its mean, so that its minimum can be found by least squares.
SMOOTH = 1e-3
# Evaluations a fit may take: constants that are hardly determined would otherwise creep for ever.
MOST = 80


@dataclass(frozen=True)
class Free:
    """Stages whose numbers are symbols c1, c2, …, and the values they had."""

    stages: tuple[Stage, ...]
    values: Mapping[str, float]

    def filled(self, values: Mapping[str, sp.Expr | float]) -> tuple[Stage, ...]:
        """The stages with numbers in place of the symbols."""
        known = {symbol(name): sp.Float(value) if isinstance(value, float) else value for name, value in values.items()}
        return _mapped(self.stages, lambda expression: expression.subs(known))


@dataclass(frozen=True)
class Fitted:
    """Constants after a refit, how far they scatter over sets of samples, and what rounding them does to the loss."""

    values: Mapping[str, float]
    uncertainty: Mapping[str, float]
    loss: float
    rational: Mapping[str, Fraction]
    rational_loss: float

    @property
    def chosen(self) -> dict[str, sp.Expr | float]:
        """The rational where the loss allows it, the number otherwise."""
        exact = {name: sp.Rational(each.numerator, each.denominator) for name, each in self.rational.items()}
        return {**self.values, **exact}


def set_free(stages: tuple[Stage, ...]) -> Free:
    """Every decimal number becomes a constant; whole numbers are structure. Equal numbers stay apart."""
    values: dict[str, float] = {}

    def freed(expression: sp.Expr) -> sp.Expr:
        if isinstance(expression, sp.Float):
            name = f"c{len(values) + 1}"
            values[name] = float(expression)
            return symbol(name)
        if not expression.args:
            return expression
        return expression.func(*(freed(each) for each in expression.args))

    return Free(_mapped(stages, freed), values)


def _mapped(stages: tuple[Stage, ...], change: Callable[[sp.Expr], sp.Expr]) -> tuple[Stage, ...]:
    return tuple(
        Stage(
            {name: Message(change(each.expression), each.hop) for name, each in stage.messages.items()},
            {name: Output(change(each.expression), each.ghost) for name, each in stage.outputs.items()},
        )
        for stage in stages
    )


def refit(free: Free, loss: recipe.Loss, samples: Sequence[Problem]) -> Fitted:
    """Minimise the training loss over the constants, on each set of samples by itself; the first one's counts.

    Least squares first, from the values regression gave; where the loss is of absolute values, its own minimum from
    there, the corner of |r| rounded at a thousandth of the mean residual.
    """
    names = tuple(free.values)
    objective = Objective(free, loss)
    fits = [objective.fit(problems) for problems in samples]
    best, value = fits[0]
    scatter = np.std([fit for fit, _ in fits], axis=0, ddof=1) if len(fits) > 1 else np.zeros(len(names))
    rational, rounded = _rounded(objective, samples[0], best, value)
    return Fitted(
        values=dict(zip(names, map(float, best), strict=True)),
        uncertainty=dict(zip(names, map(float, scatter), strict=True)),
        loss=value,
        rational=rational,
        rational_loss=rounded,
    )


class Objective:
    """The training loss as a function of the constants, compiled once for all sets of samples of one size."""

    def __init__(self, free: Free, loss: recipe.Loss) -> None:
        defect, norm = defect_of(loss), norm_of(loss)
        self.free, self._norm = free, norm

        def value(c: Float[Array, " constants"], problems: Problem) -> Float[Array, ""]:
            return jax.vmap(lambda p: averaged(defect(p, self._step(c, p)), p, norm))(problems).mean()

        def rows(c: Float[Array, " constants"], problems: Problem) -> Float[Array, " rows"]:
            def one(p: Problem) -> Float[Array, " cells"]:
                # So weighted that the sum of |rows|, or of their squares, is the loss.
                share = p.around.live / p.around.live.sum() / len(problems.dt)
                return jnp.asarray(defect(p, self._step(c, p))) * (share if norm == "l1" else jnp.sqrt(share))

            return jnp.ravel(jax.vmap(one)(problems))

        self._value, self._rows, self._slopes = jax.jit(value), jax.jit(rows), jax.jit(jax.jacfwd(rows))

    def __call__(self, c: Float[np.ndarray, " constants"], problems: Problem) -> float:
        """The loss."""
        return float(self._value(c, problems))

    def fit(
        self, problems: Problem, *, start: Float[np.ndarray, " constants"] | None = None
    ) -> tuple[Float[np.ndarray, " constants"], float]:
        """The constants of least loss, and the loss; from those that regression gave, or from others."""
        start = np.asarray(list(self.free.values.values()), float) if start is None else start
        if not len(start):
            return start, self(start, problems)
        best = self._least(start, problems)
        if self._norm == "l1" and self(best, problems) > NOTHING:
            mean = self(best, problems) / int(problems.around.live.sum())
            best = self._least(best, problems, tolerance=1e-11, loss="soft_l1", f_scale=SMOOTH * mean)
        return np.asarray(best), self(best, problems)

    def _least(
        self, start: Float[np.ndarray, " constants"], problems: Problem, *, tolerance: float = 1e-15, **how: Any
    ) -> np.ndarray:
        found = least_squares(
            lambda c: np.asarray(self._rows(c, problems)),
            start,
            jac=lambda c: np.asarray(self._slopes(c, problems)),
            x_scale="jac",
            max_nfev=MOST,
            xtol=tolerance,
            ftol=tolerance,
            gtol=None,
            **how,
        )
        return np.asarray(found.x)

    def _step(self, c: Float[Array, " constants"], p: Problem) -> State:
        constants = {name: c[k] for k, name in enumerate(self.free.values)}
        parameters = {"dt": p.dt, "alpha": p.diffusivity, **constants}
        return staged(self.free.stages, p.around, p.T, p.S, parameters=parameters)


def _rounded(
    objective: Objective, problems: Problem, best: Float[np.ndarray, " constants"], value: float
) -> tuple[dict[str, Fraction], float]:
    """Rationals one after the other, each kept if the loss does not mind."""
    kept: dict[str, Fraction] = {}
    values, reached = best.copy(), value
    for k, name in enumerate(objective.free.values):
        near = Fraction(float(best[k])).limit_denominator(DENOMINATOR)
        tried = values.copy()
        tried[k] = float(near)
        cost = objective(tried, problems)
        if cost <= value * (1.0 + TOLERATED) + NOTHING:
            kept[name], values, reached = near, tried, cost
    return kept, reached
