"""The sections of Gmsh files of format 4."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from fluxforge.mesh._drawing import Block, find_kind
from fluxforge.mesh._read_numbers import (
    AbstractNumbers,
    Budget,
    UnreadableError,
)

# Bytes that a line takes for each of its tags until it is an edge of the mesh: numbers, copies of them and their order.
LISTED = 200


class EntityBlock(NamedTuple):
    """The elements of one kind in one entity: a row is an element's number, then its corners."""

    entity: tuple[int, int]
    kind: str
    rows: Int[np.ndarray, "n columns"]


def read_entities4(numbers: AbstractNumbers) -> dict[tuple[int, int], tuple[int, ...]]:
    """The physical tags of each entity (dimension, tag)."""
    physicals: dict[tuple[int, int], tuple[int, ...]] = {}
    for dimension, count in enumerate(numbers.sizes(4).tolist()):
        for _ in range(count):
            tag = int(numbers.integers(1)[0])
            numbers.floats(6 if dimension else 3)
            physicals[dimension, tag] = tuple(abs(numbers.integers(numbers.size())).tolist())
            if dimension:
                numbers.integers(numbers.size())
    return physicals


def read_nodes4(numbers: AbstractNumbers) -> tuple[Float[np.ndarray, "points 3"], Int[np.ndarray, " points"]]:
    """The coordinates and the numbers of the nodes."""
    blocks, announced, _, _ = numbers.sizes(4).tolist()
    points, number = [np.empty((0, 3))], [np.empty(0, np.int64)]
    for _ in range(blocks):
        dimension, _, parametric = numbers.integers(3).tolist()
        count = numbers.size()
        number.append(numbers.sizes(count))
        # Parametric nodes carry as many more numbers as their entity has dimensions.
        columns = 3 + (min(max(dimension, 0), 3) if parametric else 0)
        points.append(numbers.floats(count * columns).reshape(count, columns)[:, :3])
    _check_total("nodes", announced, sum(map(len, number)))
    return np.concatenate(points), np.concatenate(number)


def read_elements4(numbers: AbstractNumbers) -> list[EntityBlock]:
    """The elements, block by block."""
    blocks, announced, _, _ = numbers.sizes(4).tolist()
    found = []
    for _ in range(blocks):
        dimension, tag, gmsh_type = numbers.integers(3).tolist()
        kind, corners = find_kind(gmsh_type)
        count = numbers.size()
        rows = numbers.sizes(count * (1 + corners)).reshape(count, 1 + corners)
        found.append(EntityBlock((dimension, tag), kind, rows))
    _check_total("elements", announced, sum(len(block.rows) for block in found))
    return found


def tag_blocks(
    found: Sequence[EntityBlock], physicals: Mapping[tuple[int, int], tuple[int, ...]], budget: Budget
) -> list[Block]:
    """The elements with the physical tags of their entity; lines with several tags are listed once for each.

    Tags times lines can be any number, so that what they take is charged to the budget first.
    """
    listed = []
    for block in found:
        tags = physicals.get(block.entity, ()) or (0,)
        if block.kind == "line":
            lines = len(block.rows)
            budget.spend(LISTED * lines * len(tags), f"gives {lines} lines {len(tags)} physical tags each, which is")
        else:
            tags = tags[:1]
        rows = np.tile(block.rows, (len(tags), 1)) if len(block.rows) else block.rows
        listed.append(Block(block.kind, rows[:, 0], rows[:, 1:], np.repeat(np.array(tags), len(block.rows))))
    return listed


def _check_total(what: str, announced: int, found: int) -> None:
    if announced != found:
        raise UnreadableError(f"announces {announced} {what} and lists {found}")
