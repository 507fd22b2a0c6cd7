"""Schemes on meshes: steppers, stable steps, rollouts, pictures."""

from fluxforge.simulate._assemble import AffineMap, Operator, apply, assemble, generator, operator
from fluxforge.simulate._build import Precision, Solver, run_stepper, stepper
from fluxforge.simulate._bytes import bytes_per_cell
from fluxforge.simulate._compare import Comparison, compare
from fluxforge.simulate._factors import factorise
from fluxforge.simulate._field import field_on_cells
from fluxforge.simulate._field_file import read_field
from fluxforge.simulate._folder import prepare_folder
from fluxforge.simulate._general import GeneralStepper, general_stepper
from fluxforge.simulate._implicit import sides
from fluxforge.simulate._kernel_stepper import KernelStepper
from fluxforge.simulate._limit import StepLimit, fastest_eigenvalues, real_interval, step_limit
from fluxforge.simulate._network import NetworkStepper, network_stepper
from fluxforge.simulate._one_operator import is_one_operator, step_matrix
from fluxforge.simulate._output import write_comparison, write_run, write_series
from fluxforge.simulate._picture import animation, field_picture, side_by_side
from fluxforge.simulate._reaction import cell_capacity, linear_reaction
from fluxforge.simulate._run import Simulation, choose_step, limit_kind, simulate
from fluxforge.simulate._stepper import AbstractStepper, LinearStepper

__all__ = [
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
