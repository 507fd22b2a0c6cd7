"""The equation of a recipe, the values of its parameters, its exchange law, and the rules that depend on them."""

import json
import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import replace

from fluxforge._files import escape_unprintable
from fluxforge.errors import EquationError, ExpressionError
from fluxforge.recipe._messages import Clash, Place, describe_value, join_words
from fluxforge.recipe._recipe import HEAT, LARGEST_PARAMETER, Data, Experiment, Meshes, Recipe, Rows, Skew

if TYPE_CHECKING:
    import sympy as sp

    from fluxforge.pde._equation import Equation
    from fluxforge.pde._parameter import Parameter

Value: TypeAlias = float | tuple[Any, ...]
"""A parameter's value: a number, the components of a vector, or the rows of a tensor; the same everywhere."""

# Data are made in the plane.
DIMENSION = 2


def equation_of(recipe: Recipe) -> "Equation":
    """The equation of a recipe; raises EquationError for a name, a file or a table that does not give one."""
    # Imported here: recipes are listed and shown without SymPy.
    from fluxforge import pde

    if isinstance(recipe.equation, str):
        return pde.find(recipe.equation)
    return _parse_equation(json.dumps(recipe.equation, sort_keys=True))


@lru_cache(maxsize=64)
def _parse_equation(text: str) -> "Equation":
    from fluxforge import pde

    return pde.from_document(json.loads(text))


def settings(recipe: Recipe) -> dict[str, Value]:
    """The value of every parameter of the recipe's equation, defaults included; `recipe.diffusivity` sets heat's α.

    Raises EquationError for a name that is no parameter of the equation, and for a parameter of the equation without a
    value or with a value of another shape.
    """
    equation = equation_of(recipe)
    values = equation.settings(recipe.parameters, diffusivity=recipe.diffusivity)
    for name in values:
        equation.parameter(name)
    return {p.name: _check_value(equation, p, values.get(p.name, p.default)) for p in equation.parameters}


def diffusivity_of(recipe: Recipe) -> float:
    """The value of the parameter whose meaning is `diffusivity`: α of a recipe about heat.

    Raises EquationError where the equation has no such parameter.
    """
    equation = equation_of(recipe)
    for p in equation.parameters:
        if p.meaning == "diffusivity":
            value = settings(recipe)[p.name]
            assert isinstance(value, float)
            return value
    raise EquationError(f"equation {equation.name!r} has no diffusivity")


def with_equation_inside(table: Any, folder: str | os.PathLike[str], where: str) -> Any:
    """A recipe's table in which the name of an equation's file, relative to `folder`, is replaced by its content.

    A run then does not need the file any more. A table without such a name, or another value, is returned as it is.
    Raises RecipeError if the file cannot be read or holds no equation.
    """
    name = table.get("equation") if isinstance(table, Mapping) else None
    if not isinstance(name, str) or not name.endswith(".toml"):
        return table
    from fluxforge import pde

    try:
        equation = pde.find(os.path.join(folder, name))
    except EquationError as error:
        raise Place(where, "equation").refuse(escape_unprintable(str(error))) from error
    return {**table, "equation": pde.to_document(equation)}


def self_contained(recipe: Recipe) -> Recipe:
    """The same recipe, in which the name of an equation's file is replaced by its content.

    The name is relative to the working folder. Raises RecipeError if the file cannot be read or holds no equation.
    """
    table = with_equation_inside({"equation": recipe.equation}, "", f"recipe {describe_value(recipe.name)}")
    return replace(recipe, equation=table["equation"])


def _check_value(equation: "Equation", p: "Parameter", given: Any) -> Value:
    what = f"equation {equation.name!r}: parameter {p.name!r}"
    if given is None:
        raise EquationError(f"{what} has no value: give one in [parameters]")
    size = {"scalar": (), "vector": (DIMENSION,), "tensor": (DIMENSION, DIMENSION)}[p.rank]
    value = _to_tuples(given, size)
    if value is None:
        wanted = ("a number", f"{DIMENSION} numbers", f"{DIMENSION} rows of {DIMENSION} numbers")[len(size)]
        wanted += f" of at most {LARGEST_PARAMETER:g} in size"
        raise EquationError(f"{what}, a {p.rank}, should be {wanted}, got {describe_value(given)}")
    return value


def _to_tuples(given: Any, size: tuple[int, ...]) -> Value | None:
    """The numbers of a list of this shape as tuples; None where it has another shape or holds something else."""
    if not size:
        number = isinstance(given, int | float) and not isinstance(given, bool) and abs(given) <= LARGEST_PARAMETER
        return float(given) if number else None
    if not isinstance(given, list | tuple) or len(given) != size[0]:
        return None
    parts = [_to_tuples(each, size[1:]) for each in given]
    return None if any(part is None for part in parts) else tuple(parts)


# How many random edges a law is tried on before it is accepted.
_TRIALS = 256


def exchange_law(data: Data, equation: "Equation | None" = None) -> "sp.Expr | None":
    """The formula of `data.law` in the symbols of a message over an edge, or None for the equation's own flux.

    V stands for V_P, the volume of the cell that receives. The formula may contain the parameters of the equation,
    which is heat unless given. Raises ExpressionError for a formula that the parser refuses.
    """
    return None if data.law is None else _parse_law(data.law, equation)


@lru_cache(maxsize=64)
def _parse_law(text: str, equation: "Equation | None") -> "sp.Expr":
    # Imported here, like NumPy below: recipes are read without them, and few have a law.
    from fluxforge.expression._parse import parse
    from fluxforge.expression._symbols import symbol
    from fluxforge.pde._equation import HEAT
    from fluxforge.scheme._scheme import IN_SPACE, Hop, message_symbols

    # The volume of a boundary face's far side is infinite, so that a law of it would not be finite there;
    # data are made in the plane.
    carried = message_symbols(Hop.EDGE, (), HEAT if equation is None else equation)
    known = {name: variable for name, variable in carried.items() if name not in ("V_N", *IN_SPACE)}
    return parse(text, {**known, "V": symbol("V_P")})


def law_problem(recipe: Recipe) -> str | None:
    """Why `data.law` cannot be used, in one line: the parser's reason, or that it is not finite. None if it can."""
    try:
        law = exchange_law(recipe.data, equation_of(recipe))
    except ExpressionError as error:
        return str(error)
    if law is None or _is_finite(law, recipe):
        return None
    return "is not a finite number on every edge; note that T_P, T_N, n and d take both signs"


def equation_problem(recipe: Recipe) -> tuple[str, str] | None:
    """The field and the reason for which a recipe's equation cannot be trained on; None where it can."""
    if recipe.equation == HEAT and not recipe.parameters:  # the schema checks the range of its diffusivity
        return None
    from fluxforge.expression._symbols import symbol

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

    from fluxforge.expression._evaluate import evaluate

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


def mesh_files(recipe: Recipe) -> tuple[str, ...]:
    """The mesh files that a recipe names; empty if its meshes are generated."""
    return (recipe.data.files or ()) if isinstance(recipe.data, Meshes) else ()


def check_flux_equation(recipe: Recipe) -> Iterator[Clash]:
    """Rule: the equation of a network in the form of a flux has a linear flux and parameters with units."""
    if recipe.network.form == "free" or recipe.equation == HEAT:
        return
    # Imported here, with SymPy: few recipes need it.
    from fluxforge.scheme._weighted import refuse_flux_form

    if (why := refuse_flux_form(equation_of(recipe))) is not None:
        yield ("equation", "network.form"), why


def check_invariants(recipe: Recipe) -> Iterator[Clash]:
    """Rule: invariants are those of the equation, and available in the data."""
    invariants = recipe.network.invariants
    if not invariants:
        return
    # Imported here, with SymPy: few recipes need it.
    from fluxforge.scheme._scheme import INVARIANTS, invariant_names
    from fluxforge.scheme.reference import CORRECTION

    if CORRECTION in invariants and not isinstance(recipe.data, Meshes):
        why = "only cells of meshes have enough neighbours for a gradient; choose data of kind 'meshes'"
        yield ("network.invariants", "data.kind"), why
    of_faces = set(invariants) - {*INVARIANTS, CORRECTION}
    if of_faces and recipe.network.hops == 2:
        yield ("network.invariants", "network.hops"), f"data have {min(of_faces)} over one hop only; set hops = 1"
    known = (*invariant_names(equation_of(recipe)), CORRECTION)
    for k, name in enumerate(invariants):
        if name not in known:
            yield (f"network.invariants[{k}]",), f"expected {join_words(known)}, got {describe_value(name)}"
        if name in invariants[:k]:
            yield (f"network.invariants[{k}]",), f"{describe_value(name)} is listed twice"


def check_answers(recipe: Recipe) -> Iterator[Clash]:
    """Rule: a law or noise changes the answers of a supervised loss, so that a residual excludes both."""
    data, loss = recipe.data, recipe.loss
    if isinstance(data, Experiment | Rows | Skew):
        return  # fluxforge.experiment and fluxforge.skew know the symbols of their laws; rows have no laws
    changes = [name for name, set_ in (("law", data.law is not None), ("noise", data.noise > 0)) if set_]
    for name in changes:
        if loss.residual is not None:
            why = (
                f"a residual is computed from the equation ({_equation_name(recipe)}), without a law"
                if name == "law"
                else "a residual uses no answers, so that noise has no effect"
            )
            yield (f"data.{name}", "loss.residual"), f"{why}; choose [loss.supervised] alone"
    if "law" in changes and (problem := law_problem(recipe)) is not None:
        yield ("data.law",), problem


def check_equation(recipe: Recipe) -> Iterator[Clash]:
    """Rule: the equation can be trained on, and suits the features and the route of the search."""
    if isinstance(recipe.data, Experiment | Rows):
        return  # parameters are drawn, so that none need have a value
    if (problem := equation_problem(recipe)) is not None:
        yield (problem[0],), problem[1]
    if recipe.equation == HEAT:
        return
    if recipe.network.features == "simplified":
        why = "the simplified features contain the flux of heat; choose features = 'primitive'"
        yield ("equation", "network.features"), why
    if recipe.network.features == "dimensionless":
        # Imported here, with SymPy: few recipes need it.
        from fluxforge.scheme._weighted import refuse_flux_form

        if (refusal := refuse_flux_form(equation_of(recipe))) is not None:
            yield ("equation", "network.features"), refusal.replace("the form 'flux' is", "dimensionless features need")
    if recipe.search is not None and recipe.search.route == "stencil" and not _only_diffuses(recipe):
        why = "the route 'stencil' needs a linear flux, without transport or reaction; choose route = 'modules'"
        yield ("equation", "search.route"), why


def _equation_name(recipe: Recipe) -> str:
    return recipe.equation if isinstance(recipe.equation, str) else str(recipe.equation.get("name"))


def _only_diffuses(recipe: Recipe) -> bool:
    """Whether the equation is ∂u/∂t = ∇·(K∇u) + S with one number K."""
    equation = equation_of(recipe)
    plain = equation.two_point is None and equation.diffusion_tensor is None and equation.capacity == 1
    constant = all(p.where == "constant" for p in equation.parameters)
    return plain and constant and equation.only_diffuses and equation.linear
