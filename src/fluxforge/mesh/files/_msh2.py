"""The sections of a .msh file of version 2."""

import numpy as np
from jaxtyping import Float, Int

from fluxforge.mesh.files._drawing import Block
from fluxforge.mesh.files._kinds import kind_of
from fluxforge.mesh.files._numbers import BinaryNumbers, TextNumbers, UnreadableError


def text_nodes(numbers: TextNumbers) -> tuple[Float[np.ndarray, "points 3"], Int[np.ndarray, " points"]]:
    """The coordinates and the numbers of the nodes: rows of number, x, y, z."""
    count = numbers.size()
    rows = numbers.floats(4 * count).reshape(count, 4)
    return rows[:, 1:], TextNumbers(rows[:, 0]).sizes(count)


def binary_nodes(numbers: BinaryNumbers) -> tuple[Float[np.ndarray, "points 3"], Int[np.ndarray, " points"]]:
    """The same from a count in text and rows in binary."""
    count = _count_line(numbers)
    rows = numbers.take(np.dtype([("number", numbers.order + "i4"), ("x", numbers.order + "f8", (3,))]), count)
    return rows["x"].astype(np.float64), rows["number"].astype(np.int64)


def text_elements(numbers: TextNumbers) -> list[Block]:
    """The elements: rows of number, type, how many tags, the tags, the corners."""
    left = numbers.size()
    blocks = []
    while left:
        values = numbers.values[numbers.taken :]
        if len(values) < 3:
            raise UnreadableError(f"ends with {left} elements still to come")
        kind, corners = kind_of(int(values[1]))
        tags = _tag_count(int(values[2]), len(values))
        width = 3 + tags + corners
        rows = values[: min(left, len(values) // width) * width].reshape(-1, width)
        if not len(rows):
            raise UnreadableError(f"ends with {left} elements still to come")
        rows = rows[: _alike(rows)]
        blocks.append(_block(kind, rows[:, 0], tags=rows[:, 3 : 3 + tags], corners=rows[:, 3 + tags :]))
        numbers.taken += rows.size
        left -= len(rows)
    return blocks


def binary_elements(numbers: BinaryNumbers) -> list[Block]:
    """The elements: blocks headed by type, how many elements, how many tags."""
    left = _count_line(numbers)
    blocks = []
    while left > 0:
        gmsh_type, count, tags = numbers.integers(3).tolist()
        kind, corners = kind_of(gmsh_type)
        if not 0 < count <= left:
            raise UnreadableError(f"has a block of {count} elements with {left} still to come")
        width = 1 + _tag_count(tags, len(numbers.data)) + corners
        rows = numbers.integers(count * width).reshape(count, width)
        blocks.append(_block(kind, rows[:, 0], tags=rows[:, 1 : 1 + tags], corners=rows[:, 1 + tags :]))
        left -= count
    return blocks


def _block(
    kind: str, number: Int[np.ndarray, " n"], *, tags: Int[np.ndarray, "n tags"], corners: Int[np.ndarray, "n corners"]
) -> Block:
    """The first tag is the physical one; 0 or no tag at all means none."""
    physical = np.abs(tags[:, 0]) if tags.shape[1] else np.zeros(len(number), np.int64)
    return Block(kind, number, corners, physical)


def _alike(rows: Int[np.ndarray, "n width"]) -> int:
    """How many of the first rows have the type and the number of tags of the first one, looking ever further."""
    seen, step = 1, 64
    while seen < len(rows):
        same = (rows[seen : seen + step, 1:3] == rows[0, 1:3]).all(axis=1)
        if not same.all():
            return seen + int(same.argmin())
        seen, step = seen + len(same), 4 * step
    return seen


def _tag_count(tags: int, most: int) -> int:
    if not 0 <= tags <= most:
        raise UnreadableError(f"has an element with {tags} tags")
    return tags


def _count_line(numbers: BinaryNumbers) -> int:
    """A count that stands on a line of its own, in text even in a binary file."""
    end = numbers.data.find(b"\n", numbers.place, numbers.place + 64)
    line = numbers.data[numbers.place : max(end, numbers.place)].strip()
    if not line.isdigit():
        raise UnreadableError("does not begin with a count")
    numbers.place = end + 1
    return int(line)
