"""Meshes, networks and problems on which the paper's two theorems are tried."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import jax
import numpy as np

from fluxforge.certify import bounds
from fluxforge.gnn.exact import sparse_network
from fluxforge.mesh import Mesh, equilateral, generate, jittered, right_triangles, squares

DT = 0.1
KEY = jax.random.key(0)
EXACT = sparse_network(2, 2, 8)


def flatten(mesh: Mesh, factor: float) -> Mesh:
    return replace(mesh, points=mesh.points * np.array([1.0, factor]))


MESHES: Mapping[str, Mesh] = MappingProxyType(
    {
        "squares": squares(5),
        "right": right_triangles(4),
        "equilateral": equilateral(4),
        "jittered": jittered(5, 0.3, seed=1),
        "thin": flatten(squares(5), 0.1),
        "irregular": generate(kind="irregular", cells=60, seed=1, engine="builtin"),
    }
)


def failing(check: bounds.BoundCheck) -> set[str]:
    return {hypothesis.name for hypothesis in check.hypotheses if not hypothesis.holds}
