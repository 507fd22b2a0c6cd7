"""Schemes on meshes: steppers, stable steps, rollouts, pictures."""

from fluxforge._types import Precision
from fluxforge.stepping._assemble import AffineMap, Operator, apply, assemble, generator, operator
from fluxforge.stepping._build import (
    NetworkStepper,
    Solver,
    bytes_per_cell,
    network_stepper,
    run_stepper,
    stepper,
)
from fluxforge.stepping._field import cell_capacity, field_on_cells, linear_reaction, read_array, read_field
from fluxforge.stepping._frozen_flux import FrozenFlux, face_coefficients, face_numbers, freeze_flux, freeze_network
from fluxforge.stepping._implicit import factorise, sides, step_matrix
from fluxforge.stepping._kernel_stepper import KernelStepper
from fluxforge.stepping._lanczos import krylov_exponential
from fluxforge.stepping._limit import StepLimit, fastest_eigenvalues, is_one_operator, step_limit
from fluxforge.stepping._linear import LinearStepper
from fluxforge.stepping._output import prepare_folder, write_comparison, write_run, write_series
from fluxforge.stepping._picture import comparison_figure
from fluxforge.stepping._problem import Problem
from fluxforge.stepping._problem_file import read_final, read_problem
from fluxforge.stepping._run import compare, continue_problem, rerun, restart, run_problem, simulate
from fluxforge.stepping._second_order_implicit import ImplicitStep
from fluxforge.stepping._simulation import (
    Comparison,
    ComparisonRow,
    ErrorNorms,
    Simulation,
    Summary,
    animation,
    field_picture,
    side_by_side,
)
from fluxforge.stepping._stability_polynomial import (
    Polynomial,
    amplification,
    chebyshev_exponential,
    corrected_euler,
    nearest_polynomial,
    optimal_interval,
    optimal_polynomial,
)
from fluxforge.stepping._stable_region import limit_kind, real_interval
from fluxforge.stepping._steady import (
    SOLVERS_OF_STEADY_STATES,
    Overshoot,
    SteadyState,
    SteadySummary,
    overshoot,
    steady,
)
from fluxforge.stepping._step_size import choose_step
from fluxforge.stepping._stepper import STEPS_PER_TURN, AbstractStepper, GeneralStepper, general_stepper
from fluxforge.stepping._trained import TrainedNetwork

__all__ = [
    "SOLVERS_OF_STEADY_STATES",
    "STEPS_PER_TURN",
    "AbstractStepper",
    "AffineMap",
    "Comparison",
    "ComparisonRow",
    "ErrorNorms",
    "FrozenFlux",
    "GeneralStepper",
    "ImplicitStep",
    "KernelStepper",
    "LinearStepper",
    "NetworkStepper",
    "Operator",
    "Overshoot",
    "Polynomial",
    "Precision",
    "Problem",
    "Simulation",
    "Solver",
    "SteadyState",
    "SteadySummary",
    "StepLimit",
    "Summary",
    "TrainedNetwork",
    "amplification",
    "animation",
    "apply",
    "assemble",
    "bytes_per_cell",
    "cell_capacity",
    "chebyshev_exponential",
    "choose_step",
    "compare",
    "comparison_figure",
    "continue_problem",
    "corrected_euler",
    "face_coefficients",
    "face_numbers",
    "factorise",
    "fastest_eigenvalues",
    "field_on_cells",
    "field_picture",
    "freeze_flux",
    "freeze_network",
    "general_stepper",
    "generator",
    "is_one_operator",
    "krylov_exponential",
    "limit_kind",
    "linear_reaction",
    "nearest_polynomial",
    "network_stepper",
    "operator",
    "optimal_interval",
    "optimal_polynomial",
    "overshoot",
    "prepare_folder",
    "read_array",
    "read_field",
    "read_final",
    "read_problem",
    "real_interval",
    "rerun",
    "restart",
    "run_problem",
    "run_stepper",
    "side_by_side",
    "sides",
    "simulate",
    "steady",
    "step_limit",
    "step_matrix",
    "stepper",
    "write_comparison",
    "write_run",
    "write_series",
]
