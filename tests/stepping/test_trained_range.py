"""Networks in the form of a flux in `simulate`: other parameters and walls, and steps they were not trained with."""

import subprocess
import sys
import warnings
from pathlib import Path

import jax
import numpy as np
import pytest

import fluxforge as ff
from fluxforge.errors import EquationError
from fluxforge.gnn import build_flux_network
from fluxforge.pde import BUILT_IN
from fluxforge.scheme import nested_tableau
from fluxforge.stepping import TrainedNetwork

EQUATION = BUILT_IN["advection-diffusion"]
MESH = ff.mesh.square(cells=60, engine="builtin")
WALLS = {"left": ff.Robin(h=2.0, outside=1.0), "right": ff.Neumann(0.5)}


def network() -> TrainedNetwork:
    """The midpoint rule, as networks are before training."""
    made = build_flux_network(nested_tableau(2), EQUATION, jax.random.key(0), depth=2, width=4)
    return TrainedNetwork("carry", made, EQUATION, {"velocity": (3.0, 1.0), "D": 1.0}, (0.05, 0.6))


def test_parameters_and_walls_of_any_kind_are_taken() -> None:
    given = {"parameters": {"velocity": ("y", "-x"), "D": "1 + x"}, "boundary": WALLS, "source": "x", "steps": 3}
    ours = ff.simulate(network(), MESH, initial="x*y", **given)
    wanted = ff.simulate("midpoint", MESH, initial="x*y", equation=EQUATION, **given)
    assert ours.dt == wanted.dt
    # Round-off of three steps.
    assert np.abs(ours.final - wanted.final).max() < 1e-13
    with pytest.raises(EquationError, match="no parameter 'alpha'"):
        ff.simulate(network(), MESH, parameters={"alpha": 1.0})


def test_a_step_outside_the_trained_range_is_warned_of_once_with_the_range() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ff.simulate(network(), MESH, dt_fraction=0.6, steps=1).notes == ()
    with pytest.warns(UserWarning, match=r"0\.7 reference steps is outside the trained range, 0\.05 to 0\.6") as seen:
        long = ff.simulate(network(), MESH, dt_fraction=0.7, steps=5)
    assert len(seen) == 1
    assert long.notes == (str(seen[0].message),)
    with pytest.warns(UserWarning, match="trained range"):
        ff.simulate(network(), MESH, dt_fraction=0.04, steps=1)


def test_the_warning_shows_the_line_that_simulates() -> None:
    """In a new process: the type checks that tests add to every function are lines of their own."""
    program = """
import warnings
import test_trained_range as given
with warnings.catch_warnings(record=True) as seen:
    given.ff.simulate(given.network(), given.MESH, dt_fraction=0.7, steps=1)
print(*(each.filename for each in seen))
"""
    here = Path(__file__).parent
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=here)
    assert done.stdout == "<string>\n"
