"""Limiters φ(r, c) found by training on rows of cells: networks, closed forms of few constants, and their errors."""

from fluxforge.limiter._distil import ClosedForm, Fit, distil_limiter, fit_network, phi_of, read_breakpoints
from fluxforge.limiter._families import FAMILIES, Family
from fluxforge.limiter._rows import (
    CELLS,
    HORIZONS,
    Phi,
    Profiles,
    Ratio,
    Step,
    advance,
    advance_each,
    cell_averages,
    cfl_superbee,
    draw_profiles,
    draw_rows,
    held_out_ratios,
    limited_step,
    upper_bound,
)
from fluxforge.limiter._train import TrainedLimiter, create_weights, network_phi, train_limiter
from fluxforge.limiter._waves import average_cells, jiang_shu, jiang_shu_errors, jiang_shu_rows

__all__ = [
    "CELLS",
    "FAMILIES",
    "HORIZONS",
    "ClosedForm",
    "Family",
    "Fit",
    "Phi",
    "Profiles",
    "Ratio",
    "Step",
    "TrainedLimiter",
    "advance",
    "advance_each",
    "average_cells",
    "cell_averages",
    "cfl_superbee",
    "create_weights",
    "distil_limiter",
    "draw_profiles",
    "draw_rows",
    "fit_network",
    "held_out_ratios",
    "jiang_shu",
    "jiang_shu_errors",
    "jiang_shu_rows",
    "limited_step",
    "network_phi",
    "phi_of",
    "read_breakpoints",
    "train_limiter",
    "upper_bound",
]
