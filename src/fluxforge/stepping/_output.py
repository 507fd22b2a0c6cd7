"""The files of a run, in a folder that holds one run and is never half old and half new."""

import os
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

from fluxforge._arguments import check_flag, check_kind, check_path
from fluxforge._files import TEMPORARY, write_document, write_text
from fluxforge.errors import InputError
from fluxforge.mesh._write import write
from fluxforge.run._durable import explain_failure
from fluxforge.run._folder import LOCK, lock_folder
from fluxforge.stepping._field import CELL
from fluxforge.stepping._problem_file import ARRAYS, FILE, write_problem
from fluxforge.stepping._simulation import Comparison, Simulation, animation, field_picture, side_by_side

# What a run or a comparison leaves, beside its fields; the summaries are written last and removed first.
LAST = ("summary.json", "compare.json")
NAMES = (*LAST, "series.pvd", "final.png", "T.gif", "compare.png", FILE, ARRAYS)
_FRAME = re.compile(r"T_\d+\.vtu")
_WRITING = ".fluxforge-writing-"


def folder_names(schemes: Sequence[str]) -> list[str]:
    """A folder's name for each scheme of a comparison: a scheme's name may come from a file, and be another's too."""
    names: list[str] = []
    for scheme in schemes:
        plain = re.sub(r"[^A-Za-z0-9_-]+", "-", scheme).strip("-")[:60] or "scheme"
        taken = sum(name == plain or name.startswith(f"{plain}~") for name in names)
        names.append(f"{plain}~{taken + 1}" if taken else plain)
    return names


def prepare_folder(folder: Path, schemes: Sequence[str], *, overwrite: bool = False) -> None:
    """Refuse a folder that holds an earlier run, unless `overwrite`; then remove what killed runs left there.

    `schemes` are the names of those that are run; several get a folder each. Nothing of the earlier run is removed
    here: it stays until the new one is complete.
    """
    places = _refuse_earlier(folder, schemes, overwrite=overwrite)
    for place in places:
        with explain_failure(place, "cannot be tidied"):
            _remove_strays(place)


def _refuse_earlier(folder: Path, schemes: Sequence[str], *, overwrite: bool) -> list[Path]:
    """The folders that these schemes would write to, none of which may hold a run, unless `overwrite`."""
    places = [folder, *(folder / name for name in folder_names(schemes) if len(schemes) > 1)]
    with explain_failure(folder, "cannot be read"):
        found = next((path for place in places for path in _earlier(place)), None)
    if found is not None and not overwrite:
        raise InputError(
            f"{folder}: holds an earlier run ({found.relative_to(folder)}): give another folder, "
            f"or --overwrite (overwrite=True) to replace it"
        )
    return places


def _earlier(folder: Path) -> list[Path]:
    """The files of an earlier run in a folder, its summaries first."""
    if not folder.is_dir():
        return []
    ours = [path for path in folder.iterdir() if path.name in NAMES or _FRAME.fullmatch(path.name)]
    return sorted(ours, key=lambda path: (path.name not in LAST, path.name))


def _remove_strays(folder: Path) -> None:
    """Remove files and folders that killed runs were writing; those of a run that still writes are locked."""
    for item in folder.iterdir() if folder.is_dir() else ():
        match = TEMPORARY.fullmatch(item.name)
        if match and (match["name"] in NAMES or _FRAME.fullmatch(match["name"])) and item.is_file():
            item.unlink(missing_ok=True)
        elif item.name.startswith(_WRITING) and item.is_dir() and not item.is_symlink():
            # InputError: another process holds the lock.
            with suppress(InputError):
                with lock_folder(item):
                    pass
                shutil.rmtree(item, ignore_errors=True)


@contextmanager
def replace_folder(folder: Path, schemes: Sequence[str], *, overwrite: bool) -> Iterator[Path]:
    """A temporary folder whose files take the place of an earlier run's in `folder` when the block ends well.

    Raises InputError where another run has got there first, unless `overwrite`. When the block fails, the earlier
    files are as they were.
    """
    prepare_folder(folder, schemes, overwrite=overwrite)
    writing, ours = folder / f"{_WRITING}{secrets.token_hex(6)}", not folder.exists()
    try:
        with explain_failure(folder):
            writing.mkdir(parents=True)
        with lock_folder(writing):
            yield writing
            places = _refuse_earlier(folder, schemes, overwrite=overwrite)
            with explain_failure(folder):
                _remove_earlier(folder, places)
                _move(writing, folder)
    finally:
        shutil.rmtree(writing, ignore_errors=True)
        if ours:
            # OSError: it holds the new run.
            with suppress(OSError):
                folder.rmdir()


def _remove_earlier(folder: Path, places: Sequence[Path]) -> None:
    """Remove an earlier run from these places, and all of an earlier comparison in `folder`.

    The folder of a scheme that is not run again goes too, unless it holds other files.
    """
    others: list[Path] = []
    if (folder / "compare.json").is_file():
        inside = [item for item in folder.iterdir() if item.is_dir() and not item.name.startswith(_WRITING)]
        others = [item for item in inside if (item / "summary.json").is_file() and (item / "series.pvd").is_file()]
    for place in dict.fromkeys((*places, *others)):
        for path in _earlier(place):
            path.unlink()
    for place in others:
        # OSError: it holds other files.
        with suppress(OSError):
            place.rmdir()


def _move(source: Path, target: Path) -> None:
    """Every file to its place, summaries last, so that a folder with a summary is complete."""
    files = [path for path in source.rglob("*") if path.is_file() and path.name != LOCK]
    for path in sorted(files, key=lambda path: (path.name in LAST, path.name == "compare.json", path.name)):
        place = target / path.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        os.replace(path, place)


SUMMARY_VERSION = 1


# Matplotlib's scales overflow beside fields near the largest number; the picture is drawn all the same.
@np.errstate(all="ignore")
def write_run(
    simulation: Simulation, folder: str | os.PathLike[str], *, gif: bool = False, overwrite: bool = False
) -> list[Path]:
    """Write `T_*.vtu`, `series.pvd`, `final.png`, `summary.json` and, if asked for, `T.gif`; return their paths.

    `problem.json` and `problem.npz` hold what was run, so that `rerun` and `restart` need nothing but the folder.
    Raises InputError where the folder holds an earlier run, unless `overwrite`: then all its files are replaced, once
    the new ones are complete.
    """
    check_kind(simulation, "simulation", Simulation, "what simulate(...) returned")
    target = _output_folder(folder, gif=gif, overwrite=overwrite)
    with replace_folder(target, [simulation.scheme], overwrite=overwrite) as writing:
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
    if simulation.problem is not None:
        written += write_problem(
            simulation.problem,
            folder,
            dt=simulation.dt,
            step=simulation.problem.first_step + simulation.steps,
            time=float(simulation.times[-1]),
            final=simulation.final,
        )
    write_document(folder / "summary.json", "simulation", SUMMARY_VERSION, asdict(simulation.summary()))
    return [*written, folder / "summary.json"]


def write_series(simulation: Simulation, folder: Path) -> list[Path]:
    """Write the saved fields as VTU files, and the .pvd file that ParaView opens as one animation; return the paths."""
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
    """Remove the fields of an earlier run in the same folder that the new series.pvd does not list."""
    for path in folder.glob("T_*.vtu"):
        if path not in frames and re.fullmatch(r"T_\d+\.vtu", path.name):
            path.unlink()


@np.errstate(all="ignore")
def write_comparison(
    comparison: Comparison, folder: str | os.PathLike[str], *, gif: bool = False, overwrite: bool = False
) -> list[Path]:
    """Write a folder per scheme as `write_run` does, a picture of all final fields, and the table as JSON.

    Raises InputError where the folder holds an earlier run, unless `overwrite`.
    """
    check_kind(comparison, "comparison", Comparison, "what compare(...) returned")
    target = _output_folder(folder, gif=gif, overwrite=overwrite)
    schemes = [simulation.scheme for simulation in comparison.simulations]
    with replace_folder(target, schemes, overwrite=overwrite) as writing:
        written: list[Path] = []
        for name, simulation in zip(folder_names(schemes), comparison.simulations, strict=True):
            written += _write_run(simulation, writing / name, gif=gif)
        side_by_side(comparison, writing / "compare.png")
        content = {"schemes": [asdict(row) for row in comparison.table()]}
        write_document(writing / "compare.json", "comparison", SUMMARY_VERSION, content)
        written += [writing / "compare.png", writing / "compare.json"]
    return [target / path.relative_to(writing) for path in written]
