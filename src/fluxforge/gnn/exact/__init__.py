"""Networks with weights written by hand: what the paper's lemma builds, and what its theorems overlook."""

from fluxforge.gnn.exact._branches import late_network, one_sided_network
from fluxforge.gnn.exact._count import nonzeros
from fluxforge.gnn.exact._counterexamples import (
    biased_count,
    biased_network,
    memorising_count,
    memorising_network,
    needed_bound,
)
from fluxforge.gnn.exact._lemma import sparse_count, sparse_network
from fluxforge.gnn.exact._linear import LinearWeights, linear_network, linear_weights

__all__ = [
    "LinearWeights",
    "biased_count",
    "biased_network",
    "late_network",
    "linear_network",
    "linear_weights",
    "memorising_count",
    "memorising_network",
    "needed_bound",
    "nonzeros",
    "one_sided_network",
    "sparse_count",
    "sparse_network",
]
