"""The nodes and elements that a mesh file lists, as cells and tagged edges; and the formats that meshio reads.

XDMF files are checked before meshio reads them: no entities, no other files than HDF5, bounded memory.
"""

import contextlib
import importlib
import io
import math
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from jaxtyping import Int

from fluxforge._types import Corners
from fluxforge.mesh._read_parts import (
    IGNORED,
    TAG_FIELDS,
    USED,
    VIEW,
    Block,
    Budget,
    Drawing,
    UnreadableError,
    parse_xml,
)

# No node has this number, so it can mark the missing fourth corner of a triangle.
NOTHING = np.iinfo(np.int64).min


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


# NumPy's own limit; the product of more could have any number of digits.
MOST_DIMENSIONS = 32


def check_xdmf(data: bytes, folder: Path) -> None:
    """Raise UnreadableError if arrays announce more than they hold, or lie in files other than HDF5 beside it.

    All arrays are charged to one budget, for the file and the HDF5 files it refers to.
    """
    tree = parse_xml(data, "Xdmf")
    for element in tree.iter():
        # The content of <Information> is parsed as XML again.
        if "<!" in (element.text or ""):
            raise UnreadableError("declares a document type within the document, which a mesh does not need")
    budget = Budget(len(data))
    datasets = Datasets(folder, budget)
    for item in tree.iter("DataItem"):
        if "Reference" in item.attrib:
            raise UnreadableError("has an array that refers to another one, which cannot be read: save it in full")
        announced = _dimensions(item)
        text = (item.text or "").strip()
        match item.get("Format"):
            case "XML":
                if announced > len(text):
                    raise UnreadableError(f"announces an array of {announced} numbers and lists fewer: it is damaged")
            case "HDF":
                datasets.check(text, announced)
            case other:
                raise UnreadableError(f"keeps an array in format {other!r}; XML and HDF can be read")
    # A run of cells takes two numbers or more.
    runs = sum(_dimensions(item) for topology in tree.iter("Topology") for item in topology.iter("DataItem")) // 2
    attributes = sum(1 for _ in tree.iter("Attribute"))
    budget.spend(VIEW * runs * attributes, f"lists {attributes} attributes, which is")


def _dimensions(item: ElementTree.Element) -> int:
    words = (item.get("Dimensions") or "").split()
    counts = all(word.isascii() and word.isdigit() and len(word) < 20 for word in words)
    if not 0 < len(words) <= MOST_DIMENSIONS or not counts:
        raise UnreadableError(f"has an array with Dimensions={(item.get('Dimensions') or '')[:60]!r}, not counts")
    return math.prod(int(word) for word in words)


# Each opens the file twice, which takes a millisecond.
MOST_DATASETS = 1_000


class Datasets:
    """The HDF5 arrays that one mesh file refers to, all charged to one budget."""

    def __init__(self, folder: Path, budget: Budget) -> None:
        self.folder, self.budget = folder, budget
        self._count = 0
        self._files: set[str] = set()

    def check(self, reference: str, announced: int) -> None:
        """Check a reference "name.h5:/path" and charge its data; UnreadableError if it leaves the folder."""
        self._count += 1
        if self._count > MOST_DATASETS:
            raise UnreadableError(f"refers to more than {MOST_DATASETS} HDF5 arrays, which no mesh needs")
        path, nbytes = _plain_dataset(reference, announced, self.folder)
        if path.name not in self._files:
            self._files.add(path.name)
            self.budget.allow(path.stat().st_size)
        self.budget.spend(nbytes)


def _plain_dataset(reference: str, announced: int, folder: Path) -> tuple[Path, int]:
    """The file of a dataset that has as many numbers as announced, and the bytes they take."""
    # h5py takes a while to import, and few meshes need it.
    h5py = importlib.import_module("h5py")

    name, colon, inside = (word.strip() for word in reference.partition(":"))
    path = folder / name
    if not colon or name != Path(name).name or name in ("", "..") or "\\" in name or ":" in inside:
        raise UnreadableError(f"refers to {reference[:60]!r}; only HDF5 files in its own folder can be read")
    if path.is_symlink() or not path.is_file():
        raise UnreadableError(f"refers to {name!r}, which is not a regular file in its folder")
    try:
        with h5py.File(path, "r") as file:
            dataset = _dataset(h5py, file, inside)
            size, kind = dataset.size, dataset.dtype.kind
            own = dataset.external is None and not dataset.is_virtual
            nbytes = dataset.nbytes
    except (OSError, KeyError, ValueError, RuntimeError, AttributeError) as error:
        raise UnreadableError(f"refers to {reference[:60]!r}, which cannot be read ({error})") from error
    if not own or kind not in "iuf":
        raise UnreadableError(f"refers to {reference[:60]!r}, which is not a plain array of numbers")
    if size != announced:
        raise UnreadableError(f"announces {announced} numbers in {reference[:60]!r}, which has {size}: it is damaged")
    return path, int(nbytes)


def _dataset(h5py: Any, file: Any, inside: str) -> Any:
    """The dataset at a path all of whose steps stay in the file."""
    found = file
    for step in inside.strip("/").split("/"):
        if not isinstance(found.get(step, getlink=True), h5py.HardLink):
            raise ValueError(f"{step!r} is a link")
        found = found[step]
    if not isinstance(found, h5py.Dataset):
        raise ValueError(f"{inside!r} is not an array")
    return found
