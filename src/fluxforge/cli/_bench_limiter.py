"""`fluxforge bench limiter`: tables of errors by limiter, or one JSON document."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fluxforge.cli._arguments import Json, check_writable
from fluxforge.cli._output import number, show, show_json, show_pairs, show_status, show_table
from fluxforge.errors import InputError

if TYPE_CHECKING:
    from fluxforge.bench._limiter import LimiterBench


def limiter(
    triangles: Annotated[
        bool,
        typer.Option(help="Also measure limiters on triangles, and compare them with slopes limited cell by cell."),
    ] = True,
    figure: Annotated[
        Path | None,
        typer.Option(callback=check_writable, metavar="PNG", help="Draw fields on triangles side by side."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare limiters, old and discovered, with WENO5-JS, WENO-Z and MP5 on waves under transport."""
    with show_status("measuring limiters", quiet=as_json) as tell:
        from fluxforge.bench._limiter import bench_limiter

        if figure is not None and not triangles:
            raise InputError("--figure draws fields on triangles: leave out --no-triangles")
        measured = bench_limiter(lambda name: tell(f"measuring: {name}"), triangles=triangles)
        if figure is not None:
            _save_figure(measured, figure)
    if as_json:
        show_json(measured.document())
        return
    _show_bench(measured)


def _save_figure(measured: "LimiterBench", path: Path) -> None:
    from fluxforge.bench._limiter_figure import triangle_figure
    from fluxforge.mesh import save_figure

    save_figure(triangle_figure(measured.triangles), path, dpi=80)


def _show_triangles(measured: "LimiterBench") -> None:
    rows = measured.triangles.rows
    for problem, mesh in dict.fromkeys((row.problem, row.mesh) for row in rows):
        alike = [row for row in rows if (row.problem, row.mesh) == (problem, mesh)]
        cells = f"{alike[0].coarse_cells:,} and {alike[0].cells:,} triangles"
        show(f"\n{problem}, {mesh}: relative L1 error on {cells}, its order, and what the finer mesh shows\n")
        columns = ("scheme", "L1, coarse", "L1", "order", "variation", "minimum", "maximum")
        lines = [
            (
                row.scheme,
                *(number(value, 3) for value in (row.coarse_l1, row.l1)),
                f"{row.rate:.2f}",
                # Rounded before formatting, since −0.0004 would be shown as −0.000; + 0.0 removes the sign of −0.0.
                *(f"{round(value, 3) + 0.0:.3f}" for value in (row.total_variation, row.minimum, row.maximum)),
            )
            for row in alike
        ]
        show_table(columns, lines, right=columns[1:])


def _show_bench(measured: "LimiterBench") -> None:
    show("mean |error|: Jiang–Shu wave by Courant number (200 cells, t = 10); fresh profiles by steps (64 cells)\n")
    first = measured.rows[0]
    columns = ("limiter", *(f"c = {c}" for c in first.jiang_shu), *(f"{n} steps" for n in first.fresh))
    rows = [
        (row.name, *(number(each, 3) for each in (*row.jiang_shu.values(), *row.fresh.values())))
        for row in measured.rows
    ]
    show_table(columns, rows, right=columns[1:])
    show("\nspeed 8, t = 1, c = 0.4: mean |error| and variation; a sine after ten turns; orders from 25 to 400 cells\n")
    waves = (
        "limiter",
        *(f"{wave}{what}" for wave in first.waves for what in ("", ", TV")),
        "smooth L∞",
        "TV",
        "orders",
    )
    rows = [
        (
            row.name,
            *(number(value, 3) for own in row.waves.values() for value in (own.l1, own.variation)),
            number(row.smooth.linf, 3),
            number(row.smooth.variation, 4),
            " ".join(f"{order:.2f}" for order in row.orders),
        )
        for row in measured.rows
    ]
    show_table(waves, rows, right=waves[1:])
    _show_triangles(measured)
    show()
    show_pairs((name, f"φ = {text}") for name, text in measured.formulas.items())
