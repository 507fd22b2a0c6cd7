"""A mesh, or the path of its file."""

import os

from fluxforge._arguments import check_path
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh.files._read import read

MESH = "a mesh (such as fluxforge.mesh.square()) or the path of a mesh file"


def as_mesh(mesh: Mesh | str | os.PathLike[str], name: str = "mesh") -> Mesh:
    """The mesh itself, or the one in the file of that path; InputError, naming the argument, for anything else."""
    return mesh if isinstance(mesh, Mesh) else read(check_path(mesh, name, MESH))
