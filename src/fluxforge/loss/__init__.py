"""Losses as named terms: supervised, θ- and hermite-residual, sparsity."""

from fluxforge.loss._loss import (
    DataLoss,
    Defect,
    Terms,
    absolute_sum,
    data_loss,
    defect_of,
    defects,
    hermite_residual,
    mean_defect,
    norm_of,
    step_of,
    supervised_defect,
    theta_residual,
)

__all__ = [
    "DataLoss",
    "Defect",
    "Terms",
    "absolute_sum",
    "data_loss",
    "defect_of",
    "defects",
    "hermite_residual",
    "mean_defect",
    "norm_of",
    "step_of",
    "supervised_defect",
    "theta_residual",
]
