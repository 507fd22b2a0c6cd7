"""What a mesh file lists, before any judgement; and that list as cells and tagged edges."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from fluxforge._types import Corners
from fluxforge.mesh.files._numbers import UnreadableError

USED = {"triangle": 3, "quad": 4}
IGNORED = ("line", "vertex")
# Where formats keep the tags of lines, in the order we look.
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
    """The nodes of a file with their numbers, its elements, and the names of the physical tags of its lines."""

    points: Float[np.ndarray, "points 3"]
    number: Int[np.ndarray, " points"]
    blocks: Sequence[Block]
    names: Mapping[int, str]
    notes: tuple[str, ...] = ()


def in_order(drawing: Drawing) -> Drawing:
    """The same drawing with its nodes in the order of their numbers; a number given twice is refused."""
    order = np.argsort(drawing.number, kind="stable")
    number = drawing.number[order]
    if (twice := np.flatnonzero(np.diff(number) == 0)).size:
        raise UnreadableError(f"lists node {number[twice[0]]} twice")
    return drawing._replace(points=drawing.points[order], number=number)


def cells_of(drawing: Drawing) -> Corners:
    """The triangles and quadrilaterals in the order of their numbers, by point; any other kind of cell is refused."""
    _refuse_others(drawing.blocks)
    used = [block for block in drawing.blocks if block.kind in USED and len(block.number)]
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


def edges_of(drawing: Drawing) -> dict[str, Int[np.ndarray, "edges 2"]]:
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


def _refuse_others(blocks: Sequence[Block]) -> None:
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
