"""The paper's networks with dimensionless features: other units of length and time change nothing."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fluxforge import recipe
from fluxforge.errors import InputError
from fluxforge.gnn import build
from fluxforge.graph import pad_graph, put
from fluxforge.mesh import close_walls, dual, jittered, reference_step, resolve
from fluxforge.pde import BUILT_IN
from fluxforge.stepping import NetworkStepper
from strategies import moved

VALUES: dict[str, Any] = {"heat": {"alpha": 1.3}, "advection-diffusion": {"velocity": (2.0, 1.0), "D": 0.7}}


def step(name: str, features: str, scale: float, T: np.ndarray) -> np.ndarray:
    """One step on a mesh `scale` times as large, with the parameters and the step in the same physical units."""
    equation, graph = BUILT_IN[name], dual(moved(jittered(4), scale=scale))
    spec = recipe.Network(features=features, layers=2, width=8, depth=2)  # type: ignore[arg-type]
    network = build(spec, jax.random.key(0), equation)
    values = {k: np.asarray(v) * scale ** (2 if np.ndim(v) == 0 else 1) for k, v in VALUES[name].items()}
    values = {k: v.tolist() for k, v in values.items()}
    fields = resolve(equation, graph, values)
    stepper = NetworkStepper(
        network=network,
        graph=pad_graph(close_walls(graph, equation, fields), network.hops, parameters=fields),
        S=put(np.ones(graph.cells)),
        dt=jnp.asarray(0.5 * reference_step(equation, graph, values)),
        parameters={k: jnp.asarray(v) for k, v in fields.constants.items()},
    )
    return np.asarray(stepper(T))


@pytest.mark.parametrize("name", VALUES)
def test_another_unit_of_length_changes_nothing(name: str) -> None:
    T = np.random.default_rng(0).normal(size=len(jittered(4).cells))
    near, far = (step(name, "dimensionless", scale, T) for scale in (1.0, 37.0))
    # Weights are of float32: so is round-off.
    assert np.abs(near - far).max() < 1e-5
    assert np.abs(near - T).max() > 1e-3


def test_the_usual_features_see_lengths() -> None:
    T = np.random.default_rng(0).normal(size=len(jittered(4).cells))
    near, far = (step("heat", "primitive", scale, T) for scale in (1.0, 37.0))
    assert np.abs(near - far).max() > 1e-2


def test_what_cannot_be_dimensionless_is_refused_by_its_fields() -> None:
    spec = recipe.load("first-order")
    with pytest.raises(InputError, match=r"network\.features.*one hop"):
        recipe.override(recipe.load("two-hop"), {"network.features": "dimensionless"})
    with pytest.raises(InputError, match=r"'burgers' is not linear in u, as dimensionless features need"):
        recipe.override(spec, {"network.features": "dimensionless", "equation": "burgers", "diffusivity": None})
    assert recipe.override(spec, {"network.features": "dimensionless"}).network.features == "dimensionless"
