"""Training: scanned steps, many seeds at once, runs that do not lose work."""

from fluxforge.train._chunk import chunk_function
from fluxforge.train._least_squares import levenberg_marquardt
from fluxforge.train._optimiser import optimiser
from fluxforge.train._polish import polish
from fluxforge.train._state import State, begin
from fluxforge.train._train import Tell, Trained, train
from fluxforge.train.sparsify import Reduced, merged, sparsify

__all__ = [
    "Reduced",
    "State",
    "Tell",
    "Trained",
    "begin",
    "chunk_function",
    "levenberg_marquardt",
    "merged",
    "optimiser",
    "polish",
    "sparsify",
    "train",
]
