"""Who is around each cell, over one hop or two, and what every node shows: in NumPy, and on the device, padded."""

from fluxforge.neighbourhood._device import device_memory, put
from fluxforge.neighbourhood._ghosts import View, node_volumes, view
from fluxforge.neighbourhood._hops import Average, Neighbourhood, Neighbourhoods, check_dimension
from fluxforge.neighbourhood._pad import Size, padded, size, stacked
from fluxforge.neighbourhood._stages import AbstractRound, Formulas, evaluate_stages, visit_stages
from fluxforge.neighbourhood._surroundings import Shown, Slots, Surroundings, surroundings

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
