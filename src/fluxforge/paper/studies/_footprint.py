"""The memory of one stepper on one mesh, read from the operating system by a process that holds nothing else."""

import ctypes
import gc
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fluxforge.mesh import fourier_step
from fluxforge.paper.studies._cases import graph_of, step_of
from fluxforge.scheme.reference import BUILT_IN

STEPS = 3


def footprint(words: Mapping[str, Any]) -> dict[str, Any]:
    """`start`: before there is a stepper; `whole`: the peak while it is made and steps; `stepping`: while it steps.

    Without a scheme the process makes the mesh and its graph, has JAX compute something, and stops there: what it
    holds is subtracted from the others.
    """
    graph = graph_of(words["cells"], words["seed"])
    T = np.random.default_rng(0).standard_normal(graph.cells)
    jax.block_until_ready(jax.jit(lambda x: 2.0 * x)(jnp.asarray(T)))
    exact = forget_peak()
    start = peak()
    if words["scheme"] is None:
        return {"cells": graph.cells, "start": start, "whole": peak(), "stepping": peak(), "forgets": exact}
    dt = words["fourier"] * fourier_step(graph)
    step = step_of(
        BUILT_IN[words["scheme"]], graph, dt, source=np.ones(graph.cells), solver=words.get("solver", "auto")
    )
    # Compiled before it is watched: a compiler's memory is no scheme's.
    after = jax.block_until_ready(step.repeat(step.enter(T), 1))
    whole = peak()
    forget_peak()
    jax.block_until_ready(step.repeat(after, STEPS))
    return {"cells": graph.cells, "start": start, "whole": whole, "stepping": peak(), "forgets": exact}


def peak() -> int:
    """The most memory the process has had, in bytes.

    From Linux's own mark where there is one: ru_maxrss begins with the memory of the process that started this one.
    """
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("VmHWM:")).split()[1])
    import resource  # not on every system, and only a measurement needs it

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


def forget_peak() -> bool:
    """Give freed memory back and start the high-water mark anew; whether the system can, as Linux does."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True
