"""`fluxforge bench`: each benchmark against a peer in the same run."""

from typing import Annotated

from fluxforge.cli._arguments import Json, count
from fluxforge.cli._typer import command, group

bench = group(
    text="Measure speed on this machine, each number against a peer in the same run.",
    example="fluxforge bench step --cells 1e6",
)


@command(bench, "fluxforge bench step --cells 1e5 --json")
def step(
    cells: Annotated[int, count("--cells", text="Number of cells.")] = 10**6,
    as_json: Json = False,
) -> None:
    """Time one explicit step against the memory bandwidth and against peers."""
    from fluxforge.cli._output import show_json, show_pairs
    from fluxforge.cli._progress import doing

    with doing(f"measuring a step on {cells:,} cells", quiet=as_json):
        import jax

        from fluxforge.bench import bench_step

        jax.config.update("jax_enable_x64", True)
        measured = bench_step(cells)
    if as_json:
        show_json(measured)
    else:
        show_pairs((key.replace("_", " "), _text(value)) for key, value in measured.items())


def _text(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "-" if value is None else str(value)
