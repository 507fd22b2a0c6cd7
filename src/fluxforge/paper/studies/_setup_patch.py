"""A cell, its neighbours and theirs: the patches of the message-passing and the two-hop figure."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluxforge.mesh import DualGraph, Mesh, Paths, Ring, cell_quality, dual, paths, ring, squares


def patches_document(found: Sequence[Mesh]) -> dict[str, Any]:
    """Around a triangle of the first mesh that has a cell two ways lead to, and around a square."""
    return {"triangles": _chosen(found), "squares": patch_document(squares(7), 24)}


def _chosen(found: Sequence[Mesh]) -> dict[str, Any]:
    """The candidate whose worst cell within two hops is best; without a cell reached twice, any inner cell will do."""
    for mesh in found:
        graph = dual(mesh)
        around = ring(graph)
        twice = _inside(graph) & (around.multiplicity > 1).any(axis=1)
        if twice.any():
            return patch_document(mesh, _best(mesh, around, twice))
    graph = dual(found[0])
    return patch_document(found[0], _best(found[0], ring(graph), _inside(graph)))


def _inside(graph: DualGraph) -> np.ndarray:
    """Cells whose neighbours have cells on all sides, so that no path of theirs ends in a ghost."""
    inner: np.ndarray = np.all(graph.slot_node < graph.cells, axis=1)
    return np.asarray(inner & inner[np.where(graph.slot_node < graph.cells, graph.slot_node, 0)].all(axis=1))


def _best(mesh: Mesh, around: Ring, allowed: np.ndarray) -> int:
    quality = cell_quality(mesh)
    worst = np.minimum(quality, np.where(around.mask, quality[around.node], np.inf).min(axis=1))
    return int(np.argmax(np.where(allowed, worst, -1.0)))


def patch_document(mesh: Mesh, centre: int) -> dict[str, Any]:
    """The cells within two hops of the centre and those that touch them, numbered anew: the centre is cell 0.

    `hop` is 0, 1 or 2, and 3 for the cells around; `paths` are the directed paths 0 → N → Q, some of which return.
    """
    graph = dual(mesh)
    steps, around = paths(graph), ring(graph)
    near = graph.slot_node[centre][graph.slot_mask[centre]]
    far = around.node[centre][around.mask[centre]]
    touched = np.isin(mesh.cells, mesh.cells[np.concatenate([[centre], near, far])]) & (mesh.cells >= 0)
    rest = np.setdiff1d(np.flatnonzero(touched.any(axis=1)), np.concatenate([[centre], near, far]))
    cells = np.concatenate([[centre], near, far, rest])
    points, corners = np.unique(mesh.cells[cells], return_inverse=True)
    ways = _ways(steps, centre, cells)
    return {
        "mesh": mesh.origin,
        "points": np.round(mesh.points[points], 5).tolist(),
        "cells": corners.reshape(len(cells), -1).tolist(),
        "centroids": np.round(graph.x[cells], 5).tolist(),
        "hop": [0] + [1] * len(near) + [2] * len(far) + [3] * len(rest),
        "edges": _edges(graph, cells),
        "paths": ways,
        "returning": sum(end == 0 for _, end in ways),
        "one_hop": len(near),
        "two_hop": len(far),
        "reached_twice": int((around.multiplicity[centre] > 1).sum()),
    }


def _ways(steps: Paths, centre: int, cells: np.ndarray) -> list[list[int]]:
    """Middle and end of every directed path from the centre."""
    there = steps.mask[centre]
    place = {int(cell): k for k, cell in enumerate(cells)}
    return [
        [place[int(middle)], place[int(end)]]
        for middle, end in zip(steps.middle[centre][there], steps.end[centre][there], strict=True)
    ]


def _edges(graph: DualGraph, cells: np.ndarray) -> list[list[int]]:
    """Faces between cells of the patch, as pairs of its numbers."""
    place = np.full(graph.cells, -1)
    place[cells] = np.arange(len(cells))
    pairs = np.stack([place[graph.owner[: graph.interior]], place[graph.neighbour[: graph.interior]]], axis=1)
    return pairs[(pairs >= 0).all(axis=1)].tolist()
