"""The engines by name."""

from collections.abc import Mapping

from fluxforge.distil._backend import AbstractBackend
from fluxforge.distil.operon import Operon
from fluxforge.distil.pysr import PySR
from fluxforge.errors import FluxforgeError, InputError

ENGINES: Mapping[str, AbstractBackend] = {backend.name: backend for backend in (Operon(), PySR())}


def engine(name: str) -> AbstractBackend:
    """The engine of that name, ready to use, or an error that lists them or says how to install it."""
    if name not in ENGINES:
        raise InputError(f"no engine of symbolic regression is called {name!r:.60}; known: {', '.join(ENGINES)}")
    if hint := ENGINES[name].available():
        raise FluxforgeError(hint)
    return ENGINES[name]
