"""Benchmarks, each against a peer in the same run."""

from fluxforge.bench._step import bench_step
from fluxforge.bench._train import bench_train

__all__ = ["bench_step", "bench_train"]
