"""Message-passing networks on graphs: schemes with MLPs in place of formulas. No training here."""

from fluxforge.gnn._build import build, build_network, cast
from fluxforge.gnn._flux_form import (
    FluxNetwork,
    WeightedRound,
    build_flux_network,
    coefficient_inputs,
    learned_part,
    log_of_total,
)
from fluxforge.gnn._mlp import MLP, AbstractMLP, Gate, GatedMLP, Linear, parameters
from fluxforge.gnn._network import AbstractNetwork, F, Gradient, Layer, Messages, Network, Update
from fluxforge.gnn._standard import Standard, Standardised, inputs, standardise, standards

__all__ = [
    "MLP",
    "AbstractMLP",
    "AbstractNetwork",
    "F",
    "FluxNetwork",
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
    "WeightedRound",
    "build",
    "build_flux_network",
    "build_network",
    "cast",
    "coefficient_inputs",
    "inputs",
    "learned_part",
    "log_of_total",
    "parameters",
    "standardise",
    "standards",
]
