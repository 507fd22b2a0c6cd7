"""One explicit evaluation F(T) of a scheme, linear or not, as a function of T and S."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from fluxforge.graph import evaluate_stages, pad_graph
from fluxforge.mesh import DualGraph, Settings, resolve
from fluxforge.scheme import Scheme, linear_stages
from fluxforge.stepping import apply, assemble

Step = Callable[[np.ndarray, np.ndarray], np.ndarray]


def make_step(scheme: Scheme, graph: DualGraph, *, dt: float, parameters: Settings | None = None) -> Step:
    """(T, S) ↦ F(T); of an implicit scheme the F that its θ-formula refers to. Needs JAX's 64-bit mode.

    A linear scheme is assembled, any other is evaluated as it is written.
    """
    if linear_stages(scheme) is not None:
        stages = assemble(scheme, graph, dt=dt, parameters=parameters)
        return lambda T, S: np.asarray(apply(stages, T, S))
    fields = resolve(scheme.equation, graph, parameters)
    around = pad_graph(graph, scheme.hops(), parameters=fields, dtype="float64")
    constants = {"dt": dt, **fields.constants}

    def step(T: np.ndarray, S: np.ndarray) -> np.ndarray:
        return np.asarray(evaluate_stages(scheme.stages, around, jnp.asarray(T), jnp.asarray(S), parameters=constants))

    return step
