"""Meshes and their dual graphs: generation, files, checks, geometry; NumPy and SciPy only.

The drawing functions are imported at first use: importing Matplotlib takes longer than reading a mesh.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fluxforge.mesh._boundary import (
    Condition,
    Dirichlet,
    Inflow,
    Neumann,
    Periodic,
    Robin,
    Value,
    depends_on_time,
    evaluate_at,
    faces_of_tags,
    wall_value,
)
from fluxforge.mesh._build import MeshInfo, cell_diameters, cell_quality, count_components, dual, info, nonorthogonality
from fluxforge.mesh._conditions import (
    Conditions,
    conditions_of_tags,
    default_condition,
    fit_conditions,
    read_conditions,
)
from fluxforge.mesh._domain import AbstractDomain, Disk, Polygon, unit_square
from fluxforge.mesh._dual import DualGraph, OnDemand, ParameterFields, check_graph
from fluxforge.mesh._face_values import divergence, face_conormals, relative_divergence
from fluxforge.mesh._generate import ALL_FAMILIES as FAMILIES
from fluxforge.mesh._generate import (
    cross_triangles,
    disk,
    equilateral,
    generate,
    graded,
    jittered,
    polygon,
    right_triangles,
    square,
    squares,
    two_cells,
)
from fluxforge.mesh._generate_gmsh import gmsh_problem
from fluxforge.mesh._hops import Lines, Paths, Ring, lines, paths, ring
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._parameter_values import Curl, Setting
from fluxforge.mesh._parameters import (
    Settings,
    exchange_weights,
    flux_slopes,
    fourier_step,
    reference_step,
    resolve,
    settings_at,
    unit_volume,
    varies_in_time,
)
from fluxforge.mesh._read import as_mesh, read, read_cell_data
from fluxforge.mesh._walls import close_walls, linear_speed, wall_conductance, wall_velocity
from fluxforge.mesh._write import write

if TYPE_CHECKING:
    from fluxforge.mesh._picture import draw_field, mesh_picture, save_figure

__all__ = [
    "FAMILIES",
    "AbstractDomain",
    "Condition",
    "Conditions",
    "Curl",
    "Dirichlet",
    "Disk",
    "DualGraph",
    "Inflow",
    "Lines",
    "Mesh",
    "MeshInfo",
    "Neumann",
    "OnDemand",
    "ParameterFields",
    "Paths",
    "Periodic",
    "Polygon",
    "Ring",
    "Robin",
    "Setting",
    "Settings",
    "Value",
    "as_mesh",
    "cell_diameters",
    "cell_quality",
    "check_graph",
    "close_walls",
    "conditions_of_tags",
    "count_components",
    "cross_triangles",
    "default_condition",
    "depends_on_time",
    "disk",
    "divergence",
    "draw_field",
    "dual",
    "equilateral",
    "evaluate_at",
    "exchange_weights",
    "face_conormals",
    "faces_of_tags",
    "fit_conditions",
    "flux_slopes",
    "fourier_step",
    "generate",
    "gmsh_problem",
    "graded",
    "info",
    "jittered",
    "linear_speed",
    "lines",
    "mesh_picture",
    "nonorthogonality",
    "paths",
    "polygon",
    "read",
    "read_cell_data",
    "read_conditions",
    "reference_step",
    "relative_divergence",
    "resolve",
    "right_triangles",
    "ring",
    "save_figure",
    "settings_at",
    "square",
    "squares",
    "two_cells",
    "unit_square",
    "unit_volume",
    "varies_in_time",
    "wall_conductance",
    "wall_value",
    "wall_velocity",
    "write",
]


def __getattr__(name: str) -> Any:
    if name in ("draw_field", "mesh_picture", "save_figure"):
        return getattr(import_module("fluxforge.mesh._picture"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - {"Any", "TYPE_CHECKING", "import_module"})
