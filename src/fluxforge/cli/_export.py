"""`fluxforge export`: code for a scheme."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from fluxforge.cli._arguments import BOUNDARY, EquationName, OutputFile, Overwrite, SchemeName
from fluxforge.cli._output import show


class Target(StrEnum):
    """Formats a scheme can be exported to."""

    LATEX = "latex"
    NUMPY = "numpy"
    JAX = "jax"
    C = "c"
    JSON = "json"


def export(
    scheme: SchemeName,
    to: Annotated[Target, typer.Option(help="Output format; json is the scheme.json that other commands read.")],
    equation: EquationName = None,
    output: OutputFile = None,
    overwrite: Overwrite = False,
    mesh: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --to c and -o FILE: also write this mesh as a C header.")
    ] = None,
    boundary: Annotated[
        list[str] | None, typer.Option(metavar="CONDITION", help=f"Boundary condition of --mesh: {BOUNDARY}")
    ] = None,
) -> None:
    """Write a scheme as LaTeX, NumPy, JAX or C code, or as scheme.json.

    The emitted code does not depend on fluxforge. With --mesh and -o heat.c, a second file heat_mesh.h defines
    heat_mesh, the mesh argument of the emitted step function.
    """
    if mesh is not None and (to is not Target.C or output is None):
        raise typer.BadParameter("--mesh is written beside C code: give --to c and -o FILE with it")
    if boundary and mesh is None:
        raise typer.BadParameter("--boundary belongs to a mesh: give --mesh FILE with it")
    if overwrite and output is None:
        raise typer.BadParameter("--overwrite is about a file to write: give -o FILE with it")
    from fluxforge._files import write_text
    from fluxforge.errors import InputError
    from fluxforge.scheme import find

    beside = None if output is None else output.with_name(f"{output.stem}_mesh.h")
    for path in (output, None if mesh is None else beside):
        if path is not None and path.exists() and not overwrite:
            raise InputError(f"{path}: exists already: give another file, or --overwrite to replace it")
    if output is not None and beside is not None and mesh is None and output.exists() and beside.exists():
        raise InputError(f"{beside}: is the mesh of earlier code: give --mesh FILE to replace it, or remove it first")
    code = _code(find(scheme, equation), to)
    if output is None or beside is None:
        typer.echo(code, nl=False)
        return
    # The mesh first: one that is refused leaves nothing half written.
    header = None if mesh is None else _header(mesh, boundary or [], beside.stem)
    write_text(output, code)
    show(f"wrote {output}")
    if header is not None:
        write_text(beside, header)
        show(f"wrote {beside}")


def _header(file: Path, boundary: list[str], name: str) -> str:
    from fluxforge.cli._arguments import parse_boundary
    from fluxforge.mesh import dual, read
    from fluxforge.scheme.emit import emit_c_mesh

    mesh = read(file)
    return emit_c_mesh(dual(mesh, parse_boundary(boundary, lambda: dual(mesh).tags)), name)


def _code(scheme: Any, to: Target) -> str:
    from fluxforge.scheme import emit, to_document
    from fluxforge.scheme._document import KIND, VERSION

    if to is Target.JSON:
        document = {"format": f"fluxforge-{KIND}", "format_version": VERSION, **to_document(scheme)}
        return json.dumps(document, indent=2, allow_nan=False) + "\n"
    return emit.emit(scheme, to.value).rstrip("\n") + "\n"
