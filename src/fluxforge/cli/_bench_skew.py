"""`fluxforge bench skew`: a table of errors per family of meshes, or one JSON document."""

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from fluxforge.cli._arguments import Json, choice
from fluxforge.cli._output import format_value, number, show, show_json, show_status, show_table

if TYPE_CHECKING:
    from fluxforge.bench._skew import SkewBench
    from fluxforge.bench._skew_conductivity import ConductivityRow


class SkewSize(StrEnum):
    """Sizes of the meshes."""

    QUICK = "quick"
    DEFAULT = "default"


def skew(
    size: Annotated[SkewSize, choice(SkewSize, "Mesh sizes: up to 4,600 or 10,400 cells.")] = SkewSize.DEFAULT,
    as_json: Json = False,
) -> None:
    """Compare discovered fluxes for skewed meshes with the corrected flux and a hybrid scheme."""
    with show_status("solving steady problems", quiet=as_json) as tell:
        from fluxforge.bench._skew import bench_skew

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
        ratios = (row.order, each.over_corrected, each.equal_cells, each.equal_unknowns)
        sizes = (f"{row.cells:,}", f"{row.unknowns:,}", number(row.error, 3))
        rows.append((each.family, each.scheme, *sizes, *(format_value(value, ".2f") for value in ratios)))
    show_table(columns, rows, right=columns[2:])
    show("\nL2 error on the finest meshes; over corrected and over the hybrid scheme at equal cells, and over the")
    show("hybrid scheme at equal unknowns")
    _show_conductivities(measured.conductivities)
    _show_ranges(measured)


def _show_conductivities(rows: Sequence["ConductivityRow"]) -> None:
    """Print the results on the finest meshes for a tensor and for a jump of the conductivity."""
    finest = {(row.problem, row.mesh, row.scheme): row for row in rows}
    columns = ("conductivity", "mesh", "scheme", "cells", "L2 error", "order", "/ corrected")
    lines = [
        (
            row.problem,
            row.mesh,
            row.scheme,
            f"{row.cells:,}",
            number(row.error, 3),
            *(format_value(value, ".2f") for value in (row.order, row.over_corrected)),
        )
        for row in finest.values()
    ]
    show()
    show_table(columns, lines, right=columns[3:])
    show("\ntensor: diag(10, 1) turned by 45°; jump: from 1 to 100 along a line of faces\n")


def _show_ranges(measured: "SkewBench") -> None:
    """Print how often fluxes exceed the range of values at walls, and the error of blends relative to linear fluxes."""
    columns = ("scheme", "stretched meshes", "range exceeded on", "by at most", "not converged")
    lines = [
        (
            f"{row.scheme}, blended" if row.blended else row.scheme,
            str(row.meshes),
            str(row.violated),
            number(row.overshoot, 2),
            str(row.unconverged),
        )
        for row in measured.ranges
    ]
    show_table(columns, lines, right=columns[1:])
    finest = {(row.family, row.scheme): row for row in measured.blends}
    show("\nL2 error of the blend over that of the linear flux, steady problems on the finest meshes:\n")
    blends = [(row.family, row.scheme, f"{row.cells:,}", f"{row.error_ratio:.3f}") for row in finest.values()]
    show_table(("family", "scheme", "cells", "ratio"), blends, right=("cells", "ratio"))
