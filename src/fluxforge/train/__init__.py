"""Training: chunks of optimiser steps over many seeds at once, checkpoints, polish, reduction to sparse networks."""

from fluxforge.train._merge import merge_units
from fluxforge.train._optimise import levenberg_marquardt, optimiser, polish
from fluxforge.train._small import Layers, OptimizerState, apply_layers, descend, name_layers, read_layers
from fluxforge.train._sparsify import Reduced, sparsify
from fluxforge.train._step import State, begin, chunk_function
from fluxforge.train._train import Tell, Trained, train

__all__ = [
    "Layers",
    "OptimizerState",
    "Reduced",
    "State",
    "Tell",
    "Trained",
    "apply_layers",
    "begin",
    "chunk_function",
    "descend",
    "levenberg_marquardt",
    "merge_units",
    "name_layers",
    "optimiser",
    "polish",
    "read_layers",
    "sparsify",
    "train",
]
