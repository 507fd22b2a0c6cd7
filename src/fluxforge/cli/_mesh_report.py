"""What the mesh commands write and print."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from fluxforge.cli._output import number, show, show_json, show_pairs
from fluxforge.mesh import Mesh, MeshInfo, info, write


def save(mesh: Mesh, *, file: Path | None, plot: Path | None) -> MeshInfo:
    """Write what is asked for, and describe the mesh."""
    described = info(mesh)
    if file is not None:
        write(mesh, file)
    if plot is not None:
        from fluxforge.mesh import mesh_picture

        mesh_picture(mesh, plot)
    return described


def show_described(described: MeshInfo, written: Mapping[str, Path | None], *, as_json: bool) -> None:
    """Print what the mesh is like and which files were written."""
    if as_json:
        show_json({**asdict(described), **written})
        return
    show_pairs(_pairs(described))
    for note in described.notes:
        show(f"note: {note}")
    for path in filter(None, written.values()):
        show(f"wrote {path}")
    if written.get("file", described) is None:
        show("the mesh was not kept: give -o FILE to write it")


def _pairs(info: MeshInfo) -> Iterator[tuple[str, str]]:
    shapes = {"triangles": info.triangles, "quadrilaterals": info.quadrilaterals}
    yield "cells", f"{info.cells:,} ({', '.join(f'{many:,} {shape}' for shape, many in shapes.items() if many)})"
    yield "points", f"{info.points:,}"
    yield "faces", f"{info.faces:,}, {info.boundary_faces:,} of them on the boundary"
    yield "boundary tags", ", ".join(f"{tag} {many:,}" for tag, many in info.boundary_tags.items())
    yield "area", number(info.area, 6)
    yield "h (largest diameter)", number(info.h)
    yield "cell areas", f"{number(info.cell_area_min)} to {number(info.cell_area_max)}"
    yield "quality (1 is best)", f"{number(info.quality_min, 3)} at least, {number(info.quality_mean, 3)} on average"
    mean, most = info.nonorthogonality_mean_deg, info.nonorthogonality_max_deg
    yield "non-orthogonality", f"{mean:.2f}° on average, {most:.2f}° at most"
    yield "Δt_Fourier", f"{number(info.dt_fourier)} (diffusivity 1, T given on the whole boundary)"
    yield "connected parts", str(info.components)
