"""The formats that meshio reads, for which fluxforge has no reader of its own."""

import contextlib
import importlib
import io
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from fluxforge.mesh._read_parts import CELL_CORNERS, KEPT_CORNERS, TAG_FIELDS, Block, Drawing, UnreadableError

VTK_CELLS = re.compile(rb"^[ \t]*CELLS[ \t]+(\d+)", re.MULTILINE | re.IGNORECASE)
# A reader that has read this many times at the end of a file is taken to loop.
MOST_READS_AT_END = 100


class _EndingText(io.TextIOWrapper):
    """A text file that raises UnreadableError when a reader keeps reading at its end: some would loop forever."""

    waited = 0

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        line = super().readline(size)
        self.waited = 0 if line else self.waited + 1
        if self.waited > MOST_READS_AT_END:
            raise UnreadableError("is cut short")
        return line


def read_with_meshio(path: Path, format_name: str, data: bytes) -> Drawing:
    """Read the nodes and elements of a file that has passed the preflight; UnreadableError if it is damaged."""
    mesh = call_reader(path, format_name)
    try:
        drawing = _to_drawing(mesh)
    except (IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise UnreadableError(f"cannot be used as {format_name} ({_describe_error(error)}): it is damaged") from error
    _check_count(drawing, format_name, data)
    return drawing


def call_reader(path: Path, format_name: str) -> Any:
    """Read a file that has passed the preflight, as meshio's own mesh; UnreadableError if meshio fails."""
    with capture_output() as said:
        try:
            mesh = _call_reader(path, format_name)
        except UnreadableError:
            raise
        except MemoryError as error:
            raise UnreadableError(
                "needs more memory than there is: it is damaged, or too large for this computer"
            ) from error
        # meshio's readers raise exceptions of any kind, and may try to exit.
        except (Exception, SystemExit) as error:
            raise UnreadableError(
                f"cannot be read as {format_name} ({_describe_error(error)}): it is damaged or cut short"
            ) from error
    remarks = " ".join(said.getvalue().split())
    if "cannot handle" in remarks:
        raise UnreadableError(f"has cells of an unknown type ({remarks[:120]})")
    return mesh


def _call_reader(path: Path, format_name: str) -> Any:
    reader = getattr(importlib.import_module("meshio"), format_name)
    if format_name in ("obj", "off"):
        with open(path, "rb") as file, _EndingText(file, encoding="utf-8") as text:
            return reader.read(text)
    return reader.read(os.fspath(path))


def _describe_error(error: BaseException) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__


@contextlib.contextmanager
def capture_output() -> Iterator[io.StringIO]:
    """Capture what is printed, and turn NumPy's warning about text that is not numbers into an error."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", message=".*could not be read to its end.*")
        yield said


def _to_drawing(mesh: Any) -> Drawing:
    points = np.asarray(mesh.points)
    if points.ndim != 2 or points.shape[1] not in (2, 3) or points.dtype.kind not in "fiu":
        raise UnreadableError(f"has points of shape {points.shape}; two or three numeric columns were expected")
    points = points.astype(np.float64)
    if points.shape[1] == 2:
        points = np.column_stack([points, np.zeros(len(points))])
    tags, names = _read_tags(mesh)
    blocks, begin = [], 0
    for k, block in enumerate(mesh.cells):
        number = np.arange(begin, begin + len(block.data))
        blocks.append(Block(block.type, number, _list_corners(block), tags.get(k, np.zeros(len(number), np.int64))))
        begin += len(number)
    return Drawing(points, np.arange(len(points)), blocks, names, regions=names)


def _list_corners(block: Any) -> Int[np.ndarray, "n corners"]:
    """The corners as whole numbers, a row per cell; kinds of cells that cannot be used have rows without columns."""
    wanted = KEPT_CORNERS.get(block.type)
    if wanted is None or not len(block.data):
        return np.empty((len(block.data), 0), np.int64)
    corners = np.asarray(block.data)
    whole = corners.dtype.kind in "iu" or (corners.dtype.kind == "f" and (corners == np.floor(corners)).all())
    if corners.ndim != 2 or corners.shape[1] != wanted or not whole:
        raise UnreadableError(f"lists corners of {block.type} cells that are not {wanted} whole numbers each")
    # No mesh has 2⁵³ points; larger unsigned or float numbers would wrap.
    return np.where(np.abs(corners.astype(np.float64)) < 2.0**53, corners, -1).astype(np.int64)


def _read_tags(mesh: Any) -> tuple[dict[int, Int[np.ndarray, " n"]], Mapping[int, str]]:
    """The tags of lines and cells, per block, from the first known field or from named sets; and the names of sets."""
    tagged = [k for k, block in enumerate(mesh.cells) if block.type == "line" or block.type in CELL_CORNERS]
    for field in TAG_FIELDS:
        if field in mesh.cell_data:
            values = {k: np.asarray(mesh.cell_data[field][k]).ravel() for k in tagged}
            if all(value.dtype.kind in "iu" and len(value) == len(mesh.cells[k].data) for k, value in values.items()):
                return {k: value.astype(np.int64) for k, value in values.items()}, {}
    return _read_sets(mesh.cells, mesh.cell_sets, tagged)


def _read_sets(
    cells: Sequence[Any], sets: Mapping[str, Sequence[Any]], tagged: Sequence[int]
) -> tuple[dict[int, Int[np.ndarray, " n"]], Mapping[int, str]]:
    tags = {k: np.zeros(len(cells[k].data), np.int64) for k in tagged}
    names = {}
    for number, (name, members) in enumerate(sets.items(), start=1):
        names[number] = name
        for k in tagged:
            if k < len(members) and members[k] is not None and len(members[k]):
                tags[k][np.asarray(members[k], dtype=np.int64)] = number
    return tags, names


def _check_count(drawing: Drawing, format_name: str, data: bytes) -> None:
    """Refuse a legacy VTK file with fewer cells than it announces: meshio reads as many as there are types."""
    match = VTK_CELLS.search(data) if format_name == "vtk" else None
    if match is None:
        return
    # Version 5.1 announces offsets, one more than cells.
    announced = int(match[1]) - (data.split(b"\n", 1)[0].split()[-1:] == [b"5.1"])
    listed = sum(len(block.number) for block in drawing.blocks)
    if announced != listed:
        raise UnreadableError(f"announces {announced} cells and lists {listed}: it is damaged or cut short")
