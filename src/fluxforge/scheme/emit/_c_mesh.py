"""A mesh as C: the tables that an emitted step reads, so that it compiles with nothing else at hand."""

from collections.abc import Iterator, Mapping

import numpy as np

from fluxforge.mesh import DualGraph
from fluxforge.scheme.emit._c_text import MESH

PER_LINE = 8


def emit_c_mesh(graph: DualGraph) -> str:
    """A header with `mesh`, a fluxforge_mesh, its arrays, and the centroids of the cells, `mesh_x` and `mesh_y`."""
    tables = c_tables(graph)
    sizes = {"cells": graph.cells, "slots": graph.slot_node.shape[1], "ghosts": graph.ghosts}
    members = [*(f".{name} = {value}" for name, value in sizes.items()), *(f".{name} = mesh_{name}" for name in tables)]
    centroids = {"x": graph.x[:, 0], "y": graph.x[:, 1]}
    return "\n".join(
        [
            f"/* {_title(graph)}: {graph.cells} cells, {graph.ghosts} boundary faces. */",
            "#include <stddef.h>",
            "",
            MESH,
            f"enum {{ MESH_CELLS = {graph.cells} }};",
            *_arrays({**tables, **centroids}),
            "static const fluxforge_mesh mesh = {",
            *(f"    {member}," for member in members),
            "};",
            "",
        ]
    )


def c_tables(graph: DualGraph) -> dict[str, np.ndarray]:
    """The arrays of a fluxforge_mesh by their names there."""
    face, sign = graph.slot_face, graph.slot_sign
    boundary = slice(graph.interior, None)
    return {
        "node": graph.slot_node,
        "used": graph.slot_mask,
        "A": graph.A[face],
        "delta": graph.delta[face],
        "n_x": graph.n[face, 0] * sign,
        "n_y": graph.n[face, 1] * sign,
        "d_x": graph.d[face, 0] * sign,
        "d_y": graph.d[face, 1] * sign,
        "chi": graph.moving[face].astype(float),
        "V": graph.V,
        "ghost_owner": graph.owner[boundary],
        "ghost_neumann": graph.neumann,
        "ghost_value": graph.value,
        "ghost_delta": graph.delta[boundary],
    }


def _arrays(tables: Mapping[str, np.ndarray]) -> Iterator[str]:
    for name, values in tables.items():
        kind = {"f": "double", "i": "int", "b": "unsigned char"}[values.dtype.kind]
        # 17 digits bring every double back as it was.
        numbers = [f"{value:.17g}" for value in values.ravel().tolist()]
        yield f"static const {kind} mesh_{name}[] = {{"
        yield from (f"    {', '.join(numbers[k : k + PER_LINE])}," for k in range(0, len(numbers), PER_LINE))
        yield "};"


def _title(graph: DualGraph) -> str:
    """Where the mesh came from, as a comment can hold it."""
    plain = "".join(letter if letter.isprintable() else "?" for letter in graph.origin)
    return plain.replace("*/", "* /").replace("/*", "/ *") or "a mesh"
