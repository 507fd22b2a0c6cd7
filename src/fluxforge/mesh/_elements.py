"""The nodes and elements that a mesh file lists, as cells, regions and tagged edges."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Int

from fluxforge._types import Corners
from fluxforge.mesh._read_parts import CELL_CORNERS, OTHER_ELEMENTS, Block, Drawing, UnreadableError

# No node has this number, so it can mark the missing fourth corner of a triangle.
NO_NODE = np.iinfo(np.int64).min


def _used_blocks(drawing: Drawing) -> list[Block]:
    return [block for block in drawing.blocks if block.kind in CELL_CORNERS and len(block.number)]


def list_regions(drawing: Drawing) -> dict[str, Int[np.ndarray, " n"]]:
    """The cells of each region (physical tag), by name; a tag without a name is called tag-<number>."""
    used = _used_blocks(drawing)
    order = np.argsort(np.concatenate([block.number for block in used]), kind="stable")
    physical = np.concatenate([block.physical for block in used])[order]
    return {name: np.sort(cells) for name, cells in _group_by_name(physical, drawing.regions).items()}


def _group_by_name(physical: Int[np.ndarray, " n"], names: Mapping[int, str]) -> dict[str, Int[np.ndarray, " _"]]:
    """The indices of the elements with each physical tag except 0, by the name of the tag."""
    # One sort, whatever the number of tags: a file may have as many tags as cells or lines.
    order = np.argsort(physical, kind="stable")
    order = order[physical[order] != 0]
    first = np.flatnonzero(np.diff(physical[order], prepend=0))
    places: dict[str, list[Int[np.ndarray, " _"]]] = {}
    for tag, piece in zip(physical[order[first]].tolist(), np.split(order, first)[1:], strict=True):
        places.setdefault(names.get(tag) or f"tag-{tag}", []).append(piece)
    return {name: np.concatenate(pieces) for name, pieces in places.items()}


def list_cells(drawing: Drawing) -> Corners:
    """The triangles and quadrilaterals in the order of their numbers in the file; corners are indices of points.

    Raises UnreadableError for cells of any other kind, and for a corner that the file does not list.
    """
    _check_kinds(drawing.blocks)
    used = _used_blocks(drawing)
    if not used:
        raise UnreadableError("has no triangles or quadrilaterals")
    columns = max(CELL_CORNERS[block.kind] for block in used)
    corners = np.full((sum(len(block.number) for block in used), columns), NO_NODE)
    begin = 0
    for block in used:
        corners[begin : begin + len(block.number), : CELL_CORNERS[block.kind]] = block.corners
        begin += len(block.number)
    corners = corners[np.argsort(np.concatenate([block.number for block in used]), kind="stable")]
    present = corners != NO_NODE
    cells = np.full(corners.shape, -1)
    cells[present] = find_points(drawing.number, corners[present])
    if (lost := np.flatnonzero(present & (cells < 0))).size:
        cell = lost[0] // columns
        raise UnreadableError(f"cell {cell} refers to node {corners.flat[lost[0]]}, which the file does not list")
    return cells


def list_tagged_edges(drawing: Drawing) -> dict[str, Int[np.ndarray, "edges 2"]]:
    """The end points of the lines that carry a physical tag, by name; a tag without a name is called tag-<number>."""
    lines = [block for block in drawing.blocks if block.kind == "line" and len(block.number)]
    if not lines:
        return {}
    physical = np.concatenate([block.physical for block in lines])
    corners = np.concatenate([block.corners for block in lines])
    points = find_points(drawing.number, corners)
    if (lost := np.argwhere((points < 0) & (physical != 0)[:, None])).size:
        line, end = lost[np.argmin(physical[lost[:, 0]])]
        raise UnreadableError(
            f"a line of tag {physical[line]} refers to node {corners[line, end]}, which the file does not list"
        )
    return {name: points[places] for name, places in _group_by_name(physical, drawing.names).items()}


def find_points(number: Int[np.ndarray, " points"], wanted: Int[np.ndarray, "*n"]) -> Int[np.ndarray, "*n"]:
    """The index of each wanted number in the ascending array `number`, −1 where it does not occur."""
    if not len(number):
        return np.full(wanted.shape, -1)
    first, last = int(number[0]), int(number[-1])
    # Consecutive numbers need no search.
    if last - first + 1 == len(number):
        return np.where((wanted >= first) & (wanted <= last), wanted - first, -1)
    place = np.searchsorted(number, wanted).clip(max=len(number) - 1)
    return np.where(number[place] == wanted, place, -1)


def _check_kinds(blocks: Sequence[Block]) -> None:
    count: Counter[str] = Counter()
    for block in blocks:
        count[block.kind] += len(block.number)
    others = {kind: n for kind, n in count.items() if n and kind not in CELL_CORNERS and kind not in OTHER_ELEMENTS}
    if others:
        listed = ", ".join(f"{n} of type {kind!r}" for kind, n in others.items())
        raise UnreadableError(
            f"has cells of types that are not supported ({listed}): "
            "only triangles with 3 nodes and quadrilaterals with 4 nodes are; save the mesh in 2D with elements "
            "of order 1"
        )
