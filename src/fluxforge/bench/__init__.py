"""Benchmarks, each against a peer in the same run."""

from fluxforge.bench._equations import GROUPS, Validation, bench_equations
from fluxforge.bench._fipy import HOW_TO_INSTALL
from fluxforge.bench._limiter import LimiterBench, bench_limiter
from fluxforge.bench._rows import SIZES, Row
from fluxforge.bench._step import bench_step
from fluxforge.bench._train import bench_train

__all__ = [
    "GROUPS",
    "HOW_TO_INSTALL",
    "SIZES",
    "LimiterBench",
    "Row",
    "Validation",
    "bench_equations",
    "bench_limiter",
    "bench_step",
    "bench_train",
]
