"""`fluxforge bench skew`: a table of errors per family of meshes, or one JSON document."""

from enum import StrEnum
from typing import Annotated

import typer

from fluxforge.cli._arguments import Json
from fluxforge.cli._output import number, show, show_json, show_table


class SkewSize(StrEnum):
    """Sizes of the meshes."""

    QUICK = "quick"
    DEFAULT = "default"


def skew(
    size: Annotated[
        SkewSize, typer.Option(help="Sizes of the meshes: up to 4,600 or 10,400 cells.")
    ] = SkewSize.DEFAULT,
    as_json: Json = False,
) -> None:
    """Compare discovered fluxes for skewed meshes with the corrected flux and a hybrid scheme."""
    from fluxforge.cli._progress import doing

    with doing("solving steady problems", quiet=as_json) as tell:
        from fluxforge.bench import bench_skew

        measured = bench_skew(size=size.value, progress=lambda family: tell(f"solving: {family}"))
    if as_json:
        show_json(measured.document())
        return
    finest = {(row.family, row.scheme): row for row in measured.rows}
    columns = (
        "family",
        "scheme",
        "cells",
        "unknowns",
        "L2 error",
        "order",
        "/ corrected",
        "/ hybrid",
        "equal unknowns",
    )
    rows = []
    for each in measured.compared:
        row = finest[each.family, each.scheme]
        order = "-" if row.order is None else f"{row.order:.2f}"
        ratios = (f"{each.over_corrected:.2f}", f"{each.equal_cells:.2f}", f"{each.equal_unknowns:.2f}")
        rows.append(
            (each.family, each.scheme, f"{row.cells:,}", f"{row.unknowns:,}", number(row.error, 3), order, *ratios)
        )
    show_table(columns, rows, right=columns[2:])
    show("\nL2 error on the finest meshes; over corrected and over the hybrid scheme at equal cells, and over the")
    show("hybrid scheme at equal unknowns")
