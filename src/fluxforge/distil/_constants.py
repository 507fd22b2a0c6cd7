"""Constants of a formula: of least loss, their limit Δt → 0, fractions near them, and those that fit a network best.

The best explicit constants of a residual loss depend on Δt, c(Δt) = c₀ + c₁ Δt + …; the limit is the scheme. A formula
is what a network learned only if the network's own constants explain the network and agree with those of least loss.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import sympy as sp
from jaxtyping import Float

from fluxforge import recipe
from fluxforge._types import State
from fluxforge.data._problem import Problem
from fluxforge.distil._objective import Free, Minimum, Objective, name_values
from fluxforge.loss._loss import Defect, defect_of, norm_of

# Fractions of at most this denominator are candidates.
DENOMINATOR = 12
# A fraction is accepted within WITHIN uncertainties, if the next candidate is at least APART of them away.
WITHIN, APART = 3.0, 4.0
# Constants that are equal in exact arithmetic differ by less than this in float64.
ROUND_OFF = 1e-9


@dataclass(frozen=True)
class Fitted:
    """Constants after a refit with their uncertainties, the fractions they are rounded to, and the loss with either."""

    values: Mapping[str, float]
    uncertainty: Mapping[str, float]
    loss: float
    rational: Mapping[str, Fraction]
    rational_loss: float
    exact: bool = False

    @property
    def chosen(self) -> dict[str, sp.Expr | float]:
        """Each constant by name: its fraction, or the number if it has none."""
        exact = {name: sp.Rational(each.numerator, each.denominator) for name, each in self.rational.items()}
        return {**self.values, **exact}


def refit_constants(free: Free, loss: recipe.Loss, samples: Sequence[Problem]) -> Fitted:
    """Minimise the training loss over the constants, on each set of samples separately; the first gives the values.

    The uncertainty is the standard deviation over the sets, the numerical error, or the spacing of doubles, whichever
    is largest; it is infinite for an undetermined constant.
    """
    names = tuple(free.values)
    objective = Objective.of_loss(free, loss)
    fits = [objective.fit(problems) for problems in samples]
    best = fits[0]
    scatter = np.std([fit.values for fit in fits], axis=0, ddof=1) if len(fits) > 1 else np.zeros(len(names))
    uncertainty = _raise_to_spacing(np.maximum(scatter, best.error), best.values)
    values, off = name_values(names, best.values), name_values(names, uncertainty)
    rational = nearest_fractions(values, off)
    rounded = np.array([float(rational.get(name, value)) for name, value in values.items()])
    return Fitted(
        values=values,
        uncertainty=off,
        loss=best.loss,
        rational=rational,
        rational_loss=objective(rounded, samples[0]),
        exact=best.exact,
    )


def _raise_to_spacing(
    uncertainty: Float[np.ndarray, " constants"], values: Float[np.ndarray, " constants"]
) -> Float[np.ndarray, " constants"]:
    """Uncertainties of at least 2.2e-16 of the values: no value in float64 is known better."""
    return np.maximum(uncertainty, np.finfo(float).eps * np.abs(values))


def nearest_fractions(values: Mapping[str, float], uncertainty: Mapping[str, float]) -> dict[str, Fraction]:
    """The fractions to which constants are rounded; a constant that no fraction fits, or several, is left out."""
    fractions = {name: nearest_fraction(value, uncertainty[name]) for name, value in values.items()}
    return {name: near for name, near in fractions.items() if near is not None}


def nearest_fraction(value: float, uncertainty: float) -> Fraction | None:
    """The fraction of denominator at most 12 within three uncertainties of a number; None if it is none or not unique.

    It is unique if the next candidate is at least four uncertainties away from it. Next to p/q that is 1/(12 q) away or
    farther. None, too, for a number or an uncertainty that is not finite.
    """
    if not (math.isfinite(value) and math.isfinite(uncertainty)):
        return None
    near = Fraction(float(value)).limit_denominator(DENOMINATOR)
    spacing = 1.0 / (DENOMINATOR * near.denominator)
    close = abs(value - near) <= WITHIN * uncertainty + ROUND_OFF
    return near if close and APART * uncertainty <= spacing else None


# The number of points used by an extrapolation, and the degree of the polynomial in Δt.
POINTS, DEGREE = 5, 3


@dataclass(frozen=True)
class Limit:
    """The constants of least loss at every Δt, longest first, with numerical errors and losses; and their limit."""

    steps: tuple[float, ...]
    values: tuple[Mapping[str, float], ...]
    errors: tuple[Mapping[str, float], ...]
    losses: tuple[float, ...]
    fitted: Fitted

    def rows(self) -> list["LimitRow"]:
        """One row per Δt, longest first."""
        return [
            LimitRow(step, dict(values), _drop_infinite(errors), loss)
            for step, values, errors, loss in zip(self.steps, self.values, self.errors, self.losses, strict=True)
        ]


class LimitRow(NamedTuple):
    """The constants of least loss at one Δt; an error is None if the constant is undetermined."""

    step: float
    constants: dict[str, float]
    error: dict[str, float | None]
    loss: float


def small_steps(free: Free, loss: recipe.Loss, problems: Mapping[float, Problem]) -> Limit:
    """Refit at every Δt, longest first, each from the minimum before; extrapolate to Δt = 0; round to fractions.

    `problems` are the samples by their Δt.
    """
    objective = Objective.of_loss(free, loss)
    names, steps = tuple(free.values), tuple(sorted(problems, reverse=True))
    minima: list[Minimum] = []
    for step in steps:
        minima.append(objective.fit(problems[step], start=minima[-1] if minima else None))
    values, errors = (np.asarray([getattr(each, name) for each in minima]) for name in ("values", "error"))
    limit, scatter = extrapolate_constants(np.asarray(steps), values, errors)
    tends_to, uncertainty = name_values(names, limit), name_values(names, scatter)
    rational = nearest_fractions(tends_to, uncertainty)
    shortest = problems[steps[-1]]
    rounded = np.array([float(rational.get(name, value)) for name, value in tends_to.items()])
    fitted = Fitted(
        values=tends_to,
        uncertainty=uncertainty,
        loss=objective(limit, shortest),
        rational=rational,
        rational_loss=objective(rounded, shortest),
    )
    rows, error_rows = (tuple(name_values(names, each) for each in table) for table in (values, errors))
    return Limit(steps, rows, error_rows, tuple(each.loss for each in minima), fitted)


def extrapolate_constants(
    steps: Float[np.ndarray, " steps"],
    values: Float[np.ndarray, "steps constants"],
    errors: Float[np.ndarray, "steps constants"] | None = None,
) -> tuple[Float[np.ndarray, " constants"], Float[np.ndarray, " constants"]]:
    """The limit of the values as the step goes to 0, by a cubic through the shortest five, and its uncertainty.

    The uncertainty is the largest difference from a parabola through the shortest four, and from cubics without one of
    the five: minimisers of Σ|r| are smooth in Δt only as long as the same rows vanish, and a kink between two steps
    shows in these differences. The propagated errors of the values are added.
    """
    steps, values = steps[-POINTS:], values[-POINTS:]
    limit, weights = _extrapolate_to_zero(steps, values, DEGREE)
    others = [_extrapolate_to_zero(steps[1:], values[1:], DEGREE - 1)[0]]
    if len(steps) == POINTS:
        kept = [np.arange(POINTS) != k for k in range(POINTS)]
        others += [_extrapolate_to_zero(steps[some], values[some], DEGREE)[0] for some in kept]
    off = np.max(np.abs(np.asarray(others) - limit), axis=0)
    if errors is not None:
        off = off + np.abs(weights) @ errors[-POINTS:]
    return limit, off


def _extrapolate_to_zero(steps: np.ndarray, values: np.ndarray, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """The polynomial of least squares at 0, and the weight that each value has in it."""
    degree = min(degree, len(steps) - 1)
    weights = np.linalg.pinv(np.vander(steps / steps[0], degree + 1, increasing=True))[0]
    return weights @ values, weights


def _drop_infinite(errors: Mapping[str, float]) -> dict[str, float | None]:
    """The errors, with None for undetermined constants, since JSON has no infinity."""
    return {name: value if math.isfinite(value) else None for name, value in errors.items()}


Step: TypeAlias = Callable[[Problem], State]
Constants: TypeAlias = Mapping[str, float]
# An uncertainty is this many standard errors: of some twenty comparisons in a run, none should fail by chance.
STANDARD_ERRORS = 3.0
# A difference that the unexplained part may cause is tolerated up to this part of a constant.
LARGEST_HIDDEN = 0.1
# A constant whose relative uncertainty in the network is larger than this is not compared.
LARGEST_UNCERTAINTY = 0.25


@dataclass(frozen=True)
class Reading:
    """A formula beside a network at one Δt.

    - `own`: the network's own constants, with which the formula fits the network best; `least`: those of least loss;
    - `explained`: 1 − ‖formula − network‖/‖network − T‖, root mean square, with `own`; `explained_by_least` with
      `least`;
    - `own_uncertainty`, `least_uncertainty`: three standard errors over the sample, plus the numerical error; the
      latter is at least the spacing of doubles.
      The part of the network that the formula does not explain differs from problem to problem, so that the former
      contains it;
    - `hidden`: the change of a constant whose effect is as large as the unexplained part, which may hide it.
    """

    step: float
    own: Constants
    own_uncertainty: Constants
    hidden: Constants
    least: Constants
    least_uncertainty: Constants
    explained: float
    explained_by_least: float
    loss: float
    exact: bool

    def is_telling(self, name: str) -> bool:
        """Whether the network determines this constant well enough at this Δt to be compared."""
        return self.own_uncertainty[name] <= LARGEST_UNCERTAINTY * max(
            abs(self.own[name]), abs(self.least[name]), LARGEST_UNCERTAINTY
        )

    def gap(self, name: str) -> float:
        """|own − least| relative to the largest difference allowed: the two agree if it is at most 1.

        Allowed is the sum of their uncertainties, or a difference whose effect is below the unexplained part, but no
        more than a tenth of the constant: a network that is exactly the formula must have exactly its constants.
        """
        size = max(abs(self.own[name]), abs(self.least[name]))
        allowed = max(
            self.own_uncertainty[name] + self.least_uncertainty[name], min(self.hidden[name], LARGEST_HIDDEN * size)
        )
        gap = abs(self.own[name] - self.least[name]) / (allowed + ROUND_OFF)
        return gap if math.isfinite(gap) else math.inf


def read_constants(
    free: Free, step: Step, loss: recipe.Loss, problems: Mapping[float, Problem], *, start: Constants | None = None
) -> tuple[Reading, ...]:
    """One reading per Δt, longest first; `step` is the network's, and `problems` differ from Δt to Δt in Δt only."""
    defect, norm = defect_of(loss), norm_of(loss)
    ours, theirs = Objective(free, defect, norm), Objective(free, _defect_beside_answer(defect), norm)
    relative = Objective(free, _relative_error, "l2")
    names = tuple(free.values)
    readings: list[Reading] = []
    least: Minimum | np.ndarray | None = None if start is None else np.array([start[name] for name in names])
    own: Minimum | None = None
    for length in sorted(problems, reverse=True):
        at_step = problems[length]
        least = ours.fit(at_step, start=least)
        by_network = _answer_by_network(step, at_step)
        own = theirs.fit(by_network, start=least.values if own is None else own)
        off = float(np.sqrt(relative(own.values, by_network)))
        least_error = STANDARD_ERRORS * ours.standard_error(at_step, least) + least.error
        readings.append(
            Reading(
                step=length,
                own=name_values(names, own.values),
                own_uncertainty=name_values(
                    names, STANDARD_ERRORS * theirs.standard_error(by_network, own) + own.error
                ),
                hidden=name_values(names, off * relative.spread(by_network, own)),
                least=name_values(names, least.values),
                least_uncertainty=name_values(names, _raise_to_spacing(least_error, least.values)),
                explained=1.0 - off,
                explained_by_least=float(1.0 - np.sqrt(relative(least.values, by_network))),
                loss=least.loss,
                exact=least.exact,
            )
        )
    return tuple(readings)


def _defect_beside_answer(defect: Defect) -> Defect:
    """The defect of a step minus that of the answer: zero where the step equals the answer, in the loss's measure."""

    def difference(problem: Problem, new: State) -> State:
        return defect(problem, new) - defect(problem, problem.answer)

    return difference


def _relative_error(problem: Problem, new: State) -> State:
    """(T' − answer)/‖answer − T‖, root mean square over the live cells: every problem counts the same."""
    live = problem.graph.live
    change = jnp.where(live, problem.answer - problem.T, 0.0)
    size = jnp.sqrt(jnp.square(change).sum() / live.sum())
    return (new - problem.answer) / size


@eqx.filter_jit
def _answer_by_network(step: Step, problems: Problem) -> Problem:
    """The same problems with the network's step as their answer."""
    answers = jax.lax.map(step, problems)
    return eqx.tree_at(lambda p: p.answer, problems, answers)


def own_limit(readings: Sequence[Reading], least: Constants | None) -> tuple[dict[str, float], dict[str, float]]:
    """The limits of the network's own constants for Δt → 0 and their uncertainties, both by name.

    A polynomial of second degree is fitted to the network's constants, weighted by their uncertainties. `least` are the
    limits of the constants of least loss: the amount by which the same polynomial misses them is added to the
    uncertainty. If `least` is None, the constants are taken to be independent of Δt, and their mean is returned.
    """
    degree = 0 if least is None else min(2, len(readings) - 1)
    X = np.vander([reading.step / readings[0].step for reading in readings], degree + 1, increasing=True)
    values, off = {}, {}
    for name in readings[0].own:
        sigma = np.array([reading.own_uncertainty[name] for reading in readings]) + ROUND_OFF
        if not np.isfinite(sigma).all():
            values[name], off[name] = readings[0].own[name], np.inf
            continue
        at_zero = np.linalg.pinv(X / sigma[:, None])[0] / sigma
        values[name] = float(at_zero @ [reading.own[name] for reading in readings])
        missed = 0.0 if least is None else at_zero @ [reading.least[name] for reading in readings] - least[name]
        # Errors of one network at different Δt are not independent, so that the errors are added, not their squares.
        off[name] = float(np.abs(at_zero) @ sigma + abs(missed))
    return values, off
