"""The meshes of an ensemble: read from files, or generated and cached under the hash of their arguments."""

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save_file

from fluxforge import recipe
from fluxforge._files import atomic_path, open_regular, parse_json
from fluxforge.errors import InputError, StorageError
from fluxforge.mesh._generate import generate
from fluxforge.mesh._generate_gmsh import gmsh_problem
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._read import read
from fluxforge.run._durable import remove_strays

# Part of the cache's key; incremented whenever the same arguments give other meshes.
VERSION = 2
# Temporary files of killed processes are removed from the cache after this time; a mesh is written within seconds.
AN_HOUR = 3600.0


def meshes(spec: recipe.Meshes, seed: int) -> list[Mesh]:
    """The files a recipe names, or meshes of the unit square: kinds in turn, sizes uniform in the range."""
    if spec.files is not None:
        return [read(path) for path in spec.files]
    rng = np.random.default_rng([seed, VERSION])
    counts = rng.integers(spec.cells[0], spec.cells[1] + 1, spec.meshes)
    seeds = rng.integers(0, 2**31, spec.meshes)
    engine = _engine(spec.engine)
    plan = [
        {"kind": spec.kinds[k % len(spec.kinds)], "cells": int(counts[k]), "seed": int(seeds[k]), "engine": engine}
        for k in range(spec.meshes)
    ]
    return generate_meshes(plan)


def generate_meshes(plan: list[dict[str, str | int]]) -> list[Mesh]:
    """One mesh per set of arguments of `generate`, from the cache if its file is complete."""
    words = json.dumps([VERSION, plan], sort_keys=True)
    place = cache_folder() / f"meshes-{hashlib.sha256(words.encode()).hexdigest()[:24]}.safetensors"
    if (found := _load(place)) is not None:
        return found
    made = [generate(**arguments) for arguments in plan]  # type: ignore[arg-type]
    # If the cache cannot be written, the results are the same, and computed again next time.
    with suppress(InputError, StorageError, SafetensorError):
        _save(place, made)
        remove_strays(place.parent, seconds=AN_HOUR)
    return made


def cache_folder() -> Path:
    """`$FLUXFORGE_CACHE`, or `fluxforge` in the user's cache folder."""
    if given := os.environ.get("FLUXFORGE_CACHE"):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fluxforge"


def _engine(wanted: str) -> str:
    """The engine that will be used, so that meshes cached without gmsh are not used in place of meshes of gmsh."""
    return ("builtin" if gmsh_problem() else "gmsh") if wanted == "auto" else wanted


def _save(place: Path, made: list[Mesh]) -> None:
    arrays: dict[str, np.ndarray] = {}
    for k, mesh in enumerate(made):
        arrays |= {f"{k}/points": mesh.points, f"{k}/cells": mesh.cells}
        arrays |= {f"{k}/boundary/{tag}": np.asarray(edges) for tag, edges in mesh.boundary.items()}
    content = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    # Names of tags in their order: safetensors sorts its arrays.
    words = json.dumps([[mesh.origin, list(mesh.notes), list(mesh.boundary)] for mesh in made])
    with atomic_path(place) as temporary:
        save_file(content, temporary, metadata={"words": words, "digest": _digest(content, words)})


def _load(place: Path) -> list[Mesh] | None:
    """The meshes of a cache file, or None if it is absent or not as it was written."""
    try:
        # Refuses a named pipe, on which safetensors would block.
        open_regular(place).close()
        with safe_open(place, framework="np") as held:
            metadata = held.metadata() or {}
        arrays = load_file(place)
    except (OSError, SafetensorError):
        return None
    words = metadata.get("words", "")
    if metadata.get("digest") != _digest(arrays, words):
        return None
    found = []
    for k, (origin, notes, tags) in enumerate(parse_json(words)):
        boundary = {tag: arrays[f"{k}/boundary/{tag}"] for tag in tags}
        found.append(Mesh(arrays[f"{k}/points"], arrays[f"{k}/cells"], boundary, tuple(notes), origin))
    return found


def _digest(arrays: dict[str, np.ndarray], words: str) -> str:
    total = hashlib.sha256(words.encode())
    for name in sorted(arrays):
        total.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        total.update(arrays[name].tobytes())
    return total.hexdigest()
