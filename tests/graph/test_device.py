"""What is on the device is nobody else's."""

import jax
import numpy as np
import pytest

from fluxforge.graph import put
from fluxforge.mesh import dual, squares


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("asked", [True, False])
def test_an_array_that_is_changed_later_has_been_copied(dtype: str, asked: bool) -> None:
    # Memory is shared only where it is aligned: one of these offsets is.
    for offset in range(16):
        mine = np.zeros(4096 + 16, dtype)[offset : offset + 4096]
        there = put(mine, dtype if asked else None)
        mine[:] = 1.0
        assert not np.asarray(there).any()


def test_precision_and_kind_are_kept_or_as_asked():
    assert put(np.arange(3, dtype=np.int32)).dtype == np.int32
    assert put(np.array([True, False])).dtype == bool
    assert put(np.arange(3.0), np.float32).dtype == np.float32
    assert put(np.float64(2.0)).shape == ()


def test_a_graph_is_a_pytree_of_its_arrays() -> None:
    graph = dual(squares(2))
    leaves, structure = jax.tree.flatten(graph)
    assert len(leaves) == 16
    assert all(isinstance(leaf, np.ndarray) for leaf in leaves)
    again = jax.tree.unflatten(structure, leaves)
    assert (again.tags, again.origin, again.cells) == (graph.tags, graph.origin, 4)
