"""Single fields of a recipe set anew."""

from collections.abc import Mapping
from typing import Any

from fluxforge.recipe._document import from_dict
from fluxforge.recipe._equation import with_equation_inside
from fluxforge.recipe._mesh_files import located, mesh_files
from fluxforge.recipe._messages import Place, found
from fluxforge.recipe._recipe import Recipe
from fluxforge.recipe._schema import to_dict

# Shipped recipes that have a section which others lack.
HAVING = {"loss.residual": "first-order-pinn, midpoint and two-hop have one"}


def override(recipe: Recipe, assignments: Mapping[str, Any], where: str = "command line") -> Recipe:
    """The recipe with fields set by dotted names, `{"seed": 3, "training.steps": 100}`, and checked as a file would be.

    A whole section may be given as a table. Mesh files and an equation's file are relative to the working folder.
    """
    document = to_dict(recipe)
    for field, value in assignments.items():
        _assign(document, field, value, where)
    changed = from_dict(with_equation_inside(document, "", where), where)
    return changed if mesh_files(changed) == mesh_files(recipe) else located(changed, "", where)


def _assign(document: dict[str, Any], field: str, value: object, where: str) -> None:
    *sections, last = field.split(".")
    table = document
    for depth, name in enumerate(sections, start=1):
        table[name] = _section(table, name, Place(where).at(field), ".".join(sections[:depth]))
        table = table[name]
    if field == "data.kind" and table.get("kind", value) != value:
        old = found(table["kind"])
        raise Place(where, field).refuse(
            f"stays {old}, since other data have other fields; write a recipe file for them"
        )
    table[last] = value


def _section(table: Mapping[str, Any], name: str, place: Place, section: str) -> dict[str, Any]:
    """The section of that name, as a table of its own; one the schema does not know is left for it to refuse."""
    inner = table.get(name, {})
    if inner is None:
        instead = f"; {HAVING[section]}" if section in HAVING else ""
        raise place.refuse(
            f"the recipe has no section [{section}]; set all of it as a table, or write a recipe file{instead}"
        )
    if not isinstance(inner, Mapping):
        raise place.refuse(f"'{Place('').at(section).field}' has no fields")
    return dict(inner)
