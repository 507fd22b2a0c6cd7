"""Who is around each cell, over one hop or two, and what every node shows: in NumPy, and on the device, padded."""

from fluxforge.graph._device import device_memory, put
from fluxforge.graph._ghosts import View, node_volumes, view
from fluxforge.graph._hops import Average, Neighbourhood, Neighbourhoods, check_dimension
from fluxforge.graph._pad import Size, padded, size, stacked
from fluxforge.graph._stages import AbstractRound, Formulas, evaluate_stages, visit_stages
from fluxforge.graph._surroundings import Shown, Slots, Surroundings, surroundings

__all__ = [
    "AbstractRound",
    "Average",
    "Formulas",
    "Neighbourhood",
    "Neighbourhoods",
    "Shown",
    "Size",
    "Slots",
    "Surroundings",
    "View",
    "check_dimension",
    "device_memory",
    "evaluate_stages",
    "node_volumes",
    "padded",
    "put",
    "size",
    "stacked",
    "surroundings",
    "view",
    "visit_stages",
]
