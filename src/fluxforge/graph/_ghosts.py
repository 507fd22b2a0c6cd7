"""What every node, ghosts included, shows of a field:  shown = scale · field[cell] + constant."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Inexact, Int

from fluxforge.mesh import DualGraph
from fluxforge.scheme import Ghost


class View(NamedTuple):
    """Where each node's value comes from: a cell, scaled by 0 or 1, plus a constant from the boundary data."""

    cell: Int[np.ndarray, " nodes"]
    scale: Float[np.ndarray, " nodes"]
    constant: Float[np.ndarray, " nodes"]

    def of(self, field: Inexact[np.ndarray, " cells"]) -> Inexact[np.ndarray, " nodes"]:
        """The field as every node shows it."""
        return self.scale * field[self.cell] + self.constant


def view(graph: DualGraph, rule: Ghost) -> View:
    """How nodes show an output of that ghost rule.

    A Dirichlet ghost shows g, its owner's value or 0. A Neumann ghost moves with its owner: it shows the owner's
    value, plus q δ where the output is a temperature.
    """
    boundary = slice(graph.interior, None)
    temperature = rule is Ghost.DIRICHLET
    fixed = np.where(graph.neumann, graph.value * graph.delta[boundary], graph.value)
    follows = graph.neumann | (rule is Ghost.OWNER)
    return View(
        cell=np.concatenate([np.arange(graph.cells, dtype=np.int32), graph.owner[boundary]]),
        scale=np.concatenate([np.ones(graph.cells), follows.astype(float)]),
        constant=np.concatenate([np.zeros(graph.cells), fixed if temperature else np.zeros(graph.ghosts)]),
    )


def node_volumes(graph: DualGraph) -> Float[np.ndarray, " nodes"]:
    """V of every node: 1/V = 0 at a Dirichlet ghost, which holds its value; a Neumann ghost mirrors its owner."""
    mirrored = graph.V[graph.owner[graph.interior :]]
    return np.concatenate([graph.V, np.where(graph.neumann, mirrored, np.inf)])
