"""The source of a recipe's training batches."""

from collections.abc import Iterable
from functools import lru_cache

import jax
from msgspec.structs import replace

from fluxforge._types import Precision
from fluxforge.data._ensemble import Ensemble, EnsembleSource, ensemble
from fluxforge.data._meshes import meshes
from fluxforge.data._model import model_of
from fluxforge.data._pairs import PairSource, two_cells
from fluxforge.data._problem import AbstractSource, FixedSource
from fluxforge.data._refined import refined_source
from fluxforge.errors import InputError
from fluxforge.gnn._build import hops_of
from fluxforge.recipe._recipe import FIELDS, Experiment, Meshes, Pairs, Recipe, Rows, Skew, TwoCells
from fluxforge.scheme._scheme import Hop

# Folded into the seed's key for data; networks fold in small numbers, so that both are independent.
_DATA = 2**30


def source(spec: Recipe, hops: Iterable[Hop] | None = None, *, dtype: Precision | None = None) -> AbstractSource:
    """The source of a recipe's training problems; reproducible from the seed in either of JAX's precision modes.

    Graphs have the given hops, by default those of the recipe's network. Raises InputError for data without meshes.
    """
    hops = hops_of(spec.network) if hops is None else hops
    dtype = spec.training.precision if dtype is None else dtype
    with jax.enable_x64(dtype == "float64"):
        return _source(spec, hops, dtype)


def _source(spec: Recipe, hops: Iterable[Hop], dtype: Precision) -> AbstractSource:
    match spec.data:
        case TwoCells():
            key = jax.random.fold_in(jax.random.key(spec.seed), _DATA)
            return FixedSource(two_cells(spec.data, key, model=model_of(spec), dtype=dtype))
        case Pairs():
            return PairSource(spec.data, model_of(spec), dtype)
        case Meshes(target="refined"):
            coarse = _ensemble(spec.data, spec.seed, tuple(hops), dtype)
            return refined_source(
                meshes(spec.data, spec.seed), coarse, spec.data, model_of(spec), seed=spec.seed, dtype=dtype
            )
        case Meshes():
            return EnsembleSource(_ensemble(spec.data, spec.seed, tuple(hops), dtype), spec.data, model_of(spec))
        case Experiment() | Skew():
            raise InputError(f"recipe {spec.name!r}: field 'data.kind': such data have fluxes, and no meshes to step")
        case Rows():
            raise InputError(
                f"recipe {spec.name!r}: field 'data.kind': rows train limiters, and have no meshes to step"
            )


def _ensemble(data: Meshes, seed: int, hops: tuple[Hop, ...], dtype: Precision) -> Ensemble:
    if data.files:
        return ensemble(meshes(data, seed), hops, dtype=dtype)
    # Fields that do not change the meshes get one value, so that recipes which differ in them share the cache.
    bare = replace(data, fields=FIELDS, fourier=(0.5, 0.5), law=None, noise=0.0, target="step")
    return _generate_ensemble(bare, seed, hops, dtype)


@lru_cache(maxsize=4)
def _generate_ensemble(data: Meshes, seed: int, hops: tuple[Hop, ...], dtype: Precision) -> Ensemble:
    """The ensemble of generated meshes; cached, since they take seconds and one run uses the same ones many times."""
    return ensemble(meshes(data, seed), hops, dtype=dtype)
