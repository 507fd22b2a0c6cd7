"""The nodes and elements that a mesh file lists, as cells and tagged edges; and the formats that meshio reads."""

import contextlib
import importlib
import io
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from fluxforge._types import Corners
from fluxforge.mesh._read_numbers import UnreadableError

USED = {"triangle": 3, "quad": 4}
IGNORED = ("line", "vertex")
# Fields in which formats store the tags of lines, in order of preference.
TAG_FIELDS = ("gmsh:physical", "medit:ref", "cell_tags", "CellEntityIds")
# No node has this number, so it can mark the missing fourth corner of a triangle.
NOTHING = np.iinfo(np.int64).min


class Block(NamedTuple):
    """Elements of one kind: their numbers in the file, their corners by node number, their physical tag (0: none)."""

    kind: str
    number: Int[np.ndarray, " n"]
    corners: Int[np.ndarray, "n corners"]
    physical: Int[np.ndarray, " n"]


class Drawing(NamedTuple):
    """The nodes of a file with their numbers, its elements, and the names of the physical tags of lines and cells."""

    points: Float[np.ndarray, "points 3"]
    number: Int[np.ndarray, " points"]
    blocks: Sequence[Block]
    names: Mapping[int, str]
    notes: tuple[str, ...] = ()
    regions: Mapping[int, str] = MappingProxyType({})


def sort_nodes(drawing: Drawing) -> Drawing:
    """The same drawing with its nodes in the order of their numbers; a number given twice is refused."""
    order = np.argsort(drawing.number, kind="stable")
    number = drawing.number[order]
    if (twice := np.flatnonzero(np.diff(number) == 0)).size:
        raise UnreadableError(f"lists node {number[twice[0]]} twice")
    return drawing._replace(points=drawing.points[order], number=number)


def _used_blocks(drawing: Drawing) -> list[Block]:
    return [block for block in drawing.blocks if block.kind in USED and len(block.number)]


def list_regions(drawing: Drawing) -> dict[str, Int[np.ndarray, " n"]]:
    """The cells that carry a physical tag, by name; a tag without a name is called tag-<number>."""
    used = _used_blocks(drawing)
    order = np.argsort(np.concatenate([block.number for block in used]), kind="stable")
    physical = np.concatenate([block.physical for block in used])[order]
    tags, place = np.unique(physical, return_inverse=True)
    # One sort, whatever the number of tags: a file may have as many tags as cells.
    pieces = np.split(np.argsort(place, kind="stable"), np.cumsum(np.bincount(place, minlength=len(tags)))[:-1])
    regions: dict[str, list[Int[np.ndarray, " n"]]] = {}
    for tag, cells in zip(tags.tolist(), pieces, strict=True):
        if tag != 0:
            regions.setdefault(drawing.regions.get(tag) or f"tag-{tag}", []).append(cells)
    return {name: np.sort(np.concatenate(cells)) for name, cells in regions.items()}


def list_cells(drawing: Drawing) -> Corners:
    """The triangles and quadrilaterals in the order of their numbers, by point; any other kind of cell is refused."""
    _check_kinds(drawing.blocks)
    used = _used_blocks(drawing)
    if not used:
        raise UnreadableError("has no triangles or quadrilaterals")
    columns = max(USED[block.kind] for block in used)
    corners = np.full((sum(len(block.number) for block in used), columns), NOTHING)
    begin = 0
    for block in used:
        corners[begin : begin + len(block.number), : USED[block.kind]] = block.corners
        begin += len(block.number)
    corners = corners[np.argsort(np.concatenate([block.number for block in used]), kind="stable")]
    present = corners != NOTHING
    cells = np.full(corners.shape, -1)
    cells[present] = point_of(drawing.number, corners[present])
    if (lost := np.flatnonzero(present & (cells < 0))).size:
        cell = lost[0] // columns
        raise UnreadableError(f"cell {cell} refers to node {corners.flat[lost[0]]}, which the file does not list")
    return cells


def list_tagged_edges(drawing: Drawing) -> dict[str, Int[np.ndarray, "edges 2"]]:
    """The lines that carry a physical tag, by name; a tag without a name is called tag-<number>."""
    lines = [block for block in drawing.blocks if block.kind == "line" and len(block.number)]
    if not lines:
        return {}
    physical = np.concatenate([block.physical for block in lines])
    # One sort, whatever the number of tags: a file may have as many tags as lines.
    order = np.argsort(physical, kind="stable")
    order = order[physical[order] != 0]
    if not len(order):
        return {}
    physical, corners = physical[order], np.concatenate([block.corners for block in lines])[order]
    points = point_of(drawing.number, corners)
    if (lost := np.flatnonzero(points < 0)).size:
        tag, node = physical[lost[0] // 2], corners.flat[lost[0]]
        raise UnreadableError(f"a line of tag {tag} refers to node {node}, which the file does not list")
    edges: dict[str, list[Int[np.ndarray, "edges 2"]]] = {}
    first = np.flatnonzero(np.diff(physical, prepend=0))
    for tag, piece in zip(physical[first].tolist(), np.split(points, first[1:]), strict=True):
        edges.setdefault(drawing.names.get(tag) or f"tag-{tag}", []).append(piece)
    return {name: np.concatenate(pieces) for name, pieces in edges.items()}


def point_of(number: Int[np.ndarray, " points"], wanted: Int[np.ndarray, "*n"]) -> Int[np.ndarray, "*n"]:
    """Where each wanted number stands in the ascending `number`; −1 where it does not."""
    if not len(number):
        return np.full(wanted.shape, -1)
    first, last = int(number[0]), int(number[-1])
    if last - first + 1 == len(number):
        return np.where((wanted >= first) & (wanted <= last), wanted - first, -1)
    place = np.searchsorted(number, wanted).clip(max=len(number) - 1)
    return np.where(number[place] == wanted, place, -1)


def _check_kinds(blocks: Sequence[Block]) -> None:
    count: Counter[str] = Counter()
    for block in blocks:
        count[block.kind] += len(block.number)
    others = {kind: n for kind, n in count.items() if n and kind not in USED and kind not in IGNORED}
    if others:
        listed = ", ".join(f"{n} of type {kind!r}" for kind, n in others.items())
        raise UnreadableError(
            f"has cells that cannot be used ({listed}): "
            "only triangles with 3 nodes and quadrilaterals with 4 can, so save the mesh in 2D at order 1"
        )


CORNERS = {"vertex": 1, "line": 2, "triangle": 3, "quad": 4, "tetra": 4, "pyramid": 5, "wedge": 6, "hexahedron": 8}


@cache
def find_kind(gmsh_type: int) -> tuple[str, int]:
    """The name of an element type, as meshio has it, and its number of nodes: (triangle6, 6) for type 9."""
    # meshio takes a while to import, and a mesh that is generated does not need it.
    kind = importlib.import_module("meshio").gmsh.gmsh_to_meshio_type.get(gmsh_type)
    if kind is None:
        raise UnreadableError(f"has elements of type {gmsh_type}, which is unknown")
    order = re.search(r"\d+$", kind)
    return kind, int(order[0]) if order else CORNERS[kind]


VTK_CELLS = re.compile(rb"^[ \t]*CELLS[ \t]+(\d+)", re.MULTILINE | re.IGNORECASE)
# Reads at the end of a file after which a reader is taken to loop.
ENDLESS = 100


class _EndingText(io.TextIOWrapper):
    """A text file that raises UnreadableError when a reader keeps reading at its end: some would loop forever."""

    waited = 0

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        line = super().readline(size)
        self.waited = 0 if line else self.waited + 1
        if self.waited > ENDLESS:
            raise UnreadableError("is cut short")
        return line


def read_with_meshio(path: Path, format_name: str, data: bytes) -> Drawing:
    """The drawing in a file that has passed the preflight."""
    mesh = call_reader(path, format_name)
    try:
        drawing = _drawing(mesh)
    except (IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise UnreadableError(f"cannot be used as {format_name} ({_reason(error)}): it is damaged") from error
    _check_count(drawing, format_name, data)
    return drawing


def call_reader(path: Path, format_name: str) -> Any:
    """The mesh as meshio returns it, from a file that has passed the preflight."""
    with quiet() as said:
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
                f"cannot be read as {format_name} ({_reason(error)}): it is damaged or cut short"
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


def _reason(error: BaseException) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__


@contextlib.contextmanager
def quiet() -> Iterator[io.StringIO]:
    """Capture what is printed, and turn NumPy's warning about text that is not numbers into an error."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", message=".*could not be read to its end.*")
        yield said


def _drawing(mesh: Any) -> Drawing:
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
        blocks.append(Block(block.type, number, _corners(block), tags.get(k, np.zeros(len(number), np.int64))))
        begin += len(number)
    return Drawing(points, np.arange(len(points)), blocks, names, regions=names)


def _corners(block: Any) -> Int[np.ndarray, "n corners"]:
    """The corners as whole numbers. Kinds that cannot be used keep their count and lose their corners."""
    wanted = {"line": 2, "triangle": 3, "quad": 4}.get(block.type)
    if wanted is None or not len(block.data):
        return np.empty((len(block.data), 0), np.int64)
    corners = np.asarray(block.data)
    whole = corners.dtype.kind in "iu" or (corners.dtype.kind == "f" and (corners == np.floor(corners)).all())
    if corners.ndim != 2 or corners.shape[1] != wanted or not whole:
        raise UnreadableError(f"lists corners of {block.type} cells that are not {wanted} whole numbers each")
    # Beyond 2⁵³ nothing is a point, and unsigned or float numbers would wrap.
    return np.where(np.abs(corners.astype(np.float64)) < 2.0**53, corners, -1).astype(np.int64)


def _read_tags(mesh: Any) -> tuple[dict[int, Int[np.ndarray, " n"]], Mapping[int, str]]:
    """The tags of lines and cells, per block, from the first known field or from named sets; and the names of sets."""
    tagged = [k for k, block in enumerate(mesh.cells) if block.type == "line" or block.type in USED]
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
    found = VTK_CELLS.search(data) if format_name == "vtk" else None
    if found is None:
        return
    # Version 5.1 announces offsets, one more than cells.
    announced = int(found[1]) - (data.split(b"\n", 1)[0].split()[-1:] == [b"5.1"])
    listed = sum(len(block.number) for block in drawing.blocks)
    if announced != listed:
        raise UnreadableError(f"announces {announced} cells and lists {listed}: it is damaged or cut short")
