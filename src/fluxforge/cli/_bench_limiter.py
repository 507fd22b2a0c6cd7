"""`fluxforge bench limiter`: tables of errors by limiter, or one JSON document."""

from typing import TYPE_CHECKING

from fluxforge.cli._arguments import Json
from fluxforge.cli._output import number, show, show_json, show_pairs, show_table

if TYPE_CHECKING:
    from fluxforge.bench import LimiterBench


def limiter(as_json: Json = False) -> None:
    """Compare limiters, old and discovered, with WENO5-JS, WENO-Z and MP5 on waves under transport."""
    from fluxforge.cli._progress import show_status

    with show_status("measuring limiters", quiet=as_json) as tell:
        from fluxforge.bench import bench_limiter

        measured = bench_limiter(lambda name: tell(f"measuring: {name}"))
    if as_json:
        show_json(measured.document())
        return
    _show_bench(measured)


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
    show()
    show_pairs((name, f"φ = {text}") for name, text in measured.formulas.items())
