"""What is given to a stepper stays the caller's."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fluxforge.errors import InputError
from fluxforge.gnn.exact import sparse_network
from fluxforge.mesh import DualGraph, dual, squares
from fluxforge.scheme import Scheme, find, from_document, to_document
from fluxforge.stepping import AbstractStepper, network_stepper, stepper


def _general() -> Scheme:
    """A scheme that is not linear, which has a stepper of its own."""
    document: Any = to_document(find("euler"))
    document["stages"][0]["messages"]["z"]["expression"] = "alpha*A/delta*(T_N**3 - T_P**3)"
    return from_document(document)


MADE: dict[str, Callable[[DualGraph], AbstractStepper]] = {
    "linear": lambda graph: stepper("euler", graph, 1e-5),
    "general": lambda graph: stepper(_general(), graph, 1e-5),
    "LU": lambda graph: stepper("crank-nicolson", graph, 1e-5),
    "conjugate gradients": lambda graph: stepper("crank-nicolson", graph, 1e-5, solver="cg"),
    "network": lambda graph: network_stepper(sparse_network(1, 2, 4), graph, 1e-5),
}


@pytest.mark.parametrize("kind", MADE)
def test_a_field_that_is_changed_after_it_was_given_does_not_change_the_run(kind: str) -> None:
    graph = dual(squares(24))
    step = MADE[kind](graph)
    # Memory is shared only where it is aligned: one of these offsets is.
    for offset in range(8):
        T = np.ones(graph.cells + 8)[offset : offset + graph.cells]
        given = step.enter(T)
        T[:] = 7.0
        assert float(np.max(step.leave(given))) == 1.0


@pytest.mark.parametrize("kind", MADE)
def test_a_stepper_is_differentiated_or_refuses_to_be_in_one_line(kind: str) -> None:
    step = MADE[kind](dual(squares(4)))
    T = jnp.linspace(0.0, 1.0, 16)

    def square(T: jax.Array) -> jax.Array:
        return jnp.sum(step(T) ** 2)

    if kind != "LU":
        assert np.isfinite(jax.grad(square)(T)).all()
        return
    with pytest.raises(InputError) as refused:
        jax.grad(square)(T)
    assert str(refused.value).startswith("JAX cannot trace ")
    assert str(refused.value).endswith("use solver='cg'")


@pytest.mark.parametrize("kind", MADE)
def test_a_stepper_is_shown_on_one_short_line(kind: str) -> None:
    text = repr(MADE[kind](dual(squares(4))))
    assert "Stepper on 16 cells" in text
    assert len(text) < 80
    assert "\n" not in text


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("cells", [1, 570, 582])
def test_a_field_of_another_size_is_refused(kind: str, cells: int) -> None:
    """JAX would take some value for an index that is out of bounds, and one value for all cells."""
    step = MADE[kind](dual(squares(24)))
    with pytest.raises(InputError, match=rf"T should be 576 numbers, one per cell, got an array of shape \({cells},\)"):
        step(np.ones(cells))
