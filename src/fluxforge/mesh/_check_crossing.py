"""Do boundary edges cross, or does one end inside another? In time near linear in their number."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

# Candidate pairs tested at most, and per batch: the first bounds the time, the second the memory.
MOST_PAIRS = 30_000_000
BATCH = 1_000_000
# A point is on a line when its distance is below this fraction of the edge.
ON_LINE = 1e-9


class Segments(NamedTuple):
    """Directed edges a → b in the unit square."""

    a: Float[np.ndarray, "n 2"]
    b: Float[np.ndarray, "n 2"]


class Clash(NamedTuple):
    """Two edges that cross, or a first edge that the start of the second lies inside of."""

    first: int
    second: int
    crossing: bool


def find_clash(edges: Segments) -> tuple[Clash | None, bool]:
    """A clash if there is one, and whether every candidate pair was looked at."""
    if not len(edges.a):
        return None, True
    spent = 0
    for i, j in _candidates(edges):
        spent += len(i)
        if (clash := _clash_among(edges, i, j)) is not None:
            return clash, True
        if spent > MOST_PAIRS:
            return None, False
    return None, True


def _clash_among(edges: Segments, i: Int[np.ndarray, " pairs"], j: Int[np.ndarray, " pairs"]) -> Clash | None:
    d, e = edges.b[i] - edges.a[i], edges.b[j] - edges.a[j]
    to_a, to_b = edges.a[j] - edges.a[i], edges.b[j] - edges.a[i]
    squared = np.einsum("ne,ne->n", d, d)
    side_a, side_b = _cross(d, to_a), _cross(d, to_b)
    along = np.einsum("ne,ne->n", d, to_a) / squared
    inside = (np.abs(side_a) <= ON_LINE * squared) & (along > ON_LINE) & (along < 1.0 - ON_LINE)
    if inside.any():
        k = int(inside.argmax())
        return Clash(int(i[k]), int(j[k]), crossing=False)
    # Seen from the second edge, the ends of the first.
    from_a, from_b = _cross(e, -to_a), _cross(e, d - to_a)
    crossing = _apart(side_a, side_b, squared) & _apart(from_a, from_b, np.einsum("ne,ne->n", e, e))
    if crossing.any():
        k = int(crossing.argmax())
        return Clash(int(i[k]), int(j[k]), crossing=True)
    return None


def _apart(
    p: Float[np.ndarray, " n"], q: Float[np.ndarray, " n"], squared: Float[np.ndarray, " n"]
) -> Bool[np.ndarray, " n"]:
    """Whether two points lie on opposite sides of an edge, both clear of its line."""
    clear = ON_LINE * squared
    return ((p > clear) & (q < -clear)) | ((p < -clear) & (q > clear))


def _cross(a: Float[np.ndarray, "n 2"], b: Float[np.ndarray, "n 2"]) -> Float[np.ndarray, " n"]:
    return a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]


def _candidates(edges: Segments) -> Iterator[tuple[Int[np.ndarray, " pairs"], Int[np.ndarray, " pairs"]]]:
    """Pairs whose boxes share a square of a grid. Edges are sorted into grids by length, a factor of four each.

    An edge is entered in the grid of its own length, where it touches at most four squares, and looked up in that
    grid and in every coarser one; so neither a long edge among short ones nor a short one among long ones is costly.
    """
    low, high = np.minimum(edges.a, edges.b), np.maximum(edges.a, edges.b)
    size = (high - low).max(axis=1)
    level = np.floor(np.log2(size / size.min()) / 2.0).astype(int)
    for this in np.unique(level):
        owners, visitors = np.flatnonzero(level == this), np.flatnonzero(level <= this)
        square = size[owners].max()
        key, owner = _entries(low[owners] / square, high[owners] / square, owners)
        order = np.argsort(key, kind="stable")
        key, owner = key[order], owner[order]
        wanted, visitor = _entries(low[visitors] / square, high[visitors] / square, visitors)
        begin, end = np.searchsorted(key, wanted, "left"), np.searchsorted(key, wanted, "right")
        yield from _joined(owner, visitor, begin, end)


def _entries(
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


def _joined(
    owner: Int[np.ndarray, " entries"],
    visitor: Int[np.ndarray, " visits"],
    begin: Int[np.ndarray, " visits"],
    end: Int[np.ndarray, " visits"],
) -> Iterator[tuple[Int[np.ndarray, " pairs"], Int[np.ndarray, " pairs"]]]:
    """Every visitor with the owners of its squares, both ways round, in batches of bounded size."""
    total = np.concatenate([[0], np.cumsum(end - begin)])
    for start in range(0, int(total[-1]), BATCH):
        pair = np.arange(start, min(start + BATCH, int(total[-1])))
        visit = np.searchsorted(total, pair, "right") - 1
        i, j = owner[begin[visit] + pair - total[visit]], visitor[visit]
        distinct = i != j
        i, j = i[distinct], j[distinct]
        yield np.concatenate([i, j]), np.concatenate([j, i])
