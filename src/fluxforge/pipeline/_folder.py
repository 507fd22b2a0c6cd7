"""The folder a discovery lives in: new, or gone on with."""

import math
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax

from fluxforge import recipe
from fluxforge.errors import InputError
from fluxforge.run import RunFolder

Warn = Callable[[str], None]
LIBRARIES = ("fluxforge", "jax", "equinox", "optax", "numpy", "scipy", "sympy", "gmsh", "pyoperon")


@contextmanager
def run_folder(path: Path, spec: recipe.Recipe, *, warn: Warn) -> Iterator[RunFolder]:
    """A folder for this recipe: made if it holds no run, gone on with if it holds a run of the same recipe."""
    if not (path / "run.json").exists():
        with RunFolder.create(path, description=description(spec), warn=warn) as folder:
            yield folder
        return
    with RunFolder.open(path, warn=warn) as folder:
        if recipe.fingerprint(recipe_of(folder)) != recipe.fingerprint(spec):
            raise InputError(f"{path}: holds a run of another recipe: give another -o")
        yield folder


def recipe_of(folder: RunFolder) -> recipe.Recipe:
    """The recipe a run was begun with."""
    return recipe.from_dict(folder.description.get("recipe"), f"{folder.path / 'run.json'}")


def description(spec: recipe.Recipe) -> dict[str, Any]:
    """What a run is, for whoever finds its folder."""
    return {"recipe": recipe.to_dict(spec), "environment": environment()}


def environment() -> dict[str, Any]:
    """Versions and hardware that a result depends on."""
    found: dict[str, Any] = {"python": platform.python_version(), "platform": platform.machine()}
    for name in LIBRARIES:
        found[name] = version(name)
    device = jax.devices()[0]
    return found | {"device": device.device_kind if device.platform != "cpu" else "cpu", "system": sys.platform}


def finite(value: Any) -> Any:
    """A document that JSON can hold: numbers that are not finite, of a run that blew up for instance, are null."""
    if isinstance(value, Mapping):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
