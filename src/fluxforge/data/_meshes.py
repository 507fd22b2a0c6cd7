"""Meshes of data: read from files, generated and cached under the hash of their arguments, or divided."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from fluxforge._files import parse_json
from fluxforge.data._cache import cache_path, write_cached
from fluxforge.errors import InputError
from fluxforge.mesh._build import dual
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._generate import generate
from fluxforge.mesh._generate_gmsh import gmsh_problem
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._parameters import unit_volume
from fluxforge.mesh._read import read
from fluxforge.recipe._recipe import Meshes
from fluxforge.run._arrays import Arrays, read_arrays

# Part of the cache's key; incremented whenever the same arguments give other meshes.
VERSION = 2


def meshes(spec: Meshes, seed: int) -> list[Mesh]:
    """The meshes in a recipe's files, or generated ones of the unit square: kinds alternate, cell counts are random."""
    if spec.files is not None:
        return [read(path) for path in spec.files]
    rng = np.random.default_rng([seed, VERSION])
    counts = rng.integers(spec.cells[0], spec.cells[1] + 1, spec.meshes)
    seeds = rng.integers(0, 2**31, spec.meshes)
    engine = _engine(spec.engine)
    plan = [
        {"kind": spec.kinds[k % len(spec.kinds)], "cells": int(counts[k]), "seed": int(seeds[k]), "engine": engine}
        for k in range(spec.meshes)
    ]
    return generate_meshes(plan)


def generate_meshes(plan: list[dict[str, str | int]]) -> list[Mesh]:
    """One mesh per set of arguments of `generate`, from the cache if its file is complete."""
    arguments_text = json.dumps([VERSION, plan], sort_keys=True)
    place = cache_path("meshes", arguments_text.encode())
    if (cached := read_arrays(place)) is not None:
        return _read(cached)
    generated = [generate(**arguments) for arguments in plan]  # type: ignore[arg-type]
    _write(place, generated)
    return generated


def _engine(wanted: str) -> str:
    """The engine that will be used, so that meshes cached without gmsh are not used in place of meshes of gmsh."""
    return ("builtin" if gmsh_problem() else "gmsh") if wanted == "auto" else wanted


def _write(place: Path, generated: list[Mesh]) -> None:
    arrays: dict[str, np.ndarray] = {}
    for k, mesh in enumerate(generated):
        arrays |= {f"{k}/points": mesh.points, f"{k}/cells": mesh.cells}
        arrays |= {f"{k}/boundary/{tag}": np.asarray(edges) for tag, edges in mesh.boundary.items()}
    # The names of tags in their order, since safetensors sorts its arrays.
    words = json.dumps([[mesh.origin, list(mesh.notes), list(mesh.boundary)] for mesh in generated])
    write_cached(place, arrays, words)


def _read(cached: Arrays) -> list[Mesh]:
    arrays, meshes = cached.arrays, []
    for k, (origin, notes, tags) in enumerate(parse_json(cached.words)):
        boundary = {tag: arrays[f"{k}/boundary/{tag}"] for tag in tags}
        meshes.append(Mesh(arrays[f"{k}/points"], arrays[f"{k}/cells"], boundary, tuple(notes), origin))
    return meshes


def divide_cells(mesh: Mesh) -> Mesh:
    """Each triangle divided into four similar ones by the middles of its edges; those of cell k are 4k to 4k + 3.

    Raises InputError for cells that are not triangles.
    """
    cells = mesh.cells
    if cells.shape[1] != 3 and (cells[:, 3:] >= 0).any():
        raise InputError("data.target: only meshes of triangles are refined")
    corners = cells[:, :3]
    sides = np.stack([corners, np.roll(corners, -1, axis=1)], axis=-1)
    pairs, number = np.unique(np.sort(sides.reshape(-1, 2), axis=1), axis=0, return_inverse=True)
    middle = len(mesh.points) + number.reshape(corners.shape)
    a, b, c = corners.T
    ab, bc, ca = middle.T
    parts = [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
    divided = np.stack([np.stack(part, axis=1) for part in parts], axis=1).reshape(-1, 3)
    known = {tuple(pair): len(mesh.points) + k for k, pair in enumerate(pairs.tolist())}
    boundary = {tag: _halve_edges(np.asarray(edges), known) for tag, edges in mesh.boundary.items()}
    points = np.concatenate([mesh.points, mesh.points[pairs].mean(axis=1)])
    return replace(mesh, points=points, cells=divided, boundary=boundary, regions={})


def _halve_edges(edges: np.ndarray, middle: dict[tuple[int, ...], int]) -> np.ndarray:
    centre = np.array([middle[tuple(sorted(edge))] for edge in edges.tolist()], edges.dtype)
    return np.concatenate([np.stack([edges[:, 0], centre], axis=1), np.stack([centre, edges[:, 1]], axis=1)])


@dataclass(frozen=True)
class Divided:
    """A mesh divided several times, in units of the mean cell of the mesh it came from.

    `x` are the centroids in the unit square of the coarse mesh, `wall` the number of the coarse boundary face that
    contains each of its boundary faces.
    """

    graph: DualGraph
    x: Float[np.ndarray, "cells 2"]
    wall: Int[np.ndarray, " boundary"]


def divide(mesh: Mesh, levels: int) -> Divided:
    """The mesh divided `levels` times."""
    coarse = dual(mesh)
    length = unit_volume(coarse)[1]
    fine = mesh
    for _ in range(levels):
        fine = divide_cells(fine)
    graph = dual(replace(fine, points=fine.points / length))
    low, high = coarse.centre.min(axis=0), coarse.centre.max(axis=0)
    x = (graph.x * length - low) / (high - low).max()
    return Divided(graph, x, _find_walls(coarse, graph, length, 4**levels))


def _find_walls(coarse: DualGraph, fine: DualGraph, length: float, parts: int) -> np.ndarray:
    """The coarse boundary face that contains each fine one: that of its parent cell whose line is nearest."""
    parent = fine.owner[fine.interior :] // parts
    centre = fine.centre[fine.interior :] * length
    owner, n, c = (part[coarse.interior :] for part in (coarse.owner, coarse.n, coarse.centre))
    # Distances to the lines of all coarse boundary faces, infinite for those of other cells.
    away = np.abs(np.einsum("fwi,wi->fw", centre[:, None] - c[None], n))
    walls: np.ndarray = np.where(parent[:, None] == owner[None], away, np.inf).argmin(axis=1)
    return walls
