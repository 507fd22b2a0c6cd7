"""Schemes on meshes: steppers, stable steps, rollouts, pictures."""

from fluxforge.stepping._assemble import AffineMap, Operator, apply, assemble, generator, operator
from fluxforge.stepping._build import Precision, Solver, run_stepper, stepper
from fluxforge.stepping._bytes import bytes_per_cell
from fluxforge.stepping._compare import Comparison, compare
from fluxforge.stepping._factors import factorise
from fluxforge.stepping._field import field_on_cells
from fluxforge.stepping._field_file import read_field
from fluxforge.stepping._folder import prepare_folder
from fluxforge.stepping._general import GeneralStepper, general_stepper
from fluxforge.stepping._implicit import sides
from fluxforge.stepping._kernel_stepper import KernelStepper
from fluxforge.stepping._limit import StepLimit, fastest_eigenvalues, real_interval, step_limit
from fluxforge.stepping._network import NetworkStepper, network_stepper
from fluxforge.stepping._one_operator import is_one_operator, step_matrix
from fluxforge.stepping._output import write_comparison, write_run, write_series
from fluxforge.stepping._picture import animation, comparison_figure, field_picture, side_by_side
from fluxforge.stepping._reaction import cell_capacity, linear_reaction
from fluxforge.stepping._run import Simulation, choose_step, limit_kind, simulate
from fluxforge.stepping._stepper import STEPS_PER_TURN, AbstractStepper, LinearStepper

__all__ = [
    "STEPS_PER_TURN",
    "AbstractStepper",
    "AffineMap",
    "Comparison",
    "GeneralStepper",
    "KernelStepper",
    "LinearStepper",
    "NetworkStepper",
    "Operator",
    "Precision",
    "Simulation",
    "Solver",
    "StepLimit",
    "animation",
    "apply",
    "assemble",
    "bytes_per_cell",
    "cell_capacity",
    "choose_step",
    "compare",
    "comparison_figure",
    "factorise",
    "fastest_eigenvalues",
    "field_on_cells",
    "field_picture",
    "general_stepper",
    "generator",
    "is_one_operator",
    "limit_kind",
    "linear_reaction",
    "network_stepper",
    "operator",
    "prepare_folder",
    "read_field",
    "real_interval",
    "run_stepper",
    "side_by_side",
    "sides",
    "simulate",
    "step_limit",
    "step_matrix",
    "stepper",
    "write_comparison",
    "write_run",
    "write_series",
]
