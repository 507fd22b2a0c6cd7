"""HTML pages, figures and tables of finished results; nothing is measured here."""

from fluxforge.report._arms_figures import extrapolation_figure, generalisation_figure
from fluxforge.report._arms_page import write_arms
from fluxforge.report._carry_page import write_carry
from fluxforge.report._certificate_page import write_certificate
from fluxforge.report._discovery_figures import discovery_figures
from fluxforge.report._discovery_page import discovery_page, write_discovery
from fluxforge.report._experiment_page import write_experiment
from fluxforge.report._limiter_page import write_limiter
from fluxforge.report._page import panels, save_figures, typeset
from fluxforge.report._skew_page import write_skew
from fluxforge.report._tables import Table, table_csv, tables

__all__ = [
    "Table",
    "discovery_figures",
    "discovery_page",
    "extrapolation_figure",
    "generalisation_figure",
    "panels",
    "save_figures",
    "table_csv",
    "tables",
    "typeset",
    "write_arms",
    "write_carry",
    "write_certificate",
    "write_discovery",
    "write_experiment",
    "write_limiter",
    "write_skew",
]
