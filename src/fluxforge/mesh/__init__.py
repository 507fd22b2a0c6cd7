"""Meshes and their dual graphs: generation, files, checks, geometry; NumPy and SciPy only.

The drawing functions are imported at first use: importing Matplotlib takes longer than reading a mesh.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fluxforge.mesh._boundary import Condition, Conditions, Dirichlet, Neumann, Value, evaluate_at
from fluxforge.mesh._domain import AbstractDomain, Disk, Polygon, unit_square
from fluxforge.mesh._dual import DualGraph, OnDemand, Paths, Ring, check_graph, dual, paths, ring
from fluxforge.mesh._families import (
    cross_triangles,
    equilateral,
    jittered,
    right_triangles,
    squares,
    two_cells,
)
from fluxforge.mesh._generate import ALL_FAMILIES as FAMILIES
from fluxforge.mesh._generate import disk, generate, polygon, square
from fluxforge.mesh._generate_gmsh import gmsh_problem
from fluxforge.mesh._lines import Lines, lines
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._parameters import (
    NO_PARAMETERS,
    ParameterFields,
    Setting,
    Settings,
    cell_slopes,
    exchange_slopes,
    exchange_weights,
    fourier_step,
    reference_step,
    resolve,
    unit_volume,
)
from fluxforge.mesh._quality import (
    MeshInfo,
    cell_diameters,
    cell_quality,
    components,
    info,
    nonorthogonality,
)
from fluxforge.mesh._read import as_mesh, read, read_cell_data
from fluxforge.mesh._write import write

if TYPE_CHECKING:
    from fluxforge.mesh._picture import draw_field, mesh_picture, save_figure

__all__ = [
    "FAMILIES",
    "NO_PARAMETERS",
    "AbstractDomain",
    "Condition",
    "Conditions",
    "Dirichlet",
    "Disk",
    "DualGraph",
    "Lines",
    "Mesh",
    "MeshInfo",
    "Neumann",
    "OnDemand",
    "ParameterFields",
    "Paths",
    "Polygon",
    "Ring",
    "Setting",
    "Settings",
    "Value",
    "as_mesh",
    "cell_diameters",
    "cell_quality",
    "cell_slopes",
    "check_graph",
    "components",
    "cross_triangles",
    "disk",
    "draw_field",
    "dual",
    "equilateral",
    "evaluate_at",
    "exchange_slopes",
    "exchange_weights",
    "fourier_step",
    "generate",
    "gmsh_problem",
    "info",
    "jittered",
    "lines",
    "mesh_picture",
    "nonorthogonality",
    "paths",
    "polygon",
    "read",
    "read_cell_data",
    "reference_step",
    "resolve",
    "right_triangles",
    "ring",
    "save_figure",
    "square",
    "squares",
    "two_cells",
    "unit_square",
    "unit_volume",
    "write",
]


def __getattr__(name: str) -> Any:
    if name in ("draw_field", "mesh_picture", "save_figure"):
        return getattr(import_module("fluxforge.mesh._picture"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
