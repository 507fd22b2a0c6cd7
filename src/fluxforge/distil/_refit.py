"""The constants of a formula, fitted again."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import sympy as sp
from jaxtyping import Float

from fluxforge.distil._predict import predict
from fluxforge.distil._table import Table
from fluxforge.expression import symbol

_ROUNDS = 20
_HALVINGS = 4
_STEP = 1e-6
_RANK = 1e-7
"""Singular values below this part of the largest are those of constants that do the same: differences are no better."""


class Fit(NamedTuple):
    """A formula with its constants, and ‖y − f‖."""

    expression: sp.Expr
    residual: float


def refit(expr: sp.Expr, table: Table, *, gain: float = 1e-9, hopeless: float = math.inf) -> Fit | None:
    """Argmin over c of ‖y − f(X; c)‖, where c are the decimals of the formula: exact numbers stay as they are.

    Decimals of equal size are one constant, so 0.3·a − 0.3·b has one and 0.3·a − 0.4·b two. Gauss–Newton from the
    present values with halved steps where need be, until a round gains less than the part `gain`. Nothing if the
    formula is not finite on the table, or if the first round foresees a residual beyond `hopeless`.
    """
    with np.errstate(all="ignore"):
        return _gauss_newton(expr, table, gain=gain, hopeless=hopeless)


def _gauss_newton(expr: sp.Expr, table: Table, *, gain: float, hopeless: float) -> Fit | None:
    skeleton, start = parametrise(expr)
    model = _Model(skeleton, tuple(start), table)
    c = np.array(list(start.values()))
    r, J = model.linearised(c)
    for round_ in range(_ROUNDS if start else 0):
        if not (np.all(np.isfinite(r)) and np.all(np.isfinite(J))):
            break
        move = np.linalg.lstsq(J, -r, rcond=_RANK)[0]
        if round_ == 0 and np.linalg.norm(r + J @ move) > hopeless:
            return None
        before = np.linalg.norm(r)
        c, r, J = model.descend(c, r, J, move)
        if np.linalg.norm(r) >= (1 - gain) * before:
            break
    if not np.all(np.isfinite(r)):
        return None
    fitted = skeleton.xreplace({name: sp.Float(float(value)) for name, value in zip(start, c, strict=True)})
    return Fit(fitted, float(np.linalg.norm(r)))


class _Model:
    """f(X; c) − y and its slopes: one evaluation, c and its neighbours being a batch."""

    def __init__(self, skeleton: sp.Expr, names: tuple[sp.Symbol, ...], table: Table) -> None:
        self._skeleton, self._names, self._table = skeleton, names, table

    def linearised(self, c: Float[np.ndarray, " constants"]) -> tuple[np.ndarray, np.ndarray]:
        steps = _STEP * np.abs(c)
        batch = np.vstack((c, c + np.diag(steps)))
        columns = {name: batch[:, k : k + 1] for k, name in enumerate(self._names)}
        f = np.atleast_2d(predict(self._skeleton, self._table, columns))
        return f[0] - self._table.y, ((f[1:] - f[0]) / steps[:, None]).T

    def descend(
        self, c: np.ndarray, r: np.ndarray, J: np.ndarray, move: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The first of the move, half of it, … that lowers the residual; no move if none does."""
        for halving in range(_HALVINGS):
            there = c + move / 2**halving
            r_there, J_there = self.linearised(there)
            if np.linalg.norm(r_there) < np.linalg.norm(r):
                return there, r_there, J_there
        return c, r, J


def scaled(expr: sp.Expr, table: Table) -> sp.Expr:
    """a·f + b with the a and b of least squares; f itself where it is not finite."""
    f = predict(expr, table)
    if not np.all(np.isfinite(f)):
        return expr
    (a, b), *_ = np.linalg.lstsq(np.column_stack((f, np.ones_like(f))), table.y, rcond=None)
    return sp.Float(float(a)) * expr + sp.Float(float(b))


def parametrise(expr: sp.Expr) -> tuple[sp.Expr, Mapping[sp.Symbol, float]]:
    """The formula with a symbol for every size of decimal, and their values."""
    decimals = {number: float(number) for number in expr.atoms(sp.Float) if number}
    sizes = sorted({abs(value) for value in decimals.values()})
    symbols = {size: symbol(f"_c{k}") for k, size in enumerate(sizes)}
    signed = {number: symbols[value] if value > 0 else -symbols[-value] for number, value in decimals.items()}
    return expr.xreplace(signed), {symbols[size]: size for size in sizes}


def structure(expr: sp.Expr) -> tuple[sp.Expr, int]:
    """What a formula has in common with those that differ in the values of its constants only."""
    decimals = expr.atoms(sp.Float)
    mask = symbol("_c")
    return expr.xreplace(dict.fromkeys(decimals, mask)), len({abs(number) for number in decimals})
