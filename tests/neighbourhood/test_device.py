"""What is on the device is nobody else's."""

import numpy as np
import pytest

from fluxforge.mesh import dual, squares
from fluxforge.neighbourhood import put
from fluxforge.simulate import stepper


@pytest.mark.parametrize("dtype", [None, "float64", "float32"])
def test_an_array_that_is_changed_later_has_been_copied(dtype):
    # Memory is shared only where it is aligned: one of these offsets is.
    for offset in range(8):
        mine = np.zeros(4096 + 8)[offset : offset + 4096]
        there = put(mine, dtype)
        mine[:] = 1.0
        assert not np.asarray(there).any()


def test_a_step_does_not_depend_on_what_becomes_of_the_field_it_was_given():
    graph = dual(squares(64))
    step = stepper("euler", graph, 1e-5)
    for offset in range(8):
        T = np.ones(graph.cells + 8)[offset : offset + graph.cells]
        after = step.enter(T)
        T[:] = 7.0
        assert float(after.max()) == 1.0


def test_precision_and_kind_are_kept_or_as_asked():
    assert put(np.arange(3, dtype=np.int32)).dtype == np.int32
    assert put(np.array([True, False])).dtype == bool
    assert put(np.arange(3.0), np.float32).dtype == np.float32
    assert put(np.float64(2.0)).shape == ()
