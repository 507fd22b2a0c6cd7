"""x ↦ x/ℓ with ℓ^d the mean cell volume: the units in which networks see every mesh."""

from dataclasses import replace

import numpy as np

from fluxforge.mesh._dual import DualGraph, check_graph


def unit_volume(graph: DualGraph) -> tuple[DualGraph, float]:
    """The graph in units of ℓ, the root of mean V (the cube root in space), and ℓ.

    The heat equation keeps its form, and α its value, if time is measured in units of ℓ²: Δt ↦ Δt/ℓ², S ↦ S ℓ².
    """
    d = check_graph(graph).dimension
    mean = graph.V.mean()
    length = float(np.sqrt(mean) if d == 2 else mean ** (1 / d))
    return replace(
        graph,
        V=graph.V / length**d,
        x=graph.x / length,
        A=graph.A / length ** (d - 1),
        d=graph.d / length,
        delta=graph.delta / length,
        centre=graph.centre / length,
        # q is a slope: temperature over length.
        value=np.where(graph.neumann, graph.value * length, graph.value),
    ), length
