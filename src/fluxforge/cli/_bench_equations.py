"""`fluxforge bench equations`: a table per problem, or one JSON document."""

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fluxforge.cli._arguments import Json, split_names
from fluxforge.cli._output import duration, number, show, show_json, show_table

if TYPE_CHECKING:
    from fluxforge.bench._equations import Validation
    from fluxforge.bench._rows import Row


class Size(StrEnum):
    """Sizes of the meshes."""

    QUICK = "quick"
    DEFAULT = "default"
    FULL = "full"


def equations(
    size: Annotated[
        Size, typer.Option(help="Sizes of the meshes: about a minute, two minutes, or many.")
    ] = Size.DEFAULT,
    only: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Problems to solve, separated by commas (default: all).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Solve problems with known solutions by many schemes, some of them beside FiPy."""
    from fluxforge.cli._progress import show_status

    with show_status("solving problems with known solutions", quiet=as_json) as tell:
        from fluxforge.bench._equations import bench_equations
        from fluxforge.cli._progress import use_64_bits

        use_64_bits()
        names = None if only is None else split_names(only)
        measured = bench_equations(size=size.value, only=names, progress=lambda name: tell(f"solving: {name}"))
    if as_json:
        show_json(measured.document())
        return
    _show(measured)


def _show(measured: "Validation") -> None:
    from fluxforge.bench._equations import GROUPS

    for name, rows in measured.groups.items():
        for problem in dict.fromkeys(row.problem for row in rows):
            alike = [row for row in rows if row.problem == problem]
            subject = "" if len(alike) == len(rows) else f" ({problem.removeprefix(f'{name}, ')})"
            show(f"{name}: {GROUPS[name].title}{subject}\n")
            _show_rows(alike)
            show()
    if measured.fipy is None:
        from fluxforge.bench._fipy import HOW_TO_INSTALL

        show(f"FiPy: {HOW_TO_INSTALL}")


_WORDS = ("scheme", "mesh")
# Heading, field, and how a value is written.
Column = tuple[str, str, Callable[[Any], str]]
COLUMNS: tuple[Column, ...] = (
    ("scheme", "scheme", str),
    ("mesh", "mesh", str),
    ("cells", "cells", lambda cells: f"{cells:,}"),
    ("error", "error", lambda error: number(error, 3)),
    ("max", "error_max", lambda error: number(error, 3)),
    ("order", "order", lambda order: "-" if order is None else f"{order:.2f}"),
    ("measured", "measured", lambda value: number(value, 5)),
    ("exact", "exact", lambda value: number(value, 5)),
    ("predicted", "predicted", lambda value: number(value, 5)),
    ("least", "minimum", lambda value: number(value, 3)),
    ("largest", "maximum", lambda value: number(value, 4)),
    ("variation", "variation", lambda value: number(value, 3)),
    ("per step", "seconds_per_step", duration),
    ("FiPy's error", "fipy_error", lambda error: number(error, 3)),
    ("difference", "fipy_difference", lambda error: number(error, 2)),
    ("FiPy per step", "fipy_seconds_per_step", duration),
)


def _show_rows(rows: Sequence["Row"]) -> None:
    """The columns that have a value in some row."""
    shown = [column for column in COLUMNS if any(getattr(row, column[1]) is not None for row in rows)]
    columns = [heading for heading, _, _ in shown]
    show_table(columns, [tuple(_cells(row, shown)) for row in rows], right=[c for c in columns if c not in _WORDS])
    quantity = {row.quantity for row in rows if row.quantity is not None}
    norms = sorted({row.norm for row in rows if row.norm is not None})
    about = [f"error: {', '.join(norms)}"] if norms else []
    about += [f"measured: {', '.join(sorted(quantity))}"] if quantity else []
    show("; ".join(about))


def _cells(row: "Row", shown: Sequence[Column]) -> Iterator[str]:
    for _, field, write in shown:
        value = getattr(row, field)
        yield "-" if value is None else write(value)
