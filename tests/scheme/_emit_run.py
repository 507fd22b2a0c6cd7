"""Runs emitted source: Python in a fresh namespace, C through the system's compiler and ctypes."""

import ctypes
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from _emit_meshes import FIELDS

from fluxforge.scheme import Scheme
from fluxforge.scheme.emit import emit

STRICT = ("-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic")


def python(source: str) -> dict[str, Any]:
    """The names an emitted Python module defines."""
    space: dict[str, Any] = {"__name__": "emitted"}
    exec(compile(source, "<emitted>", "exec"), space)
    return space


def arrays(space: dict[str, Any], table: dict[str, np.ndarray], dtype: str = "float64") -> Any:
    """The emitted module's own Mesh, on its own kind of arrays."""
    xp = jnp if "jnp" in space else np
    kinds = {name: dtype if value.dtype.kind == "f" else value.dtype for name, value in table.items()}
    return space["Mesh"](**{name: xp.asarray(value, kinds[name]) for name, value in table.items()})


class CMesh(ctypes.Structure):
    """fluxforge_mesh."""

    _fields_ = (
        *((name, ctypes.c_size_t) for name in ("cells", "slots", "ghosts")),
        *((name, ctypes.c_void_p) for name in FIELDS),
    )


class CLibrary:
    """Emitted C of several schemes in one shared library, compiled with every warning an error."""

    def __init__(self, schemes: Iterable[Scheme], folder: Path) -> None:
        source, library = folder / "schemes.c", folder / "schemes.so"
        source.write_text("\n".join(emit(scheme, "c") for scheme in schemes), encoding="utf-8")
        command = [shutil.which("cc"), *STRICT, "-shared", "-fPIC", str(source), "-o", str(library), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        self._library = ctypes.CDLL(str(library))

    def step(
        self,
        name: str,
        T: np.ndarray,
        S: np.ndarray,
        table: dict[str, np.ndarray],
        dt: float,
        parameters: float | Sequence[float | np.ndarray],
        cells: int | None = None,
    ) -> tuple[int, np.ndarray]:
        """The status and the new field."""
        kinds = {"b": np.uint8, "i": np.int32, "f": np.float64}
        kept = {k: np.ascontiguousarray(v, kinds[v.dtype.kind]) for k, v in table.items()}
        pointers = {k: v.ctypes.data for k, v in kept.items()}
        size = len(T) if cells is None else cells
        mesh = CMesh(cells=size, slots=kept["node"].shape[1], ghosts=len(kept["ghost_value"]), **pointers)
        out = np.full(len(T), np.nan)
        function = getattr(self._library, f"{name.replace('-', '_')}_step")
        given = [parameters] if isinstance(parameters, float) else list(parameters)
        arrays = [np.ascontiguousarray(a, float) if isinstance(a, np.ndarray) else a for a in given]
        kind = [ctypes.c_void_p if isinstance(a, np.ndarray) else ctypes.c_double for a in arrays]
        function.argtypes = [ctypes.c_void_p, ctypes.c_double, *kind, *[ctypes.c_void_p] * 3]
        values = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in arrays]
        fields = (np.array(T), np.array(S), out)
        status = function(ctypes.byref(mesh), dt, *values, *(a.ctypes.data for a in fields))
        return status, out


def relative(values: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.abs(np.asarray(values) - np.asarray(wanted)).max() / np.abs(np.asarray(wanted)).max())


def same_with_nan(values: np.ndarray, wanted: np.ndarray) -> bool:
    size = np.nanmax(np.abs(wanted))
    return bool(np.isclose(np.asarray(values), wanted, rtol=1e-13, atol=1e-14 * size, equal_nan=True).all())
