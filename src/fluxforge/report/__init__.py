"""Results as pages: it computes nothing."""

from fluxforge.report._certificate_page import certificate_page, formula_lines, write_certificate
from fluxforge.report._figures import certificate_figures

__all__ = ["certificate_figures", "certificate_page", "formula_lines", "write_certificate"]
