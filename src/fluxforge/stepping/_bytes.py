"""The bytes a step must move, counted from the arrays it holds."""

import numpy as np

from fluxforge.stepping._kernel_stepper import KernelStepper
from fluxforge.stepping._rows import stage_bytes
from fluxforge.stepping._stepper import AbstractStepper, LinearStepper


def bytes_per_cell(step: AbstractStepper, cells: int) -> float | None:
    """Every coefficient and index read once, each field read once by each stage that uses it, each output written once.

    None for an implicit scheme, whose solver decides how often it reads them. The kernel on the host holds several
    steps in the cache and moves less than this from memory.
    """
    if isinstance(step, KernelStepper):
        return float(step.work.program.bytes_per_cell(step.work.dtype.itemsize))
    if not isinstance(step, LinearStepper):
        return None
    return sum(stage_bytes(stage, cells, np.dtype(step.dtype).itemsize) for stage in step.stages) / cells
