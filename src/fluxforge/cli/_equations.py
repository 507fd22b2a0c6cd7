"""`fluxforge equations`: the built-in equations, their parameters, and one of them in full."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fluxforge.cli._arguments import EQUATIONS, Json, complete_one

if TYPE_CHECKING:
    from fluxforge.pde._equation import Equation
    from fluxforge.pde._parameter import Parameter

COLUMNS = ("parameter", "meaning", "kind", "unit", "default")


def equations(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="EQUATION",
            help="Name of a built-in equation, or a .toml file.",
            autocompletion=complete_one(EQUATIONS),
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the built-in equations and their parameters; with a name, show that one in full."""
    from fluxforge.cli._output import show_json
    from fluxforge.pde._document import find
    from fluxforge.pde._equation import BUILT_IN

    if name is not None:
        found = find(name)
        show_json(to_record(found)) if as_json else _show_one(found)
    elif as_json:
        show_json({"equations": [to_record(equation) for equation in BUILT_IN.values()]})
    else:
        _show_all(list(BUILT_IN.values()))


def to_record(equation: "Equation") -> dict[str, Any]:
    """An equation as JSON values; units are powers of length L, time t and the unknown Θ."""
    return {
        "name": equation.name,
        "summary": equation.summary,
        "equation": equation.text,
        "unknown": equation.unknown,
        "linear": equation.linear,
        "parameters": [
            {
                "name": p.name,
                "meaning": p.meaning,
                "rank": str(p.rank),
                "where": str(p.where),
                "unit": None if p.unit is None else str(p.unit),
                "default": p.default,
            }
            for p in equation.parameters
        ],
    }


def _show_all(found: "list[Equation]") -> None:
    from fluxforge.cli._output import show, show_pairs, show_table

    show_pairs((equation.name, equation.text) for equation in found)
    show()
    rows = [(equation.name, *row) for equation in found for row in _rows(equation)]
    show_table(("equation", *COLUMNS), rows)
    show()
    show(
        "Units are powers of length L, time t and the unknown Θ; S is the source. `fluxforge equations NAME` shows one."
    )


def _rows(equation: "Equation") -> Iterator[tuple[str, ...]]:
    for p in equation.parameters:
        yield p.name, p.meaning, _kind(p), "-" if p.unit is None else str(p.unit), _default(p)


def _kind(p: "Parameter") -> str:
    return str(p.rank) if p.where == "constant" else f"{p.rank} per {p.where}"


def _default(p: "Parameter") -> str:
    if isinstance(p.default, tuple):
        return f"({', '.join(f'{part:g}' for part in p.default)})"
    return "-" if p.default is None else f"{p.default:g}"


def _show_one(equation: "Equation") -> None:
    from fluxforge.cli._output import show, show_pairs, show_table
    from fluxforge.expression._print import to_text
    from fluxforge.expression._symbols import symbol

    ends = [symbol(f"{equation.unknown}_{end}") for end in ("P", "N")]
    pairs = [
        ("name", equation.name),
        ("summary", equation.summary),
        ("equation", equation.text),
        ("unknown", f"{equation.unknown}, unit {equation.unknown_unit}"),
        ("linear", "yes" if equation.linear else "no"),
        ("two-point flux", to_text(equation.flux(*ends))),
    ]
    show_pairs(pair for pair in pairs if pair[1])
    show()
    show_table(COLUMNS, list(_rows(equation)))
