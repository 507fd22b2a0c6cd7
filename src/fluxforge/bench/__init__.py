"""Benchmarks, each against a peer in the same run."""

from fluxforge.bench._step import bench_step

__all__ = ["bench_step"]
