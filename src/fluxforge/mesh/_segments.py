"""Edges that cross or touch, found among many by sorting them into grids."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from fluxforge.mesh._cells import cross

# The most edges and candidate pairs examined, which bounds the time; the batch size bounds the memory.
MOST_EDGES = 1_000_000
MOST_PAIRS = 10_000_000
BATCH = 1_000_000
# A point is on a line when its distance is below this fraction of the edge.
ON_LINE = 1e-9


class Segments(NamedTuple):
    """Directed edges a → b in the unit square."""

    a: Float[np.ndarray, "n 2"]
    b: Float[np.ndarray, "n 2"]


class Clash(NamedTuple):
    """Two edges that cross or, if not `crossing`, touch: the start of the second lies inside the first."""

    first: int
    second: int
    crossing: bool


def find_clash(edges: Segments) -> tuple[Clash | None, bool]:
    """The first clash found or None, and whether the answer is certain: False if there were too many pairs."""
    if not 0 < len(edges.a) <= MOST_EDGES:
        return None, not len(edges.a)
    spent = 0
    for i, j in _list_candidates(edges):
        spent += len(i)
        if (clash := _clash_among(edges, i, j)) is not None:
            return clash, True
        if spent > MOST_PAIRS:
            return None, False
    return None, True


def _clash_among(edges: Segments, i: Int[np.ndarray, " pairs"], j: Int[np.ndarray, " pairs"]) -> Clash | None:
    d, e = edges.b[i] - edges.a[i], edges.b[j] - edges.a[j]
    gap = edges.a[j] - edges.a[i]
    squared_d, squared_e = np.einsum("ne,ne->n", d, d), np.einsum("ne,ne->n", e, e)
    # On which side of the first edge the ends of the second lie, and the other way round.
    a_of_j, b_of_j = cross(d, gap), cross(d, gap + e)
    a_of_i, b_of_i = cross(e, -gap), cross(e, d - gap)
    if (k := _first_index(_is_inside(a_of_j, np.einsum("ne,ne->n", d, gap), squared_d))) is not None:
        return Clash(int(i[k]), int(j[k]), crossing=False)
    if (k := _first_index(_is_inside(a_of_i, -np.einsum("ne,ne->n", e, gap), squared_e))) is not None:
        return Clash(int(j[k]), int(i[k]), crossing=False)
    if (k := _first_index(_are_apart(a_of_j, b_of_j, squared_d) & _are_apart(a_of_i, b_of_i, squared_e))) is not None:
        return Clash(int(i[k]), int(j[k]), crossing=True)
    return None


def _first_index(mask: Bool[np.ndarray, " n"]) -> int | None:
    return int(mask.argmax()) if mask.any() else None


def _is_inside(
    side: Float[np.ndarray, " n"], along: Float[np.ndarray, " n"], squared: Float[np.ndarray, " n"]
) -> Bool[np.ndarray, " n"]:
    """Whether a point lies on an edge, clear of both its ends."""
    small = ON_LINE * squared
    return np.asarray((np.abs(side) <= small) & (along > small) & (along < squared - small))


def _are_apart(
    p: Float[np.ndarray, " n"], q: Float[np.ndarray, " n"], squared: Float[np.ndarray, " n"]
) -> Bool[np.ndarray, " n"]:
    """Whether two points lie on opposite sides of an edge, both clear of its line."""
    clear = ON_LINE * squared
    return ((p > clear) & (q < -clear)) | ((p < -clear) & (q > clear))


def _list_candidates(edges: Segments) -> Iterator[tuple[Int[np.ndarray, " pairs"], Int[np.ndarray, " pairs"]]]:
    """Pairs of edges whose boxes share a square of a grid; edges are sorted by length into grids, each 4 times coarser.

    An edge is stored in the grid of its own length, where it touches at most four squares, and looked up in that grid
    and in every coarser one, so that edges of very different lengths cost no more.
    """
    low, high = np.minimum(edges.a, edges.b), np.maximum(edges.a, edges.b)
    size = (high - low).max(axis=1)
    level = np.floor(np.log2(size / size.min()) / 2.0).astype(int)
    for this in np.unique(level):
        owners, visitors = np.flatnonzero(level == this), np.flatnonzero(level <= this)
        square = size[owners].max()
        key, owner = _list_entries(low[owners] / square, high[owners] / square, owners)
        order = np.argsort(key, kind="stable")
        key, owner = key[order], owner[order]
        wanted, visitor = _list_entries(low[visitors] / square, high[visitors] / square, visitors)
        begin, end = np.searchsorted(key, wanted, "left"), np.searchsorted(key, wanted, "right")
        for i, j in _join_entries(owner, visitor, begin=begin, end=end):
            # Edges of one length class visit each other: one of the two visits is enough.
            once = (level[j] < this) | (i < j)
            yield i[once], j[once]


def _list_entries(
    low: Float[np.ndarray, "n 2"], high: Float[np.ndarray, "n 2"], name: Int[np.ndarray, " n"]
) -> tuple[Int[np.ndarray, " entries"], Int[np.ndarray, " entries"]]:
    """The squares of side 1 that each box touches, as hashed keys, with the name of the box."""
    corner, last = np.floor(low).astype(np.int64), np.floor(high).astype(np.int64)
    keys, names = [], []
    for step in ((0, 0), (0, 1), (1, 0), (1, 1)):
        square = corner + step
        touched = (square <= last).all(axis=1)
        # Products wrap round; two squares with one key only add candidates.
        keys.append((square[:, 0] * 73_856_093 ^ square[:, 1] * 19_349_663)[touched])
        names.append(name[touched])
    return np.concatenate(keys), np.concatenate(names)


def _join_entries(
    owner: Int[np.ndarray, " entries"],
    visitor: Int[np.ndarray, " visits"],
    *,
    begin: Int[np.ndarray, " visits"],
    end: Int[np.ndarray, " visits"],
) -> Iterator[tuple[Int[np.ndarray, " pairs"], Int[np.ndarray, " pairs"]]]:
    """Pair every visitor with the owners of its squares, in batches of bounded size."""
    total = np.concatenate([[0], np.cumsum(end - begin)])
    for start in range(0, int(total[-1]), BATCH):
        pair = np.arange(start, min(start + BATCH, int(total[-1])))
        visit = np.searchsorted(total, pair, "right") - 1
        yield owner[begin[visit] + pair - total[visit]], visitor[visit]
