"""The figures and tables of the paper's studies, drawn from their documents."""

from fluxforge.paper.figures._consistency import diffusivity_figure, plateau_figure, theorems_figure
from fluxforge.paper.figures._convergence import errors_figure, memory_figure, printed_residual_map, residual_map
from fluxforge.paper.figures._setup import (
    message_passing_figure,
    sample_meshes_figure,
    training_data_figure,
    two_hop_figure,
)
from fluxforge.paper.figures._training import (
    constants_figure,
    controls_table,
    four_layers_figure,
    pinn_figure,
    rates_figure,
    rates_table,
    residuals_figure,
    symbolic_figure,
)

__all__ = [
    "constants_figure",
    "controls_table",
    "diffusivity_figure",
    "errors_figure",
    "four_layers_figure",
    "memory_figure",
    "message_passing_figure",
    "pinn_figure",
    "plateau_figure",
    "printed_residual_map",
    "rates_figure",
    "rates_table",
    "residual_map",
    "residuals_figure",
    "sample_meshes_figure",
    "symbolic_figure",
    "theorems_figure",
    "training_data_figure",
    "two_hop_figure",
]
