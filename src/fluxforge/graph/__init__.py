"""Neighbourhoods of cells over one or two hops, and node values with ghosts: in NumPy, and padded on the device."""

from fluxforge.graph._neighbourhoods import (
    Average,
    Neighbourhood,
    Neighbourhoods,
    View,
    check_dimension,
    node_volumes,
    view,
)
from fluxforge.graph._pad import Size, device_memory, pad_graph, pad_to_size, size, stack_graphs
from fluxforge.graph._padded_graph import (
    Columns,
    Nodes,
    Outflow,
    PaddedGraph,
    Quantities,
    Shown,
    Slots,
    outflow_rule,
    put,
)
from fluxforge.graph._stages import (
    AbstractRound,
    Formulas,
    Moment,
    evaluate_stages,
    fixed_sums,
    visit_stages,
    visit_stages_in_time,
)

__all__ = [
    "AbstractRound",
    "Average",
    "Columns",
    "Formulas",
    "Moment",
    "Neighbourhood",
    "Neighbourhoods",
    "Nodes",
    "Outflow",
    "PaddedGraph",
    "Quantities",
    "Shown",
    "Size",
    "Slots",
    "View",
    "check_dimension",
    "device_memory",
    "evaluate_stages",
    "fixed_sums",
    "node_volumes",
    "outflow_rule",
    "pad_graph",
    "pad_to_size",
    "put",
    "size",
    "stack_graphs",
    "view",
    "visit_stages",
    "visit_stages_in_time",
]
