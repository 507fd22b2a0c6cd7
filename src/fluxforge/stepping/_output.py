"""What a run leaves on disk: a VTU series with its index, pictures, and a summary."""

import os
import re
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from fluxforge._arguments import check_flag, check_kind, check_path
from fluxforge._files import write_document, write_text
from fluxforge.mesh import write
from fluxforge.stepping._compare import Comparison
from fluxforge.stepping._field_file import CELL
from fluxforge.stepping._folder import folder_names, replaced_folder
from fluxforge.stepping._picture import animation, field_picture, side_by_side
from fluxforge.stepping._run import Simulation

SUMMARY_VERSION = 1


# Matplotlib's scales overflow beside fields near the largest number; the picture is drawn all the same.
@np.errstate(all="ignore")
def write_run(
    simulation: Simulation, folder: str | os.PathLike[str], *, gif: bool = False, overwrite: bool = False
) -> list[Path]:
    """Write `T_*.vtu`, `series.pvd`, `final.png`, `summary.json` and, if asked for, `T.gif`; return their paths.

    Raises InputError where the folder holds an earlier run, unless `overwrite`: then all its files are replaced, once
    the new ones are complete.
    """
    check_kind(simulation, "simulation", Simulation, "what simulate(...) returned")
    target = _output_folder(folder, gif=gif, overwrite=overwrite)
    with replaced_folder(target, [simulation.scheme], overwrite=overwrite) as writing:
        written = _write_run(simulation, writing, gif=gif)
    return [target / path.relative_to(writing) for path in written]


def _output_folder(folder: str | os.PathLike[str], *, gif: bool, overwrite: bool) -> Path:
    check_flag(gif, "gif"), check_flag(overwrite, "overwrite")
    return Path(check_path(folder, "folder", "the path of a folder"))


def _write_run(simulation: Simulation, folder: Path, *, gif: bool) -> list[Path]:
    written = write_series(simulation, folder)
    field_picture(simulation, folder / "final.png")
    written.append(folder / "final.png")
    if gif:
        animation(simulation, folder / "T.gif")
        written.append(folder / "T.gif")
    write_document(folder / "summary.json", "simulation", SUMMARY_VERSION, simulation.summary())
    return [*written, folder / "summary.json"]


def write_series(simulation: Simulation, folder: Path) -> list[Path]:
    """The saved fields as VTU files, and the .pvd file by which ParaView opens them as one animation."""
    digits = len(str(len(simulation.fields) - 1))
    frames = [folder / f"T_{k:0{digits}d}.vtu" for k in range(len(simulation.fields))]
    mixed = (simulation.mesh.cells < 0).any()
    numbers = {CELL: np.arange(len(simulation.mesh.cells))} if mixed else {}
    for path, field in zip(frames, simulation.fields, strict=True):
        write(simulation.mesh, path, cell_data={"T": field} | numbers)
    _remove_older(folder, frames)
    lines = [
        f'    <DataSet timestep="{time!r}" part="0" file={quoteattr(path.name)}/>'
        for time, path in zip(simulation.times.tolist(), frames, strict=True)
    ]
    head = (
        '<?xml version="1.0"?>\n<VTKFile type="Collection" version="0.1" byte_order="LittleEndian">\n  <Collection>\n'
    )
    write_text(folder / "series.pvd", head + "\n".join(lines) + "\n  </Collection>\n</VTKFile>\n")
    return [*frames, folder / "series.pvd"]


def _remove_older(folder: Path, frames: list[Path]) -> None:
    """The fields of an earlier run in the same folder, which no series.pvd speaks of any more."""
    for path in folder.glob("T_*.vtu"):
        if path not in frames and re.fullmatch(r"T_\d+\.vtu", path.name):
            path.unlink()


@np.errstate(all="ignore")
def write_comparison(
    comparison: Comparison, folder: str | os.PathLike[str], *, gif: bool = False, overwrite: bool = False
) -> list[Path]:
    """A folder per scheme as `write_run` makes it, all final fields side by side, and the table as JSON.

    Raises InputError where the folder holds an earlier run, unless `overwrite`.
    """
    check_kind(comparison, "comparison", Comparison, "what compare(...) returned")
    target = _output_folder(folder, gif=gif, overwrite=overwrite)
    schemes = [simulation.scheme for simulation in comparison.simulations]
    with replaced_folder(target, schemes, overwrite=overwrite) as writing:
        written: list[Path] = []
        for name, simulation in zip(folder_names(schemes), comparison.simulations, strict=True):
            written += _write_run(simulation, writing / name, gif=gif)
        side_by_side(comparison, writing / "compare.png")
        content: dict[str, Any] = {"schemes": comparison.table()}
        write_document(writing / "compare.json", "comparison", SUMMARY_VERSION, content)
        written += [writing / "compare.png", writing / "compare.json"]
    return [target / path.relative_to(writing) for path in written]
