"""Neighbourhoods of cells over one or two hops, and node values with ghosts: in NumPy, and padded on the device."""

from fluxforge.graph._neighbourhoods import Neighbourhoods, node_volumes, view
from fluxforge.graph._pad import Size, device_memory, pad_graph, pad_to_size, size, stack_graphs
from fluxforge.graph._padded_graph import Columns, Nodes, Outflow, PaddedGraph, put
from fluxforge.graph._stages import Formulas, evaluate_stages

__all__ = [
    "Columns",
    "Formulas",
    "Neighbourhoods",
    "Nodes",
    "Outflow",
    "PaddedGraph",
    "Size",
    "device_memory",
    "evaluate_stages",
    "node_volumes",
    "pad_graph",
    "pad_to_size",
    "put",
    "size",
    "stack_graphs",
    "view",
]
