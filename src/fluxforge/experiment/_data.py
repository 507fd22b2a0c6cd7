"""Measured fluxes of random experiments, kept in a cache under the hash of what decides them."""

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save_file

from fluxforge import recipe
from fluxforge._files import atomic_path, open_regular
from fluxforge.data._meshes import cache_folder
from fluxforge.errors import InputError, StorageError
from fluxforge.experiment._riemann import riemann_flux
from fluxforge.experiment._setup import Experiment, Samples, design_experiment, parse_flux
from fluxforge.experiment._steady import Measured, steady_flux
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import symbol
from fluxforge.pde._document import to_document

# Raised when the same words would give other fluxes.
VERSION = 1
# One in so many samples is held out of training and of fits.
HELD = 5


@dataclass(frozen=True, eq=False)
class Dataset:
    """Random experiments with their fluxes and the estimated error of each; the last fifth is held out."""

    experiment: Experiment
    samples: Samples
    flux: Float[np.ndarray, " samples"]
    error: Float[np.ndarray, " samples"]

    def __len__(self) -> int:
        return len(self.flux)

    @property
    def size(self) -> float:
        """The root mean square of the fluxes."""
        return float(np.sqrt(np.mean(self.flux**2)))

    @property
    def relative_error(self) -> float:
        """The root mean square of the errors over that of the fluxes."""
        return float(np.sqrt(np.mean(self.error**2))) / self.size

    def part(self, rows: slice) -> "Dataset":
        """Some of the experiments."""
        samples = {name: values[rows] for name, values in self.samples.items()}
        return Dataset(self.experiment, samples, self.flux[rows], self.error[rows])

    @property
    def fitted(self) -> "Dataset":
        """What networks and constants are fitted to."""
        return self.part(slice(0, len(self) - len(self) // HELD))

    @property
    def held_out(self) -> "Dataset":
        """What they are judged by."""
        return self.part(slice(len(self) - len(self) // HELD, len(self)))


def make_dataset(spec: recipe.Recipe) -> Dataset:
    """The experiments of a recipe, from the cache if they were measured before.

    With `data.law` the flux is that formula, exact but for round-off. Raises InputError for a flux that is not finite.
    """
    experiment, data = design_experiment(spec), spec.data
    assert isinstance(data, recipe.Experiment)
    rng = np.random.default_rng([spec.seed, VERSION])
    samples = experiment.draw(data.samples, rng)
    found = _measure_law(data.law, experiment, samples) if data.law else _measure_cached(experiment, samples, data)
    if not (np.isfinite(found.flux).all() and np.isfinite(found.error).all()):
        raise InputError(f"recipe {spec.name!r}: field 'data': the flux is not finite in the ranges asked for")
    flux, error = found
    if data.noise:
        spread = data.noise * float(np.sqrt(np.mean(flux**2)))
        flux = flux + spread * rng.standard_normal(len(flux))
        error = np.hypot(error, spread)
    return Dataset(experiment, samples, flux, error)


def _measure_law(law: str, experiment: Experiment, samples: Samples) -> Measured:
    values = {symbol(name): value for name, value in samples.items()}
    with np.errstate(all="ignore"):
        flux = np.asarray(evaluate(parse_flux(law, experiment), values, np), float)
    flux = np.broadcast_to(flux, len(next(iter(samples.values()))))
    return Measured(flux, 1e-14 * np.abs(flux))


def _measure_cached(experiment: Experiment, samples: Samples, data: recipe.Experiment) -> Measured:
    words = json.dumps([VERSION, to_document(experiment.equation), data.tolerance], sort_keys=True)
    key = hashlib.sha256(words.encode())
    for name in experiment.names:
        key.update(name.encode() + np.ascontiguousarray(samples[name]).tobytes())
    place = cache_folder() / f"experiment-{key.hexdigest()[:24]}.safetensors"
    if (found := _load(place)) is not None:
        return found
    measure = steady_flux if experiment.steady else riemann_flux
    found = measure(experiment, samples, data.tolerance)
    # A cache that cannot be written costs time, not results.
    with suppress(InputError, StorageError, SafetensorError):
        arrays = {name: np.ascontiguousarray(each) for name, each in found._asdict().items()}
        with atomic_path(place) as temporary:
            save_file(arrays, temporary, metadata={"digest": _digest(arrays)})
    return found


def _load(place: Path) -> Measured | None:
    """The measurements of a cache file, or None if it is absent or not as it was written."""
    try:
        open_regular(place).close()
        with safe_open(place, framework="np") as held:
            metadata = held.metadata() or {}
        arrays = load_file(place)
    except (OSError, SafetensorError):
        return None
    if set(arrays) != set(Measured._fields) or metadata.get("digest") != _digest(arrays):
        return None
    return Measured(**arrays)


def _digest(arrays: dict[str, np.ndarray]) -> str:
    total = hashlib.sha256()
    for name in sorted(arrays):
        total.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode() + arrays[name].tobytes())
    return total.hexdigest()
