"""gmsh's element types by name, with their number of corners."""

import importlib
import re
from functools import cache

from fluxforge.mesh.files._numbers import UnreadableError

CORNERS = {"vertex": 1, "line": 2, "triangle": 3, "quad": 4, "tetra": 4, "pyramid": 5, "wedge": 6, "hexahedron": 8}


@cache
def kind_of(gmsh_type: int) -> tuple[str, int]:
    """The name of an element type, as meshio has it, and its number of nodes: (triangle6, 6) for type 9."""
    # meshio takes a while to import, and a mesh that is generated does not need it.
    kind = importlib.import_module("meshio").gmsh.gmsh_to_meshio_type.get(gmsh_type)
    if kind is None:
        raise UnreadableError(f"has elements of type {gmsh_type}, which is unknown")
    order = re.search(r"\d+$", kind)
    return kind, int(order[0]) if order else CORNERS[kind]
