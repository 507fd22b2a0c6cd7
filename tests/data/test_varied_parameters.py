"""Parameters that jump from cell to cell, on cells of other sizes: the rate is that of the mesh itself."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fluxforge.data import Model, count_substeps, ensemble, pose
from fluxforge.mesh import dual, jittered, unit_volume
from fluxforge.pde import BUILT_IN
from fluxforge.scheme import find
from fluxforge.stepping import operator

MESH = jittered(4)
VALUES: dict[str, Any] = {
    "conduction": (("rhoc", 2.0), ("k", 3.0)),
    "advection-diffusion": (("velocity", (9.0, 4.0)), ("D", 2.0)),
    "heat": (("alpha", 1.0),),
}


@pytest.mark.parametrize("name", VALUES)
def test_the_rate_is_that_of_the_mesh_with_the_parameters_drawn(name: str) -> None:
    size, equation = 0.05, BUILT_IN[name]
    mesh = ensemble([MESH]).member(0)
    kind, fourier = jnp.asarray(1), jnp.asarray(0.3)
    model = Model(equation, VALUES[name])
    posed = pose(mesh, jax.random.key(3), field=kind, fourier=fourier, model=model, cell_size=(size, size), jumps=3.0)
    values = {p: np.asarray(cells) for p, cells in posed.graph.cells.items()}
    for own, value in values.items():
        factor = value / dict(VALUES[name])[own]
        assert 1 / 3 <= factor.min() < 0.8
        assert 1.2 < factor.max() <= 3.0
    if equation.velocity:
        # Lengths in units of ℓ and times in units of ℓ²: a velocity is ℓ times as large.
        values[equation.velocity] = tuple(size * a for a in dict(VALUES[name])[equation.velocity])
    graph = unit_volume(dual(MESH))[0]
    M = operator(find("euler", equation), graph, dt=1.0, parameters=values).M
    zero = jnp.zeros_like(posed.T)
    rate = np.asarray(posed.rate(posed.T) - posed.rate(zero))
    # Round-off of sums of three fluxes.
    assert np.abs(rate - (M @ np.asarray(posed.T) - np.asarray(posed.T))).max() < 1e-12 * np.abs(rate).max() + 1e-13


def test_without_jumps_and_sizes_problems_are_as_before() -> None:
    mesh = ensemble([MESH]).member(0)
    one, two = (
        pose(mesh, jax.random.key(0), field=jnp.asarray(0), fourier=jnp.asarray(0.3), cell_size=size, jumps=jumps)
        for size, jumps in (((1.0, 1.0), 1.0), ((0.003, 0.1), 3.0))
    )
    # Heat has no length of its own and no parameter given per cell.
    assert np.array_equal(one.answer, two.answer)


def test_transport_needs_more_substeps_than_diffusion() -> None:
    assert count_substeps(2.0, 1e-6, real=False) >= count_substeps(2.0, 1e-6)
    # On the circle around −Fo, with the steps one fewer: too few.
    n = count_substeps(1.0, 1e-8, real=False)
    z = np.exp(1j * np.linspace(0, 2 * np.pi, 101)) - 1.0

    def off(steps: int) -> float:
        x = z / steps
        return float(np.abs((1 + x + x**2 / 2 + x**3 / 6 + x**4 / 24) ** steps - np.exp(z)).max())

    assert off(n) <= 1e-8
    assert off(max(1, n // 2)) > 1e-8
