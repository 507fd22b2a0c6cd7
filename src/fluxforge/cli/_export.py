"""`fluxforge export`: code for a scheme."""

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fluxforge.cli._arguments import EquationName, OutputFile, Overwrite, SchemeName, choice, refuse_if
from fluxforge.cli._output import say, show

if TYPE_CHECKING:
    from fluxforge.mesh._conditions import Conditions
    from fluxforge.mesh._dual import DualGraph
    from fluxforge.pde._equation import Equation


class Target(StrEnum):
    """Formats a scheme can be exported to."""

    LATEX = "latex"
    NUMPY = "numpy"
    JAX = "jax"
    C = "c"
    JSON = "json"


# Suffix of the mesh file, by the format of the code that reads it.
MESH_FORMATS = {Target.C: "h", Target.NUMPY: "npz", Target.JAX: "npz"}


def export(
    scheme: SchemeName,
    to: Annotated[Target, choice(Target, "Output format; json is the scheme.json that other commands read.")],
    equation: EquationName = None,
    output: OutputFile = None,
    overwrite: Overwrite = False,
    mesh: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Mesh to export with C (as a header), NumPy or JAX code (as an .npz file); needs -o."
        ),
    ] = None,
    boundary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help='Boundary conditions of the exported mesh: "left=1, right=neumann:0, rest=insulated", as for '
            "`fluxforge simulate`, but without robin and inflow walls. Default, also for tags that are not named: u = "
            "0, whatever the equation. May be repeated.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Value of a parameter in the .npz file, as for `fluxforge simulate`; without it, the parameter's "
            "default. May be repeated.",
        ),
    ] = None,
) -> None:
    """Write a scheme as LaTeX, NumPy, JAX or C code, or as scheme.json.

    Emitted code does not import fluxforge. With --mesh, heat.c comes with heat_mesh.h, which defines the mesh that its
    step takes; heat.py comes with heat_mesh.npz, and `python heat.py heat_mesh.npz` takes ten steps of an example.
    """
    refuse_if(
        {
            "--mesh can be exported only with C, NumPy or JAX code: give --to c, numpy or jax": mesh is not None
            and to not in MESH_FORMATS,
            "--mesh is written to the folder of the code: give -o FILE for the code": mesh is not None
            and output is None,
            "--boundary is used with a mesh only: give --mesh FILE too": boundary and mesh is None,
            "--set is stored beside NumPy and JAX code: give --to numpy or jax, and --mesh FILE": settings
            and (mesh is None or to is Target.C),
            "--overwrite needs a file to write: give -o FILE": overwrite and output is None,
        }
    )
    from fluxforge._files import write_text
    from fluxforge.scheme._document import find

    if output is None:
        typer.echo(_code(find(scheme, equation), to), nl=False)
        return
    beside = output.with_name(f"{output.stem}_mesh.{MESH_FORMATS.get(to, 'h')}")
    _check_files(output, beside, has_mesh=mesh is not None, overwrite=overwrite)
    notes: list[str] = []
    if mesh is None:
        write_text(output, _code(find(scheme, equation), to))
    else:
        notes = _write_with_mesh(scheme, to, equation, output, beside, mesh, boundary or [], settings or [])
    for path in (output,) if mesh is None else (output, beside):
        show(f"wrote {path}")
    for note in notes:
        say("note", note)


def _check_files(output: Path, beside: Path, *, has_mesh: bool, overwrite: bool) -> None:
    """Raise InputError for a name that the code cannot have, and for files that would be replaced or not fit."""
    from fluxforge.errors import InputError

    if output.name in ("numpy.py", "jax.py"):
        raise InputError(
            f"{output}: has the name of the module {output.stem}, which the code imports: give another name"
        )
    for path in (output, beside) if has_mesh else (output,):
        if path.exists() and not overwrite:
            raise InputError(f"{path}: exists already: give another file, or --overwrite to replace it")
    if not has_mesh and output.exists() and beside.exists():
        raise InputError(
            f"{beside}: exists already and is the mesh of earlier code: give --mesh FILE to replace it, or "
            "remove it first"
        )


def _write_with_mesh(
    name: str,
    to: Target,
    equation: str | None,
    output: Path,
    beside: Path,
    mesh: Path,
    boundary: Sequence[str],
    settings: Sequence[str],
) -> list[str]:
    """Write the code and, beside it, the mesh that it reads; returns notes on what both assume.

    Everything is computed before a file is written, so that an invalid mesh leaves no files behind.
    """
    import numpy as np

    from fluxforge._files import atomic_path, write_text

    # Imports JAX, which code without a mesh does not need.
    from fluxforge.cli._problem import read_settings
    from fluxforge.mesh._build import dual
    from fluxforge.mesh._conditions import read_conditions
    from fluxforge.mesh._read import read
    from fluxforge.scheme._document import find
    from fluxforge.scheme.emit._mesh_arrays import check_lines, emit_c_mesh, example_arrays, python_main

    domain, conditions = read(mesh), read_conditions(boundary, "--boundary")
    chosen, parameters = read_settings(settings, equation, domain)
    scheme = find(name, chosen)
    code, graph = _code(scheme, to), dual(domain, conditions)
    notes = _notes_on_walls(scheme.equation, graph, conditions)
    if to is Target.C:
        check_lines(scheme, graph)
        header = emit_c_mesh(graph, beside.stem)
        write_text(output, code)
        write_text(beside, header)
        return notes
    arrays = example_arrays(scheme, graph, parameters)
    write_text(output, code + python_main(scheme, to.value))
    with atomic_path(beside) as temporary:
        np.savez(temporary, allow_pickle=False, **arrays)
    return notes + _notes_on_parameters(scheme.equation, graph, parameters)


def _notes_on_walls(equation: "Equation", graph: "DualGraph", conditions: "Conditions") -> list[str]:
    """A line that names the walls at which `simulate` would let the flow out, and exported code holds the value 0."""
    from fluxforge.mesh._conditions import conditions_of_tags, default_condition

    # A simulation's condition of tags without one, found among the others as this very object.
    default = default_condition(equation)
    held = [tag for tag, each in conditions_of_tags(conditions, graph.tags, default).items() if each is default]
    if equation.velocity is None or not held:
        return []
    return [
        f"exported code has no outflow walls: {equation.unknown} = 0 is held at {', '.join(held)}, where `simulate` "
        "has free outflow; --boundary gives these walls a value, neumann:Q or periodic:TAG"
    ]


def _notes_on_parameters(equation: "Equation", graph: "DualGraph", given: Mapping[str, Any]) -> list[str]:
    """A line that names the parameters stored as placeholders."""
    from fluxforge.scheme.emit._mesh_arrays import placeholders

    stored = [f"{name} = {value}" for name, value in placeholders(equation, graph.dimension, given).items()]
    return [f"stored placeholders: {', '.join(stored)}; give your own with --set NAME=VALUE"] if stored else []


def _code(scheme: Any, to: Target) -> str:
    from fluxforge.scheme import emit
    from fluxforge.scheme._document import KIND, VERSION, to_document

    if to is Target.JSON:
        document = {"format": f"fluxforge-{KIND}", "format_version": VERSION, **to_document(scheme)}
        return json.dumps(document, indent=2, allow_nan=False) + "\n"
    return emit.emit(scheme, to.value).rstrip("\n") + "\n"
