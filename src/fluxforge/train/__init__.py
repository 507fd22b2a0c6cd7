"""Training: chunks of optimiser steps over many seeds at once, checkpoints, polish, reduction to sparse networks."""

from fluxforge.train._merge import merge_units
from fluxforge.train._optimise import levenberg_marquardt, optimiser, polish
from fluxforge.train._sparsify import Reduced, sparsify
from fluxforge.train._step import State, begin, chunk_function
from fluxforge.train._train import Tell, Trained, train

__all__ = [
    "Reduced",
    "State",
    "Tell",
    "Trained",
    "begin",
    "chunk_function",
    "levenberg_marquardt",
    "merge_units",
    "optimiser",
    "polish",
    "sparsify",
    "train",
]
