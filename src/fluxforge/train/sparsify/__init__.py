"""From a trained ReLU network to a canonical sparse one."""

from fluxforge.train.sparsify._merge import merged
from fluxforge.train.sparsify._sparsify import Reduced, sparsify

__all__ = ["Reduced", "merged", "sparsify"]
