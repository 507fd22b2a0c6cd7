"""The exchange law that supervised data are made with: the formula of one message. Laws and fluxes that overflow."""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fluxforge.errors import EquationError, ExpressionError
from fluxforge.recipe._data import Data
from fluxforge.recipe._equation import HEAT, equation_of, settings
from fluxforge.recipe._recipe import Recipe

if TYPE_CHECKING:
    import sympy as sp

    from fluxforge.pde import Equation

# How many random edges a law is tried on before it is accepted.
_TRIALS = 256


def exchange_law(data: Data, equation: "Equation | None" = None) -> "sp.Expr | None":
    """The formula of `data.law` in the symbols of a message over an edge, or None for the equation's own flux.

    V stands for V_P, the volume of the cell that receives. The equation, heat unless given, says which parameters the
    formula may contain. Raises ExpressionError for a formula the parser refuses.
    """
    return None if data.law is None else _parsed(data.law, equation)


@lru_cache(maxsize=64)
def _parsed(text: str, equation: "Equation | None") -> "sp.Expr":
    # Imported here, like NumPy below: recipes are read without them, and few have a law.
    from fluxforge.expression import parse
    from fluxforge.pde import HEAT
    from fluxforge.scheme import IN_SPACE, Hop, message_symbols, symbol

    # The volume of a boundary face's far side is infinite, so that a law of it would not be finite there;
    # data are made in the plane.
    carried = message_symbols(Hop.EDGE, (), HEAT if equation is None else equation)
    known = {name: own for name, own in carried.items() if name not in ("V_N", *IN_SPACE)}
    return parse(text, {**known, "V": symbol("V_P")})


def law_problem(recipe: Recipe) -> str | None:
    """Why `data.law` cannot be used, in one line: the parser's reason, or that it is not finite. None if it can."""
    try:
        law = exchange_law(recipe.data, equation_of(recipe))
    except ExpressionError as error:
        return str(error)
    if law is None or _is_finite(law, recipe):
        return None
    return "is not a finite number on every edge: T_P, T_N, n and d take both signs"


def equation_problem(recipe: Recipe) -> tuple[str, str] | None:
    """The field and the reason for which a recipe's equation cannot be trained on; None where it can."""
    if recipe.equation == HEAT and not recipe.parameters:  # whose parameter has a range of its own
        return None
    from fluxforge.scheme import symbol

    try:
        equation = equation_of(recipe)
    except EquationError as error:
        return "equation", str(error)
    try:
        settings(recipe)
    except EquationError as error:
        return "parameters", str(error)
    T, T_P, T_N = map(symbol, ("T", "T_P", "T_N"))
    numbers = {symbol(name): value for name, value in settings(recipe).items()}
    for what, formula in (("capacity", equation.capacity), ("diffusion", equation.diffusion)):
        size = formula.xreplace(numbers) if not formula.has(equation.u) and not equation.diffusion_tensor else None
        if size is not None and (size < 0 or (size == 0 and (what == "capacity" or equation.only_diffuses))):
            return "parameters", f"the {what} of equation {equation.name!r} should be positive, got {size}"
    parts = {"flux": equation.flux(T_P, T_N), "reaction": equation.at_cell(equation.reaction, T)}
    for what, formula in parts.items():
        if not _is_finite(formula, recipe):
            return (
                "equation",
                f"the {what} of {equation.name!r} is not finite for every u from -1 to 1, as data have it",
            )
    return None


def _is_finite(formula: "sp.Expr", recipe: Recipe) -> bool:
    """Whether a law is finite on random edges of about the sizes that data have."""
    import numpy as np

    from fluxforge.expression import evaluate

    edges = _random_edges(recipe)
    try:
        with np.errstate(all="ignore"):
            values = evaluate(formula, {each: edges[each.name] for each in formula.free_symbols}, np)
    except ExpressionError:
        return False
    return bool(np.all(np.isfinite(np.asarray(values, float))))


def _random_edges(recipe: Recipe) -> dict[str, Any]:
    import numpy as np

    rng = np.random.default_rng(0)
    signed = {name: rng.uniform(-1.0, 1.0, _TRIALS) for name in ("T_P", "T_N", "S_P", "S_N")}
    A, delta, V = (rng.uniform(0.2, 3.0, _TRIALS) for _ in range(3))
    of_n, of_d = rng.uniform(0.0, 2 * np.pi, (2, _TRIALS))
    n = {"n_x": np.cos(of_n), "n_y": np.sin(of_n)}
    d = {"d_x": delta * np.cos(of_d), "d_y": delta * np.sin(of_d)}
    d_n = n["n_x"] * d["d_x"] + n["n_y"] * d["d_y"]
    d |= {"d_n": d_n, "d_t": np.abs(n["n_x"] * d["d_y"] - n["n_y"] * d["d_x"])}
    numbers = {"chi": np.ones(_TRIALS), "dt": rng.uniform(0.01, 0.2, _TRIALS)}
    across = np.stack(list(n.values()))
    for p in equation_of(recipe).parameters:
        value = np.asarray(settings(recipe)[p.name], float)
        # a·n of a vector, n·K n of a tensor.
        along = value if value.ndim < 2 else np.einsum("it,ij->jt", across, value)
        seen = along if value.ndim == 0 else value @ across if value.ndim == 1 else (along * across).sum(axis=0)
        numbers |= dict.fromkeys((*p.edge_names(), *p.cell_names), np.broadcast_to(seen, _TRIALS))
        vector = value[:, None] if value.ndim == 1 else along
        rest = np.linalg.norm(vector - seen * across, axis=0) if value.ndim else seen
        numbers |= dict.fromkeys(p.tangential_names, rest)
    return {**signed, "T": signed["T_P"], "A": A, "delta": delta, "V_P": V, **n, **d, **numbers}
