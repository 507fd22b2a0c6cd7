"""The commands, and what all of them share."""

from importlib.metadata import version
from typing import Annotated

import typer

from fluxforge.cli._bench import bench
from fluxforge.cli._discover import discover
from fluxforge.cli._doctor import doctor
from fluxforge.cli._export import export
from fluxforge.cli._mesh import mesh
from fluxforge.cli._output import show
from fluxforge.cli._reproduce import reproduce
from fluxforge.cli._schemes import schemes
from fluxforge.cli._simulate import simulate
from fluxforge.cli._typer import command, group
from fluxforge.cli._verify import verify

app = group(
    text="Finite-volume schemes as formulas: meshes, built-in schemes, certificates, heat problems, code.",
    example="fluxforge simulate euler --mesh m.msh --initial 'sin(pi*x)*sin(pi*y)' -o out",
    name="fluxforge",
    add_completion=True,
)


def _show_version(asked: bool) -> bool:
    if asked:
        show(f"fluxforge {version('fluxforge')}")
        raise typer.Exit
    return asked


@app.callback()
def fluxforge(
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors, with any command.")] = False,
) -> None:
    """Finite-volume schemes as formulas: meshes, built-in schemes, certificates, heat problems, code."""


command(app, "fluxforge discover")(discover)
command(app, "fluxforge schemes crank-nicolson")(schemes)
command(
    app,
    "fluxforge simulate euler --mesh m.msh --initial 'sin(pi*x)*sin(pi*y)' --boundary left=1 "
    "--boundary right=insulated --compare crank-nicolson -o out",
)(simulate)
command(app, "fluxforge verify midpoint --quick -o certificate")(verify)
command(app, "fluxforge reproduce generalisation theorems -o reproduction")(reproduce)
command(app, "fluxforge export midpoint --to c -o midpoint.c")(export)
command(app, "fluxforge doctor --json")(doctor)
app.add_typer(mesh, name="mesh")
app.add_typer(bench, name="bench")
