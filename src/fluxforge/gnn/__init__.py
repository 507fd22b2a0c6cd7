"""Message-passing networks on graphs: schemes with MLPs in place of formulas. No training here."""

from fluxforge.gnn._build import build, cast
from fluxforge.gnn._mlp import MLP, AbstractMLP, Gate, GatedMLP, Linear, parameters
from fluxforge.gnn._network import F, Gradient, Layer, Messages, Network, Update
from fluxforge.gnn._standard import Standard, Standardised, inputs, standardise, standards

__all__ = [
    "MLP",
    "AbstractMLP",
    "F",
    "Gate",
    "GatedMLP",
    "Gradient",
    "Layer",
    "Linear",
    "Messages",
    "Network",
    "Standard",
    "Standardised",
    "Update",
    "build",
    "cast",
    "inputs",
    "parameters",
    "standardise",
    "standards",
]
