"""The equation a recipe is about, and the values of its parameters that data are made with."""

import json
import os
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import replace

from fluxforge.errors import EquationError
from fluxforge.recipe._messages import Place, found, visible
from fluxforge.recipe._numbers import LARGEST_PARAMETER
from fluxforge.recipe._recipe import Recipe

if TYPE_CHECKING:
    from fluxforge.pde import Equation, Parameter

Value: TypeAlias = float | tuple[Any, ...]
"""A parameter's value: a number, the components of a vector, or the rows of a tensor; the same everywhere."""

HEAT = "heat"
# Data are made in the plane.
DIMENSION = 2


def equation_of(recipe: Recipe) -> "Equation":
    """The equation of a recipe; raises EquationError for a name, a file or a table that is none."""
    # Imported here: recipes are listed and shown without SymPy.
    from fluxforge import pde

    if isinstance(recipe.equation, str):
        return pde.find(recipe.equation)
    return _from_table(json.dumps(recipe.equation, sort_keys=True))


@lru_cache(maxsize=64)
def _from_table(text: str) -> "Equation":
    from fluxforge import pde

    return pde.from_document(json.loads(text))


def settings(recipe: Recipe) -> dict[str, Value]:
    """The value of every parameter of the recipe's equation, defaults included; `diffusivity` is the word for heat's.

    Raises EquationError for a parameter that the equation does not have, that has no value, or one of another shape.
    """
    equation = equation_of(recipe)
    given = equation.settings(recipe.parameters, diffusivity=recipe.diffusivity)
    for name in given:
        equation.parameter(name)
    return {p.name: _value(equation, p, given.get(p.name, p.default)) for p in equation.parameters}


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
    """A recipe's table with the equation's file, relative to `folder`, read into it; anything else as it is.

    A run then needs the file no more. Raises RecipeError where the file cannot be read or holds no equation.
    """
    name = table.get("equation") if isinstance(table, Mapping) else None
    if not isinstance(name, str) or not name.endswith(".toml"):
        return table
    from fluxforge import pde

    try:
        equation = pde.find(os.path.join(folder, name))
    except EquationError as error:
        raise Place(where, "equation").refuse(visible(str(error))) from error
    return {**table, "equation": pde.to_document(equation)}


def self_contained(recipe: Recipe) -> Recipe:
    """The same recipe with its equation in it where it names a file, relative to the working folder."""
    table = with_equation_inside({"equation": recipe.equation}, "", f"recipe {found(recipe.name)}")
    return replace(recipe, equation=table["equation"])


def _value(equation: "Equation", p: "Parameter", given: Any) -> Value:
    what = f"equation {equation.name!r}: parameter {p.name!r}"
    if given is None:
        raise EquationError(f"{what} has no value: give one in [parameters]")
    size = {"scalar": (), "vector": (DIMENSION,), "tensor": (DIMENSION, DIMENSION)}[p.rank]
    value = _nested(given, size)
    if value is None:
        wanted = ("a number", f"{DIMENSION} numbers", f"{DIMENSION} rows of {DIMENSION} numbers")[len(size)]
        wanted += f" of at most {LARGEST_PARAMETER:g} in size"
        raise EquationError(f"{what}, a {p.rank}, should be {wanted}, got {found(given)}")
    return value


def _nested(given: Any, size: tuple[int, ...]) -> Value | None:
    """The numbers of a list of this shape as tuples; None where it has another shape or holds something else."""
    if not size:
        number = isinstance(given, int | float) and not isinstance(given, bool) and abs(given) <= LARGEST_PARAMETER
        return float(given) if number else None
    if not isinstance(given, list | tuple) or len(given) != size[0]:
        return None
    parts = [_nested(each, size[1:]) for each in given]
    return None if any(part is None for part in parts) else tuple(parts)
