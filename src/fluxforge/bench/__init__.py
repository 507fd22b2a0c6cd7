"""Benchmarks, each against a peer in the same run."""

from fluxforge.bench._equations import GROUPS, Validation, bench_equations
from fluxforge.bench._fipy import HOW_TO_INSTALL
from fluxforge.bench._rows import SIZES, Row
from fluxforge.bench._step import bench_step
from fluxforge.bench._time import FOURIER, TimeBench, bench_time
from fluxforge.bench._time_case import MESHES
from fluxforge.bench._time_figure import work_precision_figure
from fluxforge.bench._train import bench_train

__all__ = [
    "FOURIER",
    "GROUPS",
    "HOW_TO_INSTALL",
    "MESHES",
    "SIZES",
    "Row",
    "TimeBench",
    "Validation",
    "bench_equations",
    "bench_step",
    "bench_time",
    "bench_train",
    "work_precision_figure",
]
