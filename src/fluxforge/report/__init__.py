"""Results as pages: it computes nothing."""

from fluxforge.report._certificate_page import certificate_page, formula_lines, write_certificate
from fluxforge.report._convergence import errors_figure, printed_residual_map, residual_map
from fluxforge.report._discovery_figures import discovery_figures
from fluxforge.report._discovery_page import discovery_page, write_discovery
from fluxforge.report._figures import certificate_figures
from fluxforge.report._generalisation import extrapolation_figure, generalisation_figure
from fluxforge.report._higher_order import constants_figure, four_layers_figure, residuals_figure
from fluxforge.report._memory import memory_figure
from fluxforge.report._symbolic import pinn_figure, symbolic_figure
from fluxforge.report._theorems import theorems_figure

__all__ = [
    "certificate_figures",
    "certificate_page",
    "constants_figure",
    "discovery_figures",
    "discovery_page",
    "errors_figure",
    "extrapolation_figure",
    "formula_lines",
    "four_layers_figure",
    "generalisation_figure",
    "memory_figure",
    "pinn_figure",
    "printed_residual_map",
    "residual_map",
    "residuals_figure",
    "symbolic_figure",
    "theorems_figure",
    "write_certificate",
    "write_discovery",
]
