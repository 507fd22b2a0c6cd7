"""Graphs turned, reflected and shifted, with their cells in another order: what must not change a result."""

from dataclasses import replace

import numpy as np

from fluxforge.mesh import DualGraph


def orthogonal(dimension: int, seed: int) -> np.ndarray:
    """A random rotation, or a rotation and a reflection."""
    Q, R = np.linalg.qr(np.random.default_rng(seed).normal(size=(dimension, dimension)))
    return Q * np.sign(np.diag(R))


def turned(graph: DualGraph, Q: np.ndarray) -> DualGraph:
    """The graph with every point and vector multiplied by Q."""
    vectors = {name: getattr(graph, name) @ Q.T for name in ("x", "centre", "n", "d")}
    return replace(graph, **vectors)


def shifted(graph: DualGraph, by: np.ndarray) -> DualGraph:
    """The graph elsewhere."""
    return replace(graph, x=graph.x + by, centre=graph.centre + by)


def renumbered(graph: DualGraph, order: np.ndarray) -> DualGraph:
    """Cell `order[k]` becomes cell k, each with its slots the other way round."""
    place = np.empty(graph.cells + graph.ghosts, np.int32)
    place[order] = np.arange(graph.cells, dtype=np.int32)
    place[graph.cells :] = np.arange(graph.cells, graph.cells + graph.ghosts, dtype=np.int32)
    slots = {
        name: getattr(graph, name)[order][:, ::-1] for name in ("slot_face", "slot_node", "slot_sign", "slot_mask")
    }
    slots["slot_node"] = place[slots["slot_node"]]
    return replace(
        graph,
        V=graph.V[order],
        x=graph.x[order],
        owner=place[graph.owner],
        neighbour=place[graph.neighbour],
        **slots,
    )


def the_other_way_round(graph: DualGraph) -> DualGraph:
    """The same graph with the two sides of every interior face exchanged: its owner is the cell that was across."""
    inside = graph.interior
    owner, neighbour = graph.owner.copy(), graph.neighbour.copy()
    owner[:inside], neighbour[:inside] = graph.neighbour[:inside], graph.owner[:inside]
    flip = np.where(np.arange(len(owner)) < inside, -1.0, 1.0)
    sign = np.where(graph.slot_face < inside, -graph.slot_sign, graph.slot_sign)
    n, d = graph.n * flip[:, None], graph.d * flip[:, None]
    return replace(graph, owner=owner, neighbour=neighbour, n=n, d=d, slot_sign=sign)
