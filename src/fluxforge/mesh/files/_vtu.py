"""VTK's .vtu files: one unstructured grid in one piece, its arrays in text, base64 or raw, packed or not.

meshio reads them too, but decodes all that follows an array's offset for every array, and joins packed blocks by
copying: files of kilobytes then take gigabytes or hours. Here every array is charged to one budget before it is made,
and only the arrays that are asked for are decoded.
"""

import importlib
from collections.abc import Mapping
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
from jaxtyping import Float, Int, Num

from fluxforge.mesh.files._budget import Budget
from fluxforge.mesh.files._drawing import TAG_FIELDS, USED, Block, Drawing
from fluxforge.mesh.files._numbers import UnreadableError
from fluxforge.mesh.files._vtu_arrays import VtuArrays, appended_data
from fluxforge.mesh.files._xml import parse_xml

CORNERS = {"line": 2, **USED}


class Grid(NamedTuple):
    """The cells of a .vtu file by their VTK type and their corners, `begin` to `end` in `connectivity`."""

    points: Float[np.ndarray, "points 3"]
    kind: Int[np.ndarray, " cells"]
    begin: Int[np.ndarray, " cells"]
    end: Int[np.ndarray, " cells"]
    connectivity: Int[np.ndarray, " corners"]


def read_vtu(data: bytes) -> Drawing:
    """The drawing in the bytes of a .vtu file. Lines are tagged by the first of TAG_FIELDS among the cell data."""
    arrays, piece = _open(data)
    grid = _grid(arrays, piece)
    names = _kind_names(grid.kind)
    tags = _tags(arrays, piece, len(grid.kind)) if "line" in names.values() else None
    blocks = []
    for number, name in names.items():
        cell = np.flatnonzero(grid.kind == number)
        physical = np.zeros(len(cell), np.int64) if tags is None else tags[cell]
        blocks.append(Block(name, cell, _corners(grid, cell, name), physical))
    return Drawing(grid.points, np.arange(len(grid.points)), blocks, {})


def read_vtu_cell_data(data: bytes) -> dict[str, np.ndarray]:
    """The scalar cell arrays of a .vtu file by name, for its triangles and quadrilaterals in the order of the file."""
    arrays, piece = _open(data)
    kind = _grid(arrays, piece).kind
    used = np.isin(kind, [number for number, name in _kind_names(kind).items() if name in USED])
    found = {}
    for name, element in _named(piece, "CellData").items():
        values = arrays.read(element)
        if len(values) == len(kind) and values.ndim == 1:
            found[name] = values[used].astype(float)
    return found


def _open(data: bytes) -> tuple[VtuArrays, ElementTree.Element]:
    """The arrays and the only piece of a grid, once its arrays together are known to fit the budget."""
    raw, begin = appended_data(data)
    # Bytes of any value may follow <AppendedData encoding="raw">.
    tree = parse_xml(data if raw is None else data[:begin] + b"</AppendedData></VTKFile>", "VTKFile")
    if tree.get("type") != "UnstructuredGrid":
        raise UnreadableError(f"holds a grid of type {tree.get('type')!r}: save it as an unstructured grid")
    pieces = tree.findall("./UnstructuredGrid/Piece")
    if len(pieces) != 1:
        raise UnreadableError(f"has {len(pieces)} pieces, and one was expected: merge them before saving")
    arrays = VtuArrays(tree, raw)
    budget = Budget(len(data))
    for element in tree.iter("DataArray"):
        arrays.charge(element, budget)
    return arrays, pieces[0]


def _grid(arrays: VtuArrays, piece: ElementTree.Element) -> Grid:
    points, cells = _count(piece, "NumberOfPoints"), _count(piece, "NumberOfCells")
    places = piece.findall("./Points/DataArray")
    if len(places) != 1:
        raise UnreadableError(f"has {len(places)} arrays of points, and one was expected")
    x = arrays.read(places[0])
    if x.ndim != 2 or x.shape != (points, x.shape[1]) or x.shape[1] not in (2, 3):
        raise UnreadableError(f"announces NumberOfPoints={points} and lists points of shape {x.shape}: it is damaged")
    listed = _named(piece, "Cells")
    for name in ("connectivity", "offsets", "types"):
        if name not in listed:
            raise UnreadableError(f"has no array {name!r} among its <Cells>")
    connectivity, end, kind = (_whole(arrays, listed[name]) for name in ("connectivity", "offsets", "types"))
    if not len(end) == len(kind) == cells:
        raise UnreadableError(f"announces NumberOfCells={cells} and lists {len(end)} offsets and {len(kind)} types")
    begin = np.concatenate([[0], end[:-1]])[:cells]
    if (begin > end).any() or (cells and (end[0] < 0 or end[-1] > len(connectivity))):
        raise UnreadableError("has offsets that do not fit its connectivity: it is damaged")
    return Grid(np.pad(x.astype(np.float64), ((0, 0), (0, 3 - x.shape[1]))), kind, begin, end, connectivity)


def _named(piece: ElementTree.Element, section: str) -> Mapping[str, ElementTree.Element]:
    return {element.get("Name", ""): element for element in piece.findall(f"./{section}/DataArray")}


def _count(piece: ElementTree.Element, name: str) -> int:
    words = (piece.get(name) or "").split()
    if len(words) != 1 or not words[0].isascii() or not words[0].isdigit() or len(words[0]) > 18:
        raise UnreadableError(f"has {name}={(piece.get(name) or '')[:40]!r}, not a count")
    return int(words[0])


def _whole(arrays: VtuArrays, element: ElementTree.Element) -> Int[np.ndarray, " n"]:
    values = arrays.read(element).ravel()
    # Beyond 2⁵³ nothing is a point, and unsigned numbers would wrap.
    if values.dtype.kind not in "iu" or (values.dtype == np.uint64 and (values > np.uint64(2**53)).any()):
        raise UnreadableError(f"lists {element.get('Name')!r} that are not whole numbers")
    return values.astype(np.int64)


def _kind_names(kind: Int[np.ndarray, " cells"]) -> dict[int, str]:
    """The VTK types that occur, by the names that meshio gives them."""
    known = importlib.import_module("meshio._vtk_common").vtk_to_meshio_type
    numbers = np.unique(kind).tolist()
    for number in numbers:
        if number not in known:
            raise UnreadableError(f"has cells of an unknown type ({number})")
    return {number: known[number] for number in numbers}


def _corners(grid: Grid, cell: Int[np.ndarray, " n"], name: str) -> Int[np.ndarray, "n corners"]:
    """The corners of cells of one kind; kinds that cannot be used keep their count and lose their corners."""
    if name not in CORNERS:
        return np.empty((len(cell), 0), np.int64)
    wanted = CORNERS[name]
    if (bad := np.flatnonzero(grid.end[cell] - grid.begin[cell] != wanted)).size:
        k = cell[bad[0]]
        raise UnreadableError(f"lists {grid.end[k] - grid.begin[k]} corners of cell {k}, a {name} with {wanted}")
    return grid.connectivity[grid.begin[cell][:, None] + np.arange(wanted)]


def _tags(arrays: VtuArrays, piece: ElementTree.Element, cells: int) -> Num[np.ndarray, " cells"] | None:
    listed = _named(piece, "CellData")
    for name in TAG_FIELDS:
        if name in listed:
            values = arrays.read(listed[name]).ravel()
            if values.dtype.kind in "iu" and len(values) == cells:
                return values.astype(np.int64)
    return None
