"""A step as a series in its own operator:  T' − T = Σₖ pₖ (ΔtL)ᵏ T + Σₖ qₖ (ΔtL)ᵏ Δt S.

Every scheme that repeats the flux, in layers or over hops, is such a series, whatever its messages are called; so the
coefficients say what a network does without asking how. Nested, as layers do it, hₖ = T + aₖ Δt S + cₖ ΔtL hₖ₋₁.
"""

from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fluxforge._types import State
from fluxforge.data import Problem, linearised

Step = Callable[[Problem], State]


@dataclass(frozen=True)
class Series:
    """p₁ … p_L and q₀ … q_{L−1}, and the part of T' − T that they leave unexplained, root mean square."""

    temperature: tuple[float, ...]
    source: tuple[float, ...]
    unexplained: float

    @property
    def nested(self) -> dict[str, float]:
        """The same as constants of L layers: a₁, c₁ of the first to a_L, c_L of the last."""
        L = len(self.temperature)
        found: dict[str, float] = {}
        for k in range(1, L + 1):
            # Layer k's factors: pᵢ = c_L c_{L−1} … over i factors, and qᵢ has one a at its end.
            deeper, shallower = self.temperature[L - k], 1.0 if k == L else self.temperature[L - k - 1]
            found[f"a{k}"] = self.source[L - k] / shallower
            found[f"c{k}"] = deeper / shallower
        return found


def series(step: Step, problems: Problem, order: int) -> Series:
    """Least squares over all live cells of all problems, each problem's rows divided by the size of its T' − T."""
    rows, answers = _rows(step, order, problems)
    X, y = np.asarray(rows, float).reshape(-1, 2 * order), np.asarray(answers, float).ravel()
    found = np.linalg.lstsq(X, y, rcond=None)[0]
    off = float(np.linalg.norm(y - X @ found) / np.linalg.norm(y))
    return Series(tuple(map(float, found[:order])), tuple(map(float, found[order:])), off)


@eqx.filter_jit
def _rows(step: Step, order: int, problems: Problem) -> tuple[Array, Array]:
    """Compiled once for networks of the same shape: a step that is a module is data."""

    def one(p: Problem) -> tuple[Float[Array, "cells columns"], Float[Array, " cells"]]:
        live = p.graph.live
        y = jnp.where(live, step(p) - p.T, 0.0)
        X = jnp.where(live[:, None], jnp.stack(_columns(p, order), axis=1), 0.0)
        size = jnp.sqrt(jnp.square(y).sum() / live.sum())
        return X / size, y / size

    return jax.vmap(one)(problems)


def _columns(p: Problem, order: int) -> list[Array]:
    """ΔtLT, (ΔtL)²T, …, then ΔtS, ΔtLΔtS, …; boundary data enter the first only, since later ones are of rates."""

    def once(u: Array) -> Array:
        return p.dt * L(u)

    L = linearised(p.rate, p.T)
    of_T, of_S = [p.dt * (p.rate(p.T) - p.S)], [p.dt * p.S]
    for _ in range(order - 1):
        of_T.append(once(of_T[-1]))
        of_S.append(once(of_S[-1]))
    return [*of_T, *of_S]
