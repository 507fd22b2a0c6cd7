"""Benchmarks, each against a peer in the same run."""

from fluxforge.bench._equations import GROUPS, Validation, bench_equations
from fluxforge.bench._fipy import HOW_TO_INSTALL
from fluxforge.bench._rows import SIZES, Row
from fluxforge.bench._skew import SkewBench, bench_skew
from fluxforge.bench._step import bench_step
from fluxforge.bench._train import bench_train

__all__ = [
    "GROUPS",
    "HOW_TO_INSTALL",
    "SIZES",
    "Row",
    "SkewBench",
    "Validation",
    "bench_equations",
    "bench_skew",
    "bench_step",
    "bench_train",
]
