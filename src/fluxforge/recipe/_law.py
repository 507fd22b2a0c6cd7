"""The exchange law that supervised data are made with: the formula of one message."""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fluxforge.errors import ExpressionError
from fluxforge.recipe._data import Data

if TYPE_CHECKING:
    import sympy as sp

# How many random edges a law is tried on before it is accepted.
_TRIALS = 256


def exchange_law(data: Data) -> "sp.Expr | None":
    """The formula of `data.law` in the symbols of a message over an edge, or None for the flux α A/δ (T_N − T_P).

    V stands for V_P, the volume of the cell that receives. Raises ExpressionError for a formula the parser refuses.
    """
    return None if data.law is None else _parsed(data.law)


@lru_cache(maxsize=64)
def _parsed(text: str) -> "sp.Expr":
    # Imported here, like NumPy below: recipes are read without them, and few have a law.
    from fluxforge.expression import parse
    from fluxforge.scheme import IN_SPACE, Hop, message_symbols, symbol

    # The volume of a boundary face's far side is infinite, so that a law of it would not be finite there;
    # data are made in the plane.
    known = {name: own for name, own in message_symbols(Hop.EDGE, ()).items() if name not in ("V_N", *IN_SPACE)}
    return parse(text, {**known, "V": symbol("V_P")})


def law_problem(data: Data, diffusivity: float) -> str | None:
    """Why `data.law` cannot be used, in one line: the parser's reason, or that it is not finite. None if it can."""
    try:
        law = exchange_law(data)
    except ExpressionError as error:
        return str(error)
    if law is None or _is_finite(law, diffusivity):
        return None
    return "is not a finite number on every edge: T_P, T_N, n and d take both signs"


def _is_finite(law: "sp.Expr", diffusivity: float) -> bool:
    """Whether the law is finite on random edges of about the sizes that data have."""
    import numpy as np

    from fluxforge.expression import evaluate

    edges = _random_edges(diffusivity)
    try:
        with np.errstate(all="ignore"):
            values = evaluate(law, {each: edges[each.name] for each in law.free_symbols}, np)
    except ExpressionError:
        return False
    return bool(np.all(np.isfinite(np.asarray(values, float))))


def _random_edges(diffusivity: float) -> dict[str, Any]:
    import numpy as np

    rng = np.random.default_rng(0)
    signed = {name: rng.uniform(-1.0, 1.0, _TRIALS) for name in ("T_P", "T_N", "S_P", "S_N")}
    A, delta, V = (rng.uniform(0.2, 3.0, _TRIALS) for _ in range(3))
    of_n, of_d = rng.uniform(0.0, 2 * np.pi, (2, _TRIALS))
    n = {"n_x": np.cos(of_n), "n_y": np.sin(of_n)}
    d = {"d_x": delta * np.cos(of_d), "d_y": delta * np.sin(of_d)}
    d_n = n["n_x"] * d["d_x"] + n["n_y"] * d["d_y"]
    d |= {"d_n": d_n, "d_t": np.abs(n["n_x"] * d["d_y"] - n["n_y"] * d["d_x"])}
    numbers = {"alpha": np.full(_TRIALS, diffusivity), "chi": np.ones(_TRIALS), "dt": rng.uniform(0.01, 0.2, _TRIALS)}
    return {**signed, "A": A, "delta": delta, "V_P": V, **n, **d, **numbers}
