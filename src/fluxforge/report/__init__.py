"""Results as HTML pages, figures and tables; nothing is computed here."""

from fluxforge.report._arms_figures import extrapolation_figure, generalisation_figure
from fluxforge.report._carry_page import carry_figure, write_carry
from fluxforge.report._certificate_page import certificate_figures, certificate_page, formula_lines, write_certificate
from fluxforge.report._discovery_figures import discovery_figures
from fluxforge.report._discovery_page import discovery_page, write_discovery
from fluxforge.report._experiment_page import experiment_page, write_experiment
from fluxforge.report._limiter_page import phi_figure, write_limiter
from fluxforge.report._page import COLOURS, MARKERS, Shown, embed_figure, page, panels, round_decimals, typeset
from fluxforge.report._skew_page import write_skew
from fluxforge.report._tables import Row, Table, table_csv, tables

__all__ = [
    "COLOURS",
    "MARKERS",
    "Row",
    "Shown",
    "Table",
    "carry_figure",
    "certificate_figures",
    "certificate_page",
    "discovery_figures",
    "discovery_page",
    "embed_figure",
    "experiment_page",
    "extrapolation_figure",
    "formula_lines",
    "generalisation_figure",
    "page",
    "panels",
    "phi_figure",
    "round_decimals",
    "table_csv",
    "tables",
    "typeset",
    "write_carry",
    "write_certificate",
    "write_discovery",
    "write_experiment",
    "write_limiter",
    "write_skew",
]
