"""The bytes a step must move, counted from the arrays it holds."""

import jax
import numpy as np

from fluxforge.simulate._rows import StageRows
from fluxforge.simulate._stepper import AbstractStepper, LinearStepper


def bytes_per_cell(step: AbstractStepper, cells: int) -> float | None:
    """Every coefficient and index read once, each field read once by each stage that uses it, each output written once.

    None for an implicit scheme, whose solver decides how often it reads them.
    """
    if not isinstance(step, LinearStepper):
        return None
    return sum(stage_bytes(stage, cells, np.dtype(step.dtype).itemsize) for stage in step.stages) / cells


def stage_bytes(stage: StageRows, cells: int, width: int) -> int:
    """The bytes that one stage of a linear scheme moves, in numbers of that width."""
    held = sum(array.nbytes for array in jax.tree.leaves(stage))
    read = {term.field for terms in stage.terms.values() for term in terms}
    return held + (len(read) + len(stage.terms)) * cells * width
