"""A scheme as a JAX module."""

from fluxforge.scheme._scheme import Scheme
from fluxforge.scheme.emit._python import Flavour, python_module
from fluxforge.scheme.emit._python_text import CG_JAX

_JAX = Flavour(
    np="jnp",
    array="jax.Array",
    imports="from typing import NamedTuple\n\nimport jax\nimport jax.numpy as jnp",
    note="Made for jax.jit(step). The precision is that of the arrays; double needs jax_enable_x64.",
    decorator="",
    entry=("mesh, T, S = jax.tree.map(jnp.asarray, (mesh, T, S))",),
    solver=CG_JAX,
)


def emit_jax(scheme: Scheme) -> str:
    """Python source with `step(T, S, mesh, dt, …)` on JAX arrays."""
    return python_module(scheme, _JAX)
