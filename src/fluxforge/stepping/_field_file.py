"""Fields over cells from files: `field.npy`, or one cell array of a mesh file, `run.vtu:T`."""

from pathlib import Path

import numpy as np

from fluxforge._arguments import check_text, check_whole
from fluxforge._files import SpecialFileError, open_regular
from fluxforge.errors import InputError
from fluxforge.mesh import read_cell_data

CELL = "cell"


def read_field(spec: str, cells: int) -> np.ndarray:
    """The field that `spec` names, one finite number per cell, in the mesh's order of cells."""
    check_text(spec, "spec"), check_whole(cells, "cells", least=1)
    path, _, name = spec.rpartition(":") if ":" in Path(spec).name else (spec, "", "")
    values = _from_array_file(path) if Path(path).suffix == ".npy" else _from_mesh_file(path, name or "T")
    if values.shape != (cells,):
        raise InputError(f"{path}: holds values of shape {values.shape}, and the mesh has {cells} cells")
    if not np.isfinite(values).all():
        bad = int(np.flatnonzero(~np.isfinite(values))[0])
        raise InputError(f"{path}: the value of cell {bad} is {values[bad]}; it should be finite")
    return values


def _from_array_file(path: str) -> np.ndarray:
    try:
        open_regular(path).close()
        # Mapped, so that a header that announces more than the file holds costs nothing.
        loaded = np.load(path, mmap_mode="r", allow_pickle=False)
        if not isinstance(loaded, np.ndarray):
            raise ValueError("it is an archive")
        if loaded.dtype.kind not in "fiu":
            raise ValueError(f"it holds {loaded.dtype}")
        return np.array(loaded, dtype=float)
    except SpecialFileError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except (OSError, ValueError, EOFError, TypeError) as error:
        raise InputError(f"{path}: is not a readable .npy array of numbers ({error})") from error


def _from_mesh_file(path: str, name: str) -> np.ndarray:
    found = read_cell_data(path)
    if name not in found:
        raise InputError(f"{path}: has no cell data {name!r}; it has: {', '.join(sorted(found)) or 'none'}")
    values = found[name]
    if CELL not in found:
        return values
    # A format that lists triangles before quadrilaterals says which cell of the mesh each entry is.
    order = found[CELL].astype(np.int64)
    if not np.array_equal(np.sort(order), np.arange(len(values))):
        raise InputError(f"{path}: its cell data {CELL!r} should number the cells from 0, each once")
    placed = np.empty_like(values)
    placed[order] = values
    return placed
