"""Tables of formulas that we know, with errors as smooth as a network's."""

from collections.abc import Callable

import numpy as np
import sympy as sp

from fluxforge.distil import Table, tabulate
from fluxforge.scheme import symbol

A, delta, T_N, T_P, T, S, dt, V, z = map(symbol, ["A", "delta", "T_N", "T_P", "T", "S", "dt", "V", "z"])


def smooth(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Sines of random linear forms, products of two inputs and a slope, of unit rms."""
    U = 2 * (X - X.min(0)) / np.ptp(X, axis=0) - 1
    inputs = X.shape[1]
    waves = sum(rng.normal() * np.sin(U @ (1.5 * rng.normal(size=inputs)) + rng.uniform(0, 6.28)) for _ in range(6))
    pairs = sum(rng.normal() * U[:, i] * U[:, j] for i, j in rng.integers(inputs, size=(4, 2)))
    field = waves + pairs + U @ (0.3 * rng.normal(size=inputs))
    return field / np.sqrt(np.mean(field**2))


def with_error(names: str, X: np.ndarray, y: np.ndarray, *, error: float, rng: np.random.Generator) -> Table:
    return tabulate(names.split(), X, y + error * np.std(y) * smooth(X, rng))


def flux_table(*, c: float = -0.3, error: float = 0.01, seed: int = 0, rows: int = 2000) -> Table:
    """y = c A/δ (T_N − T_P) and an error."""
    rng = np.random.default_rng(seed)
    X = rng.uniform((0.3, 0.3, -1, -1), (2, 2, 1, 1), size=(rows, 4))
    return with_error("A delta T_N T_P", X, c * X[:, 0] / X[:, 1] * (X[:, 2] - X[:, 3]), error=error, rng=rng)


def update_table(kind: str = "whole", *, g: float = 2.0, error: float = 0.01, seed: int = 0, rows: int = 2000) -> Table:
    """y = T + Δt/V g z + Δt S (`whole`), without the T (`change`), or times V/Δt (`rate`), and an error."""
    rng = np.random.default_rng(seed)
    t, s, step, v = rng.uniform((-1, -1, 0.01, 0.3), (1, 1, 0.2, 3), size=(rows, 4)).T
    sides = rng.uniform(0.3, 2, (2, rows)) / rng.uniform(0.3, 2, (2, rows)) * (rng.uniform(-1, 1, (2, rows)) - t)
    flux = sides.sum(0)
    change = step / v * flux + step * s
    y = {"whole": t + change, "change": change, "rate": change * v / step}[kind]
    return with_error("T S dt V z", np.column_stack((t, s, step, v, flux / g)), y, error=error, rng=rng)


def is_flux(expr: sp.Expr) -> bool:
    """Whether a formula is c A/δ (T_N − T_P)."""
    return has_terms(expr, [A * T_N / delta, A * T_P / delta]) and sp.simplify(expr.subs({T_N: 1, T_P: 1})) == 0


UPDATES = {"whole": [T, dt * z / V, dt * S], "change": [dt * z / V, dt * S], "rate": [z, V * S]}


def is_update(kind: str) -> Callable[[sp.Expr], bool]:
    """Whether a formula is the update, the coefficients of all but the message being 1."""
    return lambda expr: (
        has_terms(expr, UPDATES[kind]) and all(sp.expand(expr).coeff(t) == 1 for t in UPDATES[kind] if not t.has(z))
    )


def has_terms(expr: sp.Expr, terms: list[sp.Expr]) -> bool:
    """Whether the formula, multiplied out, is a sum of multiples of these terms, all of them."""
    places = {
        next((k for k, m in enumerate(terms) if (t / m).is_number), None) for t in sp.Add.make_args(sp.expand(expr))
    }
    return places == set(range(len(terms)))
