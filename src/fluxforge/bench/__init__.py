"""Benchmarks, each with a peer that is measured in the same run."""

from fluxforge.bench._equations import GROUPS, Validation, bench_equations
from fluxforge.bench._limiter import LimiterBench, bench_limiter
from fluxforge.bench._limiter_figure import triangle_figure
from fluxforge.bench._limiter_triangles import TriangleBench, TriangleRow
from fluxforge.bench._rows import HOW_TO_INSTALL, SIZES, Row
from fluxforge.bench._skew import SkewBench, bench_skew
from fluxforge.bench._skew_conductivity import ConductivityRow
from fluxforge.bench._step import StepBench, bench_step
from fluxforge.bench._time import FOURIER, TimeBench, bench_time
from fluxforge.bench._time_case import MESHES
from fluxforge.bench._time_rows import work_precision_figure
from fluxforge.bench._train import TrainBench, bench_train

__all__ = [
    "FOURIER",
    "GROUPS",
    "HOW_TO_INSTALL",
    "MESHES",
    "SIZES",
    "ConductivityRow",
    "LimiterBench",
    "Row",
    "SkewBench",
    "StepBench",
    "TimeBench",
    "TrainBench",
    "TriangleBench",
    "TriangleRow",
    "Validation",
    "bench_equations",
    "bench_limiter",
    "bench_skew",
    "bench_step",
    "bench_time",
    "bench_train",
    "triangle_figure",
    "work_precision_figure",
]
