"""Schemes on meshes: steppers, stable steps, rollouts, pictures."""

from fluxforge.simulate._assemble import AffineMap, Operator, assemble, generator, operator
from fluxforge.simulate._build import Precision, Solver, source_on_cells, stepper
from fluxforge.simulate._general import general_stepper
from fluxforge.simulate._implicit import sides
from fluxforge.simulate._limit import StepLimit, fastest_eigenvalues, real_interval, step_limit
from fluxforge.simulate._stepper import AbstractStepper, LinearStepper
