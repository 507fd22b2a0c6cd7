"""Limiters φ(r, c) found by training on rows of cells: networks, closed forms of few constants, and their errors."""

from fluxforge.limiter._distil import ClosedForm, distil_limiter
from fluxforge.limiter._families import FAMILIES, Family
from fluxforge.limiter._fit import (
    Fit,
    Ratio,
    fit_network,
    held_out_ratios,
    measure_loss,
    phi_of,
    read_breakpoints,
    refit,
    sample_grid,
)
from fluxforge.limiter._measure import CELLS, HORIZONS, cfl_superbee, errors, ratios
from fluxforge.limiter._network import Weights, create_weights, network_phi, network_share
from fluxforge.limiter._profiles import COURANT, Profiles, cell_averages, draw_profiles, draw_rows
from fluxforge.limiter._rows import Phi, Step, advance, limited_step, step, upper_bound
from fluxforge.limiter._run import TrainedLimiter, plan_training, train_limiter
from fluxforge.limiter._train import PHASES, Plan, TrainingState, begin_phase, member, start_training, train_chunk
from fluxforge.limiter._waves import (
    COURANT_NUMBERS,
    WAVE_CELLS,
    WAVE_TIME,
    advance_each,
    average_cells,
    jiang_shu,
    jiang_shu_errors,
    jiang_shu_rows,
)

__all__ = [
    "CELLS",
    "COURANT",
    "COURANT_NUMBERS",
    "FAMILIES",
    "HORIZONS",
    "PHASES",
    "WAVE_CELLS",
    "WAVE_TIME",
    "ClosedForm",
    "Family",
    "Fit",
    "Phi",
    "Plan",
    "Profiles",
    "Ratio",
    "Step",
    "TrainedLimiter",
    "TrainingState",
    "Weights",
    "advance",
    "advance_each",
    "average_cells",
    "begin_phase",
    "cell_averages",
    "cfl_superbee",
    "create_weights",
    "distil_limiter",
    "draw_profiles",
    "draw_rows",
    "errors",
    "fit_network",
    "held_out_ratios",
    "jiang_shu",
    "jiang_shu_errors",
    "jiang_shu_rows",
    "limited_step",
    "measure_loss",
    "member",
    "network_phi",
    "network_share",
    "phi_of",
    "plan_training",
    "ratios",
    "read_breakpoints",
    "refit",
    "sample_grid",
    "start_training",
    "step",
    "train_chunk",
    "train_limiter",
    "upper_bound",
]
