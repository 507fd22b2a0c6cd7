"""`fluxforge mesh`: generate meshes and look at them."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any

import typer

from fluxforge.cli._arguments import Engine, Family, Json, Kind, OutputFile, Plot, count
from fluxforge.cli._typer import command, group
from fluxforge.cli._vertices import vertices_of
from fluxforge.errors import InputError

mesh = group(text="Generate meshes, and inspect mesh files.", example="fluxforge mesh info m.msh")

Cells = Annotated[int | None, count("--cells", text="About this many cells (300 unless a size is given).")]
Size = Annotated[float | None, typer.Option(metavar="H", help="Length of edges, instead of a number of cells.")]
KindOption = Annotated[Kind, typer.Option(help="Irregular meshes are finer around two random points.")]
Seed = Annotated[int, count("--seed", text="Chooses the random points.")]
EngineOption = Annotated[Engine, typer.Option(help="auto: gmsh where it works, the built-in engine elsewhere.")]


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

    def make() -> Any:
        from fluxforge.mesh import square

        return square(cells=cells, size=size, kind=kind.value, seed=seed, engine=engine.value)

    _make(make, output=output, plot=plot, as_json=as_json)


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

    def make() -> Any:
        from fluxforge.mesh import disk

        return disk(radius, cells=cells, size=size, kind=kind.value, seed=seed, engine=engine.value)

    _make(make, output=output, plot=plot, as_json=as_json)


@command(mesh, 'fluxforge mesh polygon "0,0 2,0 2,1 1,1 1,2 0,2" --cells 500 -o ell.msh')
def polygon(
    vertices: Annotated[str, typer.Argument(metavar="VERTICES", help='Corners in order: "0,0 1,0 1,1 0,1".')],
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

    def make() -> Any:
        from fluxforge.mesh import polygon

        corners = vertices_of(vertices)
        return polygon(corners, cells=cells, size=size, kind=kind.value, seed=seed, engine=engine.value)

    _make(make, output=output, plot=plot, as_json=as_json)


@command(mesh, "fluxforge mesh family jittered -n 20 --jitter 0.2 --seed 1 -o jittered.msh")
def family(
    name: Annotated[Family, typer.Argument(metavar="FAMILY", help="Which family.")],
    n: Annotated[int | None, count("-n", text="Squares per side (20 unless given).")] = None,
    jitter: Annotated[
        float | None, typer.Option(help="jittered: how far points move, at most 0.3 (0.2 unless given).")
    ] = None,
    seed: Annotated[int | None, count("--seed", text="jittered: chooses the moves.")] = None,
    output: OutputFile = None,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Make a structured mesh of a family for refinement studies."""
    if name is Family.TWO_CELLS and n is not None:
        raise InputError("the family two-cells has one size: leave out -n")
    if name is not Family.JITTERED and not (jitter is None and seed is None):
        raise InputError(f"--jitter and --seed are for the family jittered, not for {name.value}")

    def make() -> Any:
        from fluxforge import mesh

        size = 20 if n is None else n
        match name:
            case Family.JITTERED:
                return mesh.jittered(size, 0.2 if jitter is None else jitter, seed or 0)
            case Family.TWO_CELLS:
                return mesh.two_cells()
            case Family.SQUARES:
                return mesh.squares(size)
            case Family.RIGHT:
                return mesh.right_triangles(size)
            case Family.CROSS:
                return mesh.cross_triangles(size)
            case Family.EQUILATERAL:
                return mesh.equilateral(size)

    _make(make, output=output, plot=plot, as_json=as_json)


@command(mesh, "fluxforge mesh info m.msh --plot m.png")
def info(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A mesh file: .msh, .vtu, .vtk, .xdmf, …")],
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Describe a mesh file: cells, faces, tags, sizes, angles, and the Fourier step."""

    def read() -> Any:
        from fluxforge.mesh import read

        return read(file)

    with _doing(f"reading {file}", as_json):
        from fluxforge.cli._mesh_report import save, show_described

        described = save(read(), file=None, plot=plot)
    show_described(described, {"plot": plot}, as_json=as_json)


def _make(make: Callable[[], Any], *, output: Path | None, plot: Path | None, as_json: bool) -> None:
    with _doing("generating the mesh", as_json):
        from fluxforge.cli._mesh_report import save, show_described

        described = save(make(), file=output, plot=plot)
    show_described(described, {"file": output, "plot": plot}, as_json=as_json)


def _doing(what: str, as_json: bool) -> AbstractContextManager[Any]:
    from fluxforge.cli._progress import doing

    return doing(what, quiet=as_json)
