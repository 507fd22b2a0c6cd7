"""A mesh as C: the tables that an emitted step reads, so that it compiles with nothing else at hand."""

from collections.abc import Iterator

import numpy as np

from fluxforge.expression import COORDINATES
from fluxforge.mesh import DualGraph
from fluxforge.scheme.emit._c_text import MESH
from fluxforge.scheme.emit._words import c_comment, identifier

PER_LINE = 8


def emit_c_mesh(graph: DualGraph, name: str = "mesh") -> str:
    """A header with a fluxforge_mesh of that name, its arrays, and the cells' centroids, NAME_x, NAME_y (and NAME_z).

    The number of cells is a constant, NAME_cells, so that fields can be arrays of that size.
    """
    name = identifier(name)
    tables = c_tables(graph)
    sizes = {"cells": graph.cells, "slots": graph.slot_node.shape[1], "ghosts": graph.ghosts}
    members = {**sizes, **{key: f"{name}_{key}" for key in tables}}
    arrays = {**tables, **dict(zip(COORDINATES, graph.x.T, strict=False))}
    return "\n".join(
        [
            f"/* {_title(graph)}: {graph.cells} cells, {graph.ghosts} boundary faces. */",
            f"#ifndef FLUXFORGE_{name.upper()}_H",
            f"#define FLUXFORGE_{name.upper()}_H",
            "#include <stddef.h>",
            "",
            MESH,
            f"enum {{ {name}_cells = {graph.cells} }};",
            *(line for key, values in arrays.items() for line in _array(f"{name}_{key}", values)),
            f"static const fluxforge_mesh {name} = {{",
            *(f"    .{key} = {value}," for key, value in members.items()),
            "};",
            "#endif",
            "",
        ]
    )


def c_tables(graph: DualGraph) -> dict[str, np.ndarray]:
    """The arrays of a fluxforge_mesh by their names there."""
    boundary = slice(graph.interior, None)
    return {
        "node": graph.slot_node,
        "used": graph.slot_mask,
        **graph.legs(),
        "V": graph.V,
        "ghost_owner": graph.owner[boundary],
        "ghost_neumann": graph.neumann,
        "ghost_value": graph.value,
        "ghost_delta": graph.delta[boundary],
    }


def _array(name: str, values: np.ndarray) -> Iterator[str]:
    kind = {"f": "double", "i": "int", "b": "unsigned char"}[values.dtype.kind]
    # 17 digits bring every double back as it was.
    numbers = [f"{value:.17g}" for value in values.ravel().tolist()]
    yield f"static const {kind} {name}[] = {{"
    yield from (f"    {', '.join(numbers[k : k + PER_LINE])}," for k in range(0, len(numbers), PER_LINE))
    yield "};"


def _title(graph: DualGraph) -> str:
    """Where the mesh came from, as a comment can hold it."""
    return c_comment("".join(letter if letter.isprintable() else "?" for letter in graph.origin)) or "a mesh"
