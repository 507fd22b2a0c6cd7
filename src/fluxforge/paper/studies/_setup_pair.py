"""The paper's training set as it is: the geometry of every graph of it, and one of its examples."""

from typing import Any

import numpy as np

from fluxforge import recipe
from fluxforge.data import EQUILATERAL, FixedSource, Problem, source
from fluxforge.mesh import Mesh, Neumann, dual
from fluxforge.scheme import Hop

RECIPE = "generalisation"
CELLS = ((0, 1, 2), (1, 0, 3))


def two_cells_document() -> dict[str, Any]:
    """The mesh and its dual graph, what every training graph measures, and the first of them with its answer."""
    spec = recipe.load(RECIPE)
    drawn = source(spec, dtype="float64")
    assert isinstance(drawn, FixedSource)
    graph = dual(Mesh(EQUILATERAL, np.array(CELLS), origin="two cells"), Neumann())
    return {
        "points": _rounded(EQUILATERAL),
        "cells": [list(cell) for cell in CELLS],
        "centroids": _rounded(graph.x),
        "V": graph.V.tolist(),
        "A": float(graph.A[0]),
        "delta": float(graph.delta[0]),
        "ratio": (graph.A[0] / graph.delta[0] / graph.V).tolist(),
        "training": _training(drawn.problems),
        "example": _example(drawn.problems),
    }


def _training(problems: Problem) -> dict[str, Any]:
    """Least and largest over all graphs of the set, random ones and corner cases."""
    edge = problems.graph.hops[Hop.EDGE]
    V, A, delta = (np.asarray(a) for a in (problems.graph.V, edge.geometry["A"], edge.geometry["delta"]))
    ratio = A / delta / V[..., None]
    found = {"V": V, "A": A, "delta": delta, "ratio": ratio}
    ends = {name: [float(values.min()), float(values.max())] for name, values in found.items()}
    return {"graphs": len(V), "edges": int(np.asarray(edge.mask).sum(axis=(1, 2)).max()) // 2, **ends}


def _example(problems: Problem) -> dict[str, Any]:
    """T and S of the first graph, and T one step of the first-order scheme later."""
    fields = {"T": problems.T, "S": problems.S, "after": problems.answer}
    found: dict[str, Any] = {name: _rounded(values[0]) for name, values in fields.items()}
    return found | {"dt": float(problems.dt[0]), "diffusivity": float(problems.parameters["alpha"][0])}


def _rounded(values: Any) -> list[Any]:
    return np.round(np.asarray(values), 6).tolist()
