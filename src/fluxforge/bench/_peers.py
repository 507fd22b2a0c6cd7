"""What our step is measured against: SciPy's sparse product, FiPy's explicit step, and a plain vector add."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy.sparse import csr_array

from fluxforge.stepping import STEPS_PER_TURN


def vector_add(count: int) -> Callable[[int], object]:
    """A ← a + b on `count` float64 numbers each: 24 bytes a number.

    As many additions in each turn of the loop as our steps, each an addition of its own.
    """
    a, b = jnp.zeros(count), jnp.full(count, 1e-9)
    turn = 1 if jax.default_backend() == "cpu" else STEPS_PER_TURN

    @jax.jit
    def run(a: Array, b: Array, steps: int) -> Array:
        def add_turn(_: Any, a: Array) -> Array:
            for _ in range(turn):
                a = jax.lax.optimization_barrier(a + b)
            return a

        return jax.lax.fori_loop(0, -(-steps // turn), add_turn, a)

    return lambda steps: jax.block_until_ready(run(a, b, steps))


def scipy_product(M: csr_array, T: np.ndarray) -> Callable[[int], object]:
    """T ← M T by SciPy's compressed sparse rows."""

    def run(steps: int) -> np.ndarray:
        field = T
        for _ in range(steps):
            field = M @ field
        return field

    return run


def fipy_step(cells: int, dt: float) -> Callable[[int], object] | None:
    """FiPy's explicit diffusion on as many squares; None where FiPy is not installed."""
    try:
        # FiPy chooses a solver suite from the command line's words when it is imported.
        import sys
        from unittest.mock import patch

        with patch.object(sys, "argv", sys.argv[:1]):
            import fipy
    except ImportError:
        return None
    n = round(np.sqrt(cells))
    mesh = fipy.Grid2D(nx=n, ny=n, dx=1.0 / n, dy=1.0 / n)
    T = fipy.CellVariable(mesh=mesh, value=0.5, hasOld=False)
    T.constrain(0.0, mesh.exteriorFaces)
    equation = fipy.TransientTerm() == fipy.ExplicitDiffusionTerm(coeff=1.0)

    def run(equation: object, steps: int) -> None:
        for _ in range(steps):
            equation.solve(var=T, dt=dt)  # type: ignore[attr-defined]

    return partial(run, equation)
