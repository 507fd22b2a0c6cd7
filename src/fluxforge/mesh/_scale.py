"""x ↦ x/ℓ with ℓ² the mean cell volume: the units in which networks see every mesh."""

from dataclasses import replace

import numpy as np

from fluxforge.mesh._dual import DualGraph, check_graph


def unit_volume(graph: DualGraph) -> tuple[DualGraph, float]:
    """The graph in units of ℓ = √mean V, and ℓ.

    The heat equation keeps its form, and α its value, if time is measured in units of ℓ²: Δt ↦ Δt/ℓ², S ↦ S ℓ².
    """
    length = float(np.sqrt(check_graph(graph).V.mean()))
    return replace(
        graph,
        V=graph.V / length**2,
        x=graph.x / length,
        A=graph.A / length,
        d=graph.d / length,
        delta=graph.delta / length,
        centre=graph.centre / length,
        # q is a slope: temperature over length.
        value=np.where(graph.neumann, graph.value * length, graph.value),
    ), length
