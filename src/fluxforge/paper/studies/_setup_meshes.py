"""The paper's 100 meshes: how much their cells differ, and one sample of each kind."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from fluxforge.mesh import DualGraph, Mesh, cell_quality, dual

KINDS = ("regular", "irregular")
# A cell is small if its area is at most that share of the largest: edges of a third of the length. An area of small
# cells has at least that share of all cells, and three of them.
SMALL, LEAST_SHARE, LEAST_CELLS = 1 / 8, 0.02, 3


def ensemble_document(found: Sequence[Mesh]) -> dict[str, Any]:
    """Spreads and areas of small cells by kind; the meshes are regular and irregular in turn."""
    rows = {kind: [_facts(mesh) for mesh in found[k :: len(KINDS)]] for k, kind in enumerate(KINDS)}
    counts = [row["cells"] for kind in KINDS for row in rows[kind]]
    return {
        "meshes": len(found),
        "cells": [min(counts), max(counts)],
        "by_kind": {kind: _ends(rows[kind]) for kind in KINDS},
    }


def samples_document(found: Sequence[Mesh], middle: float) -> dict[str, Any]:
    """Of each kind the mesh whose number of cells is nearest to the middle of the range, coloured alike.

    The size of a cell is its determinant, 2 V, over the largest on the irregular sample, as in the paper's caption.
    """
    chosen = {kind: _nearest(found[k :: len(KINDS)], middle) for k, kind in enumerate(KINDS)}
    largest = 2 * float(dual(chosen["irregular"]).V.max())
    return {kind: _sample(mesh, largest) for kind, mesh in chosen.items()}


def _nearest(found: Sequence[Mesh], middle: float) -> Mesh:
    return min(found, key=lambda mesh: abs(len(mesh.cells) - middle))


def _sample(mesh: Mesh, largest: float) -> dict[str, Any]:
    return {
        "points": np.round(mesh.points, 5).tolist(),
        "cells": mesh.cells.tolist(),
        "size": np.round(2 * dual(mesh).V / largest, 5).tolist(),
        **{key: value for key, value in _facts(mesh).items() if key != "cells"},
    }


def _facts(mesh: Mesh) -> dict[str, Any]:
    """Standard deviation over mean of V, A and δ, faces between cells; and how many areas of small cells there are."""
    graph = dual(mesh)
    inside = slice(graph.interior)
    return {
        "cells": graph.cells,
        "spread": {"V": _spread(graph.V), "A": _spread(graph.A[inside]), "delta": _spread(graph.delta[inside])},
        "quality": float(cell_quality(mesh).mean()),
        "areas": small_areas(graph),
    }


def _spread(values: np.ndarray) -> float:
    return float(values.std() / values.mean())


def small_areas(graph: DualGraph) -> int:
    """How many connected areas of small cells there are."""
    small = SMALL * graph.V.max() >= graph.V
    owner, neighbour = graph.owner[: graph.interior], graph.neighbour[: graph.interior]
    both = small[owner] & small[neighbour]
    links = coo_array((np.ones(both.sum()), (owner[both], neighbour[both])), shape=(graph.cells, graph.cells))
    _, label = connected_components(links, directed=False)
    return int((np.bincount(label[small]) >= max(LEAST_CELLS, LEAST_SHARE * graph.cells)).sum())


def _ends(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Least, median and largest over the meshes of a kind; of areas how many meshes have so many."""
    spreads = {name: _three([row["spread"][name] for row in rows]) for name in ("V", "A", "delta")}
    areas = [row["areas"] for row in rows]
    return {
        "meshes": len(rows),
        "spread": spreads,
        "quality": _three([row["quality"] for row in rows]),
        "areas": {str(count): areas.count(count) for count in sorted(set(areas))},
    }


def _three(values: Sequence[float]) -> list[float]:
    return [float(np.min(values)), float(np.median(values)), float(np.max(values))]
