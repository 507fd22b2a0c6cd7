"""Scalar fields over cells, out of mesh files."""

import os
from pathlib import Path

import numpy as np

from fluxforge.errors import MeshReadError
from fluxforge.mesh.files._drawing import USED
from fluxforge.mesh.files._meshio import call_reader
from fluxforge.mesh.files._numbers import UnreadableError
from fluxforge.mesh.files._preflight import preflight
from fluxforge.mesh.files._vtu import read_vtu_cell_data

FORMATS = ("vtk", "vtu", "xdmf")


def read_cell_data(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """The scalar cell arrays of a `.vtk`, `.vtu` or `.xdmf` file by name, in the order in which `read` lists cells."""
    origin = os.fspath(path)
    try:
        format_name, data = preflight(Path(path))
        if format_name not in FORMATS:
            raise UnreadableError("carries no cell data that can be read; use .vtu, .vtk, .xdmf or .npy")
        if format_name == "vtu":
            return read_vtu_cell_data(data)
        mesh = call_reader(Path(path), format_name)
    except UnreadableError as error:
        raise MeshReadError(f"{origin}: {' '.join(str(error).split())}") from error
    kept = [k for k, block in enumerate(mesh.cells) if block.type in USED]
    found = {}
    for name, blocks in mesh.cell_data.items():
        arrays = [np.asarray(blocks[k]) for k in kept]
        if arrays and all(a.dtype.kind in "fiu" and a.size == len(a) for a in arrays):
            found[name] = np.concatenate([a.ravel() for a in arrays]).astype(float)
    return found
