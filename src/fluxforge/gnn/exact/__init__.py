"""Networks with hand-written weights: the construction of the paper's lemma, and counterexamples to its theorems."""

from fluxforge.gnn.exact._networks import (
    LinearWeights,
    biased_network,
    late_network,
    linear_network,
    linear_weights,
    memorising_network,
    needed_bound,
    one_sided_network,
    sparse_count,
    sparse_network,
)
from fluxforge.gnn.exact._parts import nonzeros

__all__ = [
    "LinearWeights",
    "biased_network",
    "late_network",
    "linear_network",
    "linear_weights",
    "memorising_network",
    "needed_bound",
    "nonzeros",
    "one_sided_network",
    "sparse_count",
    "sparse_network",
]
