"""Message-passing networks on graphs: schemes with MLPs in place of formulas. No training here."""

from fluxforge.gnn._build import build
from fluxforge.gnn._flux_form import (
    FluxNetwork,
    build_flux_network,
)
from fluxforge.gnn._network import (
    MLP,
    AbstractMLP,
    AbstractNetwork,
    F,
    Gate,
    GatedMLP,
    Gradient,
    Layer,
    Linear,
    Messages,
    Network,
    Update,
    cast,
    parameters,
)
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
    "build",
    "build_flux_network",
    "cast",
    "inputs",
    "parameters",
    "standardise",
    "standards",
]
