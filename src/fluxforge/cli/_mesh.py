"""`fluxforge mesh`: generate meshes, and inspect mesh files."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fluxforge.cli._arguments import Engine, Family, Json, Kind, OutputFile, Plot, choice, command, count, group
from fluxforge.cli._output import number, show, show_json, show_pairs, show_status
from fluxforge.errors import InputError

if TYPE_CHECKING:
    from fluxforge.mesh._build import MeshInfo
    from fluxforge.mesh._mesh import Mesh

mesh = group(
    "Generate meshes, and inspect mesh files.",
    "fluxforge mesh square --cells 300 -o m.msh",
    "fluxforge mesh info m.msh",
)

Cells = Annotated[int | None, count("--cells", text="Approximate number of cells (default: 300).")]
Size = Annotated[float | None, typer.Option(metavar="H", help="Edge length h, instead of a number of cells.")]
KindOption = Annotated[Kind, choice(Kind, "Irregular meshes are refined around two random points.")]
Seed = Annotated[int, count("--seed", text="Random seed.")]
GENERATORS = {
    Family.SQUARES: "squares",
    Family.RIGHT: "right_triangles",
    Family.CROSS: "cross_triangles",
    Family.EQUILATERAL: "equilateral",
    Family.JITTERED: "jittered",
    Family.TWO_CELLS: "two_cells",
}
EngineOption = Annotated[Engine, choice(Engine, "Mesh generator; auto: gmsh if it works, otherwise builtin.")]


@command(mesh, "fluxforge mesh square --cells 300 --kind irregular --seed 3 -o m.msh --plot m.png")
def square(
    cells: Cells = None,
    size: Size = None,
    kind: KindOption = Kind.REGULAR,
    seed: Seed = 0,
    engine: EngineOption = Engine.AUTO,
    output: OutputFile = None,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Mesh the unit square with triangles; its sides are tagged left, right, bottom, top."""
    options = {"cells": cells, "size": size, "kind": kind.value, "seed": seed, "engine": engine.value}
    _generate("square", (), options, output, plot, as_json)


@command(mesh, "fluxforge mesh disk --radius 2 --size 0.1 -o disk.msh")
def disk(
    radius: Annotated[float, typer.Option(metavar="R", help="Radius of the disk.")] = 1.0,
    cells: Cells = None,
    size: Size = None,
    kind: KindOption = Kind.REGULAR,
    seed: Seed = 0,
    engine: EngineOption = Engine.AUTO,
    output: OutputFile = None,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Mesh a disk around the origin with triangles; its boundary is tagged circle."""
    options = {"cells": cells, "size": size, "kind": kind.value, "seed": seed, "engine": engine.value}
    _generate("disk", (radius,), options, output, plot, as_json)


@command(mesh, 'fluxforge mesh polygon "0,0 2,0 2,1 1,1 1,2 0,2" --cells 500 -o ell.msh')
def polygon(
    vertices: Annotated[str, typer.Argument(metavar="VERTICES", help='Vertices in order: "0,0 1,0 1,1 0,1".')],
    cells: Cells = None,
    size: Size = None,
    kind: KindOption = Kind.REGULAR,
    seed: Seed = 0,
    engine: EngineOption = Engine.AUTO,
    output: OutputFile = None,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Mesh a polygon with triangles; its sides are tagged side-0, side-1, … in the order of the vertices."""
    options = {"cells": cells, "size": size, "kind": kind.value, "seed": seed, "engine": engine.value}
    _generate("polygon", (parse_vertices(vertices),), options, output, plot, as_json)


@command(mesh, "fluxforge mesh family jittered -n 20 --jitter 0.2 --seed 1 -o jittered.msh")
def family(
    name: Annotated[Family, typer.Argument(metavar="FAMILY", help=f"One of {', '.join(Family)}.")],
    n: Annotated[int | None, count("-n", text="Squares per side (default: 20).")] = None,
    jitter: Annotated[
        float | None,
        typer.Option(
            metavar="FRACTION",
            help="Largest displacement of a point as a fraction of h, at most 0.3 (jittered only; default: 0.2).",
        ),
    ] = None,
    seed: Annotated[int | None, count("--seed", text="Random seed (jittered only).")] = None,
    output: OutputFile = None,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Generate a structured mesh of a family, for refinement studies."""
    if name is Family.TWO_CELLS and n is not None:
        raise InputError("the family two-cells has only one size: leave out -n")
    if name is not Family.JITTERED and not (jitter is None and seed is None):
        raise InputError(f"--jitter and --seed apply to the family jittered only, not to {name.value}")
    size = 20 if n is None else n
    more = {Family.TWO_CELLS: (), Family.JITTERED: (size, 0.2 if jitter is None else jitter, seed or 0)}
    _generate(GENERATORS[name], more.get(name, (size,)), {}, output, plot, as_json)


@command(mesh, "fluxforge mesh info m.msh --plot m.png")
def info(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Mesh file: .msh, .vtu, .vtk, .xdmf, …")],
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Describe a mesh file: cells, faces, tags, sizes, angles, and the Fourier step."""
    _run(lambda meshes: meshes.read(file), f"reading {file}", {"plot": plot}, as_json=as_json)


def _generate(
    name: str,
    arguments: tuple[Any, ...],
    options: Mapping[str, Any],
    output: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Generate a mesh by the function `name` of `fluxforge.mesh`, write and describe it."""
    files = {"file": output, "plot": plot}
    _run(lambda meshes: getattr(meshes, name)(*arguments, **options), "generating the mesh", files, as_json=as_json)


def _run(make: Callable[[Any], "Mesh"], what: str, files: Mapping[str, Path | None], *, as_json: bool) -> None:
    """Make a mesh, write it to `files["file"]` and draw it to `files["plot"]` if given, and print a description.

    `make` is called with the module `fluxforge.mesh`, which is imported here and not for shell completion.
    """
    with show_status(what, quiet=as_json):
        from fluxforge import mesh as meshes

        result = make(meshes)
        description = meshes.info(result)
        if (file := files.get("file")) is not None:
            meshes.write(result, file)
        if (plot := files["plot"]) is not None:
            meshes.mesh_picture(result, plot)
    if as_json:
        show_json({**asdict(description), **files})
        return
    show_pairs(_describe(description))
    for note in description.notes:
        show(f"note: {note}")
    for path in filter(None, files.values()):
        show(f"wrote {path}")
    if "file" in files and files["file"] is None:
        show("the mesh was not saved: give -o FILE to save it")


def _describe(info: "MeshInfo") -> Iterator[tuple[str, str]]:
    shapes = {"triangles": info.triangles, "quadrilaterals": info.quadrilaterals}
    yield "cells", f"{info.cells:,} ({', '.join(f'{many:,} {shape}' for shape, many in shapes.items() if many)})"
    yield "points", f"{info.points:,}"
    yield "faces", f"{info.faces:,}, {info.boundary_faces:,} of them on the boundary"
    yield "boundary tags", ", ".join(f"{tag} {many:,}" for tag, many in info.boundary_tags.items())
    if len(info.regions) > 1:
        yield "regions", ", ".join(f"{name} {many:,}" for name, many in info.regions.items())
    yield "area", number(info.area, 6)
    yield "h (largest diameter)", number(info.h)
    yield "cell areas", f"{number(info.cell_area_min)} to {number(info.cell_area_max)}"
    yield "quality (1 is best)", f"minimum {number(info.quality_min, 3)}, mean {number(info.quality_mean, 3)}"
    mean, most = info.nonorthogonality_mean_deg, info.nonorthogonality_max_deg
    yield "non-orthogonality", f"mean {mean:.2f}°, maximum {most:.2f}°"
    yield "Δt_Fourier", f"{number(info.dt_fourier)} (diffusivity 1, T given on the whole boundary)"
    yield "connected parts", str(info.components)


def parse_vertices(text: str) -> list[tuple[float, float]]:
    """Parse "0,0 1,0 1,1" into pairs of numbers; raises InputError that names the invalid vertex."""
    vertices = []
    for k, word in enumerate(text.replace(";", " ").split()):
        try:
            x, y = (float(part) for part in word.split(","))
        except ValueError as error:
            how = "write each as x,y, separated by spaces: 0,0 1,0 1,1"
            raise InputError(f"vertex {k} is {word!r:.60}; {how}") from error
        vertices.append((x, y))
    return vertices
