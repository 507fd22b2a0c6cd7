"""Stages with free constants, and the constants of least loss, fitted in float64, each with an error estimate."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
import sympy as sp
from jaxtyping import Array, Bool, Float, Int

from fluxforge import recipe
from fluxforge._types import State
from fluxforge.data._problem import Problem
from fluxforge.distil._solvers import gauss_newton, least_absolute
from fluxforge.expression._symbols import symbol
from fluxforge.graph._stages import evaluate_stages
from fluxforge.loss._loss import Defect, defect_of, mean_defect, norm_of
from fluxforge.scheme._scheme import Message, Output, Stage

Constants = Float[np.ndarray, " constants"]
# The largest number of rounds of a fit by least squares: poorly determined constants converge very slowly.
MOST_EVALUATIONS = 80
# The largest number of linear programmes per fit; each is a Newton step, and products of constants need three or four.
MOST_PROGRAMMES = 30
# Singular directions below this part of the largest count as dependent.
RANK = 1e-9
# A loss of at most this many times its round-off is an exact fit: Σ|r| has no vertex to be found there.
EXACT = 10.0
# Bootstrap samples for the standard errors of constants.
BOOTSTRAP_SAMPLES = 12
# Relative changes of constants that reveal the round-off of the rows; effects of their squares are smaller.
RELATIVE_CHANGES = (1.0e-9, 1.37e-9, 2.11e-9)


@dataclass(frozen=True)
class Free:
    """Stages in which symbols c1, c2, … stand for decimal numbers, and the values of these numbers."""

    stages: tuple[Stage, ...]
    values: Mapping[str, float]

    def fill_constants(self, values: Mapping[str, sp.Expr | float]) -> tuple[Stage, ...]:
        """The stages with numbers in place of the symbols."""
        known = {symbol(name): sp.Float(value) if isinstance(value, float) else value for name, value in values.items()}
        return _map_formulas(self.stages, lambda expression: expression.subs(known))


def set_free(stages: tuple[Stage, ...]) -> Free:
    """Replace every decimal number by a symbol of its own; integers and fractions are structure and stay."""
    values: dict[str, float] = {}

    def free_numbers(expression: sp.Expr) -> sp.Expr:
        if isinstance(expression, sp.Float):
            name = f"c{len(values) + 1}"
            values[name] = float(expression)
            return symbol(name)
        if not expression.args:
            return expression
        return expression.func(*(free_numbers(each) for each in expression.args))

    return Free(_map_formulas(stages, free_numbers), values)


def _map_formulas(stages: tuple[Stage, ...], change: Callable[[sp.Expr], sp.Expr]) -> tuple[Stage, ...]:
    return tuple(
        Stage(
            {name: Message(change(each.expression), each.hop) for name, each in stage.messages.items()},
            {name: Output(change(each.expression), each.ghost) for name, each in stage.outputs.items()},
        )
        for stage in stages
    )


@dataclass(frozen=True)
class Minimum:
    """The constants of least loss, the loss, and the numerical error of each constant.

    The error is round-off propagated through the fit; it does not include the scatter between samples. It is infinite
    for an undetermined constant: nothing depends on it, or another one has the same effect. `exact`: the loss is mere
    round-off. `corner`: the indices of the rows that vanish at the minimum of a loss of absolute values.
    """

    values: Constants
    loss: float
    error: Constants
    exact: bool = False
    corner: Int[np.ndarray, " free"] | None = None


def name_values(names: Iterable[str], values: Iterable[float]) -> dict[str, float]:
    """Values by name, as Python floats."""
    return dict(zip(names, map(float, values), strict=True))


class Objective:
    """A loss as a function of the constants, compiled once for all sets of samples of one size.

    `defect` is zero in every cell at an ideal step; the loss is its mean size (`l1`) or mean square (`l2`).
    """

    def __init__(self, free: Free, defect: Defect, norm: str) -> None:
        self.free, self._norm = free, norm

        def value(c: Float[Array, " constants"], problems: Problem) -> Float[Array, ""]:
            return jax.vmap(lambda p: mean_defect(defect(p, self._step(c, p)), p, norm))(problems).mean()

        def rows(c: Float[Array, " constants"], problems: Problem) -> Float[Array, " rows"]:
            def one(p: Problem) -> Float[Array, " cells"]:
                # Weighted so that the sum of |rows|, or of their squares, is the loss.
                share = p.graph.live / p.graph.live.sum() / len(problems.dt)
                return jnp.asarray(defect(p, self._step(c, p))) * (share if norm == "l1" else jnp.sqrt(share))

            return jnp.ravel(jax.vmap(one)(problems))

        self._value, self._rows, self._slopes = jax.jit(value), jax.jit(rows), jax.jit(jax.jacfwd(rows))

    @staticmethod
    def of_loss(free: Free, loss: recipe.Loss) -> "Objective":
        """The training loss of a recipe; raises InputError unless it has exactly one term that depends on data."""
        return Objective(free, defect_of(loss), norm_of(loss))

    def __call__(self, c: Constants, problems: Problem) -> float:
        """The loss for the constants c, averaged over the problems."""
        return float(self._value(c, problems))

    def fit(self, problems: Problem, *, start: "Constants | Minimum | None" = None) -> Minimum:
        """The constants of least loss. Iteration begins at `start`, by default at the constants of the formula.

        `start` may be a minimum at another Δt, of which the rows that vanish are a first guess, too.
        Least squares come first. The minimum of a loss of absolute values is a vertex: the rows are linearised, and
        the linear programme solved exactly, until the constants do not change.
        """
        corner = start.corner if isinstance(start, Minimum) else None
        c = start.values if isinstance(start, Minimum) else start
        c = np.asarray(list(self.free.values.values()), float) if c is None else c
        if not len(c):
            return Minimum(c, self(c, problems), np.zeros(0))
        rows, slopes = self._functions(problems)
        best = _least_squares(rows, slopes, c)
        noise = _round_off(rows, best)
        free = _find_determined(slopes(best), best, noise)
        exact = bool(np.abs(rows(best)).sum() <= EXACT * noise.sum())
        if self._norm == "l1" and not exact and free.any():
            best, corner = least_corner(rows, slopes, best, free, near=corner)
        else:
            best, corner = _settle(rows, slopes, best, free), None
        # At the new values, constants that were determined may have the same effect as others.
        free[free] = _find_determined(slopes(best)[:, free], best[free], noise)
        corner = corner if corner is not None and len(corner) == free.sum() else None
        error = np.full(len(best), np.inf)
        J = slopes(best)[:, free]
        carried = np.linalg.pinv(J) * noise if corner is None else np.linalg.pinv(J[corner]) * noise[corner]
        error[free] = np.sqrt(np.square(carried).sum(axis=1))
        return Minimum(best, self(best, problems), error, exact, corner)

    def spread(self, problems: Problem, best: Minimum) -> Constants:
        """The largest change of each constant if the rows change by a vector of length 1; 0 if it is undetermined."""
        off, free = np.zeros(len(best.values)), np.isfinite(best.error)
        _, slopes = self._functions(problems)
        off[free] = np.linalg.norm(np.linalg.pinv(slopes(best.values)[:, free]), axis=1)
        return off

    def standard_error(self, problems: Problem, best: Minimum) -> Constants:
        """The standard errors of the constants over the sample, by the bootstrap.

        Problems are drawn again with replacement, and the rows linearised at the minimum are solved for each draw.
        Cells of one problem are not independent of each other, problems are. Infinite for an undetermined constant.
        """
        off = np.where(np.isfinite(best.error), 0.0, np.inf)
        free = np.isfinite(best.error)
        if best.exact or not free.any():
            return off
        rows, slopes = self._functions(problems)
        r, J = rows(best.values), slopes(best.values)[:, free]
        owner = np.nonzero(np.asarray(problems.graph.live))[0]
        count = len(problems.dt)
        draws = np.random.default_rng(0).integers(count, size=(BOOTSTRAP_SAMPLES, count))
        moves = []
        for draw in draws:
            times = np.bincount(draw, minlength=count)[owner].astype(float)
            drawn = np.flatnonzero(times)
            r_drawn, J_drawn, times = r[drawn], J[drawn], times[drawn]
            if self._norm == "l1":
                # The drawn rows that vanish at the minimum over all problems, and the next smallest ones.
                near = np.argsort(np.abs(r_drawn), kind="stable")[: J.shape[1]]
                moves.append(least_absolute(times * r_drawn, times[:, None] * J_drawn, near=near).move)
            else:
                weight = np.sqrt(times)
                moves.append(np.linalg.lstsq(weight[:, None] * J_drawn, -weight * r_drawn, rcond=None)[0])
        off[free] = np.std(moves, axis=0, ddof=1)
        return off

    def _functions(self, problems: Problem) -> "tuple[Rows, Rows]":
        """The rows of live cells and their slopes, as functions of the constants."""
        live = np.flatnonzero(np.asarray(problems.graph.live).ravel())
        rows, slopes = (partial(self._evaluate_live, each, live, problems) for each in (self._rows, self._slopes))
        return rows, slopes

    def _evaluate_live(
        self, function: Callable[..., Array], live: np.ndarray, problems: Problem, c: Constants
    ) -> np.ndarray:
        return np.asarray(function(c, problems))[live]

    def _step(self, c: Float[Array, " constants"], p: Problem) -> State:
        constants = {name: c[k] for k, name in enumerate(self.free.values)}
        return evaluate_stages(self.free.stages, p.graph, p.T, p.S, parameters={**p.step_parameters, **constants})


Rows = Callable[[Constants], np.ndarray]


def _least_squares(rows: Rows, slopes: Rows, start: Constants) -> Constants:
    solution = gauss_newton(
        lambda c: (rows(c), slopes(c)), start, rounds=MOST_EVALUATIONS, gain=1e-15, rank=1e-12, halvings=20
    )
    assert solution is not None
    return solution[0]


def _settle(rows: Rows, slopes: Rows, c: Constants, free: Bool[np.ndarray, " constants"]) -> Constants:
    """Gauss–Newton on the free constants until they do not change.

    A solver that stops where the sum of squares no longer falls determines only half of their digits.
    """
    before = np.inf
    for _ in range(MOST_PROGRAMMES):
        move = np.linalg.lstsq(slopes(c)[:, free], -rows(c), rcond=None)[0]
        size = np.abs(move).max(initial=0.0)
        if not size < before:
            break
        c = c.copy()
        c[free] += move
        before = size
    return c


def least_corner(
    rows: Rows, slopes: Rows, c: Constants, free: Bool[np.ndarray, " constants"], *, near: np.ndarray | None
) -> tuple[Constants, np.ndarray | None]:
    """Minimise Σ |rows| over the free constants by Newton steps from vertex to vertex.

    Returns the constants and the indices of the rows that vanish there. `near`: such indices of a similar problem.
    """
    value = np.abs(rows(c)).sum()
    corner = near
    for _ in range(MOST_PROGRAMMES):
        # Where constants depend on each other, fewer rows vanish, which cannot be the start of the next programme.
        start = corner if corner is not None and len(corner) == free.sum() else None
        vertex = least_absolute(rows(c), slopes(c)[:, free], near=start)
        move = np.zeros(len(c))
        move[free] = vertex.move
        corner = vertex.rows
        size = 1.0
        while (there := np.abs(rows(c + size * move)).sum()) > value and size > 1e-6:
            size /= 2.0
        # At the corner itself the move is round-off, and no shorter one lowers the sum either.
        if there > value or np.array_equal(c + size * move, c):
            break
        c, value, before = c + size * move, there, value
        if before - value <= 4.0 * np.finfo(float).eps * value and np.all(np.abs(move) <= 1e-12 * np.abs(c).max()):
            break
    return c, corner


def _round_off(rows: Rows, c: Constants) -> np.ndarray:
    """The round-off of each row, by second differences over a billionth, where curvature is negligible.

    A change of constants in the last place would not show it: at short steps it changes no digit of T'.
    """
    here = rows(c)
    return np.max([np.abs(rows(c * (1.0 + h)) + rows(c * (1.0 - h)) - 2.0 * here) for h in RELATIVE_CHANGES], axis=0)


def _find_determined(J: np.ndarray, c: Constants, noise: np.ndarray) -> Bool[np.ndarray, " constants"]:
    """A mask of the constants that the rows determine; of several with the same effect, the first by pivoting."""
    size = np.abs(J).sum(axis=0)
    seen = size * np.maximum(np.abs(c), 1.0) > EXACT * noise.sum()
    chosen = np.zeros(len(c), bool)
    if not seen.any():
        return chosen
    _, R, order = scipy.linalg.qr(J[:, seen] / np.linalg.norm(J[:, seen], axis=0), mode="economic", pivoting=True)
    kept = np.abs(np.diag(R)) > RANK * abs(R[0, 0])
    chosen[np.flatnonzero(seen)[order[: len(kept)][kept]]] = True
    return chosen
