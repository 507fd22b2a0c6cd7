"""Schemes on meshes: steppers, stable steps, rollouts, pictures."""

from fluxforge._types import Precision
from fluxforge.stepping._assemble import AffineMap, Operator, apply, assemble, generator, operator, sides, step_matrix
from fluxforge.stepping._build import run_stepper, stepper
from fluxforge.stepping._exponential import (
    ImplicitStep,
    Polynomial,
    amplification,
    chebyshev_exponential,
    corrected_euler,
    krylov_exponential,
    nearest_polynomial,
    optimal_polynomial,
)
from fluxforge.stepping._field import field_on_cells, read_field
from fluxforge.stepping._folder import prepare_folder
from fluxforge.stepping._frozen_flux import FrozenFlux, face_numbers, freeze_flux, freeze_network
from fluxforge.stepping._limit import StepLimit, fastest_eigenvalues, real_interval, step_limit
from fluxforge.stepping._linear import LinearStepper
from fluxforge.stepping._march import choose_step
from fluxforge.stepping._picture import comparison_figure
from fluxforge.stepping._problem import Problem, read_problem
from fluxforge.stepping._run import compare, rerun, restart, simulate
from fluxforge.stepping._simulation import (
    Comparison,
    ComparisonRow,
    ErrorNorms,
    Simulation,
    Summary,
    animation,
    write_comparison,
    write_run,
)
from fluxforge.stepping._solvers import Solver, factorise
from fluxforge.stepping._steady import (
    SOLVERS_OF_STEADY_STATES,
    Overshoot,
    SteadyState,
    SteadySummary,
    overshoot,
    steady,
)
from fluxforge.stepping._stepper import AbstractStepper, GeneralStepper, general_stepper
from fluxforge.stepping._trained import NetworkStepper, TrainedNetwork, network_stepper

__all__ = [
    "SOLVERS_OF_STEADY_STATES",
    "AbstractStepper",
    "AffineMap",
    "Comparison",
    "ComparisonRow",
    "ErrorNorms",
    "FrozenFlux",
    "GeneralStepper",
    "ImplicitStep",
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
    "chebyshev_exponential",
    "choose_step",
    "compare",
    "comparison_figure",
    "corrected_euler",
    "face_numbers",
    "factorise",
    "fastest_eigenvalues",
    "field_on_cells",
    "freeze_flux",
    "freeze_network",
    "general_stepper",
    "generator",
    "krylov_exponential",
    "nearest_polynomial",
    "network_stepper",
    "operator",
    "optimal_polynomial",
    "overshoot",
    "prepare_folder",
    "read_field",
    "read_problem",
    "real_interval",
    "rerun",
    "restart",
    "run_stepper",
    "sides",
    "simulate",
    "steady",
    "step_limit",
    "step_matrix",
    "stepper",
    "write_comparison",
    "write_run",
]
