"""Results as pages: it computes nothing."""

from fluxforge.report._certificate_page import certificate_page, formula_lines, write_certificate
from fluxforge.report._consistency import diffusivity_figure, plateau_figure
from fluxforge.report._controls import controls_table
from fluxforge.report._convergence import errors_figure, printed_residual_map, residual_map
from fluxforge.report._discovery_figures import discovery_figures
from fluxforge.report._discovery_page import discovery_page, write_discovery
from fluxforge.report._figures import certificate_figures
from fluxforge.report._generalisation import extrapolation_figure, generalisation_figure
from fluxforge.report._higher_order import constants_figure, four_layers_figure, residuals_figure
from fluxforge.report._memory import memory_figure
from fluxforge.report._rates import rates_figure, rates_table
from fluxforge.report._reproduction_page import Download, Formula, Section, reproduction_page, section
from fluxforge.report._setup import (
    message_passing_figure,
    sample_meshes_figure,
    training_data_figure,
    two_hop_figure,
)
from fluxforge.report._symbolic import pinn_figure, symbolic_figure
from fluxforge.report._tables import Table, table_csv, tables
from fluxforge.report._theorems import theorems_figure

__all__ = [
    "Download",
    "Formula",
    "Section",
    "Table",
    "certificate_figures",
    "certificate_page",
    "constants_figure",
    "controls_table",
    "diffusivity_figure",
    "discovery_figures",
    "discovery_page",
    "errors_figure",
    "extrapolation_figure",
    "formula_lines",
    "four_layers_figure",
    "generalisation_figure",
    "memory_figure",
    "message_passing_figure",
    "pinn_figure",
    "plateau_figure",
    "printed_residual_map",
    "rates_figure",
    "rates_table",
    "reproduction_page",
    "residual_map",
    "residuals_figure",
    "sample_meshes_figure",
    "section",
    "symbolic_figure",
    "table_csv",
    "tables",
    "theorems_figure",
    "training_data_figure",
    "two_hop_figure",
    "write_certificate",
    "write_discovery",
]
