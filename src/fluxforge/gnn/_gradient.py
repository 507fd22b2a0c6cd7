"""The gradient of T as a round in front of a network's layers: formulas, no weights."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from fluxforge._types import State
from fluxforge.errors import SchemeError
from fluxforge.expression import COORDINATES
from fluxforge.graph import Formulas, PaddedGraph
from fluxforge.scheme import Ghost, Hop, Stage, gradient_stage


class Gradient(eqx.Module):
    """Least-squares gradients `g_x`, `g_y` (and `g_z`) of T, for messages that contain their correction."""

    dimension: int = eqx.field(static=True)

    @property
    def stage(self) -> Stage:
        """The formulas."""
        return gradient_stage(self.dimension)

    @property
    def ghosts(self) -> Mapping[str, Ghost]:
        """A ghost shows its owner's gradient."""
        return Formulas(self.stage).ghosts

    def sums(
        self, graph: PaddedGraph, nodes: Mapping[str, Float[Array, " nodes"]], parameters: Mapping[str, Any]
    ) -> dict[str, State]:
        """The entries of each cell's system. Cells that are padding get a unit matrix, which has an inverse.

        Raises SchemeError on a mesh of another dimension.
        """
        there = sum(f"n_{axis}" in graph.hops[Hop.EDGE].geometry for axis in COORDINATES)
        if there != self.dimension:
            raise SchemeError(f"a network of gradients in {self.dimension} dimensions meets a mesh of {there}")
        found = Formulas(self.stage).sums(graph, nodes, parameters)
        diagonal = {f"m_{axis}{axis}" for axis in COORDINATES}
        return {name: jnp.where(graph.live, z, 1.0) if name in diagonal else z for name, z in found.items()}

    def outputs(self, graph: PaddedGraph, cell: Mapping[str, Any]) -> dict[str, State]:
        """The gradients."""
        return Formulas(self.stage).outputs(graph, cell)
