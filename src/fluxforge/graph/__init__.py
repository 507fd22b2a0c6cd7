"""Who is around each cell, over one hop or two, and what every node shows: in NumPy, and on the device, padded."""

from fluxforge.graph._device import device_memory, put
from fluxforge.graph._ghosts import View, node_volumes, view
from fluxforge.graph._hops import Average, Neighbourhood, Neighbourhoods, check_dimension
from fluxforge.graph._pad import Size, pad_to_size, size, stack_graphs
from fluxforge.graph._padded_graph import PaddedGraph, Shown, Slots, pad_graph
from fluxforge.graph._stages import AbstractRound, Formulas, evaluate_stages, visit_stages

__all__ = [
    "AbstractRound",
    "Average",
    "Formulas",
    "Neighbourhood",
    "Neighbourhoods",
    "PaddedGraph",
    "Shown",
    "Size",
    "Slots",
    "View",
    "check_dimension",
    "device_memory",
    "evaluate_stages",
    "node_volumes",
    "pad_graph",
    "pad_to_size",
    "put",
    "size",
    "stack_graphs",
    "view",
    "visit_stages",
]
