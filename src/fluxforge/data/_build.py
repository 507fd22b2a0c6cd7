"""A recipe's data section → a source of batches."""

from collections.abc import Iterable
from functools import lru_cache

import jax
from msgspec.structs import replace

from fluxforge import recipe
from fluxforge._types import Precision
from fluxforge.data._ensemble import Ensemble, EnsembleSource, ensemble
from fluxforge.data._meshes import meshes
from fluxforge.data._model import model_of
from fluxforge.data._source import AbstractSource, FixedSource, PairSource
from fluxforge.data._two_cells import two_cells
from fluxforge.scheme import Hop

# Keeps the data's randomness apart from the networks', which fold in small numbers.
_DATA = 2**30


def hops_of(spec: recipe.Network) -> tuple[Hop, ...]:
    """The hops a network's messages come from."""
    return (Hop.EDGE, Hop(spec.two_hop)) if spec.hops == 2 else (Hop.EDGE,)


def source(spec: recipe.Recipe, hops: Iterable[Hop] | None = None, *, dtype: Precision | None = None) -> AbstractSource:
    """The problems a recipe trains on; the same seed gives the same ones, whatever JAX's mode.

    Graphs know the hops that the recipe's network asks for, unless others are given.
    """
    hops = hops_of(spec.network) if hops is None else hops
    dtype = spec.training.precision if dtype is None else dtype
    with jax.enable_x64(dtype == "float64"):
        return _source(spec, hops, dtype)


def _source(spec: recipe.Recipe, hops: Iterable[Hop], dtype: Precision) -> AbstractSource:
    match spec.data:
        case recipe.TwoCells():
            key = jax.random.fold_in(jax.random.key(spec.seed), _DATA)
            return FixedSource(two_cells(spec.data, key, model=model_of(spec), dtype=dtype))
        case recipe.Pairs():
            return PairSource(spec.data, model_of(spec), dtype)
        case recipe.Meshes():
            return EnsembleSource(_ensemble(spec.data, spec.seed, tuple(hops), dtype), spec.data, model_of(spec))


def _ensemble(data: recipe.Meshes, seed: int, hops: tuple[Hop, ...], dtype: Precision) -> Ensemble:
    if data.files:
        return ensemble(meshes(data, seed), hops, dtype=dtype)
    # What is put on a mesh does not change it.
    bare = replace(data, fields=recipe.FIELDS, fourier=(0.5, 0.5), law=None, noise=0.0)
    return _generated(bare, seed, hops, dtype)


@lru_cache(maxsize=4)
def _generated(data: recipe.Meshes, seed: int, hops: tuple[Hop, ...], dtype: Precision) -> Ensemble:
    """Meshes take seconds to make, and one run asks for the same ones many times: other steps, other fields."""
    return ensemble(meshes(data, seed), hops, dtype=dtype)
