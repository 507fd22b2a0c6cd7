"""Every operator of the grammar, and its function of (T_N, T_P) written out by hand."""

import functools
from collections.abc import Callable

import numpy as np
import sympy as sp
from _emit_meshes import fields, table
from _emit_schemes import edge

from fluxforge.mesh import DualGraph
from fluxforge.scheme import Message, Output, Scheme, Stage, symbol

OPERATORS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray | float]] = {
    "T_N + T_P": lambda n, p: n + p,
    "T_N - T_P": lambda n, p: n - p,
    "-T_N - T_P": lambda n, p: -n - p,
    "-T_N**2": lambda n, p: -(n**2),
    "T_N*T_P": lambda n, p: n * p,
    "T_N/T_P": lambda n, p: n / p,
    "T_N/T_P/(T_N + 7)*(T_P - 2)": lambda n, p: n * (p - 2) / (p * (n + 7)),
    "2*(T_N - T_P)*(T_N + T_P)/(3*T_P*(9 + T_N))": lambda n, p: 2 * (n * n - p * p) / (3 * p * (9 + n)),
    "-(T_N - 3*T_P)/T_P": lambda n, p: 3 - n / p,
    "T_N - (T_P - 2*T_N)**2": lambda n, p: n - (p - 2 * n) * (p - 2 * n),
    "T_N - (T_P - (T_N - 5))/4": lambda n, p: n - (p - n + 5) / 4,
    "T_P**2": lambda n, p: p * p,
    "T_P**3": lambda n, p: p * p * p,
    "T_P**7/(1 + T_P**2)": lambda n, p: p * p * p * p * p * p * p / (1 + p * p),
    "T_P**-1": lambda n, p: 1 / p,
    "T_P**-2 + 1/T_P**3": lambda n, p: 1 / (p * p) + 1 / (p * p * p),
    "(T_N + T_P*3)**-2": lambda n, p: 1 / ((n + 3 * p) * (n + 3 * p)),
    "T_P**(1/3)": lambda n, p: np.cbrt(p),
    "T_P**(-2/3)": lambda n, p: 1 / np.cbrt(p) ** 2,
    "T_P**(3/2)": lambda n, p: p * np.sqrt(p),
    "T_P**0.5": lambda n, p: np.sqrt(p),
    "T_P**1.7": lambda n, p: np.exp(1.7 * np.log(p)),
    "T_P**-0.3": lambda n, p: np.exp(-0.3 * np.log(p)),
    "T_P**2.0": lambda n, p: p * p,
    "sqrt(T_P)": lambda n, p: np.sqrt(p),
    "1/sqrt(T_P + T_N**2)": lambda n, p: 1 / np.sqrt(p + n * n),
    "sqrt(T_N - 1)": lambda n, p: np.sqrt(n - 1),
    "exp(-T_N)": lambda n, p: np.exp(-n),
    "exp(T_N)/exp(2*T_P)": lambda n, p: np.exp(n - 2 * p),
    "log(T_P)": lambda n, p: np.log(p),
    "1/log(T_P + 2)**2": lambda n, p: 1 / np.log(p + 2) ** 2,
    "sin(T_N)": lambda n, p: np.sin(n),
    "cos(T_N)*sin(T_P)**2": lambda n, p: np.cos(n) * np.sin(p) ** 2,
    "tan(T_P/2)": lambda n, p: np.tan(p / 2),
    "T_N/tan(T_P)": lambda n, p: n * np.cos(p) / np.sin(p),
    "tanh(3*T_N)": lambda n, p: np.tanh(3 * n),
    "abs(T_N - T_P)": lambda n, p: np.where(n > p, n - p, p - n),
    "min(T_N, T_P)": lambda n, p: np.where(n < p, n, p),
    "max(T_N, T_P)*2": lambda n, p: 2 * np.where(n > p, n, p),
    "min(T_N, min(T_P, 0.7))": lambda n, p: np.stack([n, p + 0 * n, 0.7 + 0 * n]).min(axis=0),
    "max(T_N, max(T_P, 0.7) - 1)": lambda n, p: np.where(
        n > np.where(p > 0.7, p, 0.7) - 1, n, np.where(p > 0.7, p, 0.7) - 1
    ),
    "min(sqrt(T_N - 1), T_P)": lambda n, p: np.where(n < 1, np.nan, np.minimum(np.sqrt(n - 1), p)),
    "max(T_P, sqrt(T_N - 1))": lambda n, p: np.where(n < 1, np.nan, np.maximum(np.sqrt(n - 1), p)),
    "min(sqrt(T_N - 1), tan(T_P))": lambda n, p: np.where(n < 1, np.nan, np.minimum(np.sqrt(n - 1), np.tan(p))),
    "max(sqrt(T_N - 1), tan(T_P))": lambda n, p: np.where(n < 1, np.nan, np.maximum(np.sqrt(n - 1), np.tan(p))),
    "sign(T_N - T_P)": lambda n, p: 1.0 * (n > p) - 1.0 * (n < p),
    "sign(sqrt(T_N - 1))": lambda n, p: np.where(n < 1, np.nan, 1.0 * (n > 1)),
    "T_N < T_P": lambda n, p: 1.0 * (n < p),
    "1 + 100*(T_N > 0.5)": lambda n, p: np.where(n > 0.5, 101.0, 1.0),
    "-(T_P >= T_N)/(2 + (T_N <= 1))": lambda n, p: -1.0 * (p >= n) / (2.0 + (n <= 1)),
    "(T_N < T_P)*(T_P <= 1)": lambda n, p: 1.0 * ((n < p) & (p <= 1)),
    "max(T_N < 0, T_P < 1)": lambda n, p: 1.0 * ((n < 0) | (p < 1)),
    "(T_N < T_P + 1)**2*T_N": lambda n, p: np.where(n < p + 1, n, 0.0),
    "sqrt(T_N - 1) < 2": lambda n, p: 1.0 * ((n >= 1) & (n < 5)),
    "where(T_N > T_P, T_N, -2)": lambda n, p: np.where(n > p, n, -2.0),
    "where(T_N <= 1, 0, log(T_N - 1))": lambda n, p: np.where(n <= 1, 0.0, np.log(np.where(n <= 1, 1.0, n - 1))),
    "where(T_N - T_P, 3, 4)": lambda n, p: np.where(n == p, 4.0, 3.0),
    "where(1 - (T_N < T_P), T_P, T_N)**2/2": lambda n, p: np.where(n < p, n, p) ** 2 / 2,
    "where(sqrt(T_N - 1), 1, 2)": lambda n, p: np.where(n == 1, 2.0, 1.0),
    "2*where(T_N < 0.5, 0.1, 0.3) - T_P": lambda n, p: np.where(n < 0.5, 0.2, 0.6) - p,
    "1/2": lambda n, p: 0.5,
    "-3/7": lambda n, p: -3 / 7,
    "T_N/2 - T_P/3": lambda n, p: n / 2 - p / 3,
    "3/7*T_N + 1/4": lambda n, p: 3 * n / 7 + 0.25,
    "1/(2*T_P)": lambda n, p: 0.5 / p,
    "0.1*T_N - 0.3": lambda n, p: 0.1 * n - 0.3,
    "0.1234567890123456789*T_N": lambda n, p: 0.1234567890123456789 * n,
    "1e-290*T_N": lambda n, p: 1e-290 * n,
    "12345678901234567*T_N": lambda n, p: 12345678901234567.0 * n,
    "T_N/98765432109876543": lambda n, p: n / 98765432109876543.0,
    "T_N*12345678901234567/98765432109876543": lambda n, p: n * (12345678901234567 / 98765432109876543),
    "T_N/(10**10)**2": lambda n, p: n / 1e20,
    "(10**16)**3*T_N": lambda n, p: 1e48 * n,
    "pi*T_N - pi": lambda n, p: np.pi * n - np.pi,
    "sqrt(2)*T_N/pi": lambda n, p: np.sqrt(2) * n / np.pi,
    "T_N + 1 + sqrt(3)": lambda n, p: n + 1 + np.sqrt(3),
    "T_P**sqrt(2)": lambda n, p: np.exp(np.sqrt(2) * np.log(p)),
    "exp(1)*T_N + log(2)": lambda n, p: np.e * n + np.log(2),
    "T_N - sqrt(2)*(T_P - T_N)": lambda n, p: n - np.sqrt(2) * (p - n),
}


# The parser writes cot as 1/tan; a scheme built in Python may still contain it.
_COT = "cot(T_P)"
OPERATORS[_COT] = lambda n, p: np.cos(p) / np.sin(p)


@functools.cache
def operator_schemes() -> dict[str, Scheme]:
    """T' = Σ over the faces of the operator's text."""
    texts = [text for text in OPERATORS if text != _COT]
    schemes = {text: edge(f"operator-{number}", text, "z") for number, text in enumerate(texts)}
    direct = Stage({"z": Message(sp.cot(symbol("T_P")))}, {"T_new": Output(symbol("z"))})
    return schemes | {_COT: Scheme("operator-cot", (direct,), summary="for the tests")}


def operator_values(function: Callable[[np.ndarray, np.ndarray], np.ndarray | float], graph: DualGraph) -> np.ndarray:
    """Σ over the used faces of f(T_N, T_P), straight from the table."""
    t = table(graph)
    T = fields(graph)[0]
    mirrored = T[t["ghost_owner"]] + t["ghost_value"] * t["ghost_delta"]
    T_N = np.concatenate([T, np.where(t["ghost_neumann"], mirrored, t["ghost_value"])])[t["node"]]
    with np.errstate(all="ignore"):
        values = np.broadcast_to(function(T_N, T[:, None]), T_N.shape)
    return np.where(t["used"], values, 0.0).sum(axis=1)
