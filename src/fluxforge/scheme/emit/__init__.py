"""Code for a scheme: LaTeX, NumPy, JAX, C. One target per file, one signature for all."""

from collections.abc import Callable, Mapping

from fluxforge.errors import InputError
from fluxforge.scheme._scheme import Scheme, check_scheme
from fluxforge.scheme.emit._c import emit_c
from fluxforge.scheme.emit._latex import emit_latex, formula_latex
from fluxforge.scheme.emit._mesh_arrays import emit_c_mesh, example_arrays, mesh_arrays, python_main
from fluxforge.scheme.emit._python import emit_jax, emit_numpy

__all__ = [
    "TARGETS",
    "emit",
    "emit_c_mesh",
    "example_arrays",
    "formula_latex",
    "mesh_arrays",
    "python_main",
]

_EMITTERS: Mapping[str, Callable[[Scheme], str]] = {
    "latex": emit_latex,
    "numpy": emit_numpy,
    "jax": emit_jax,
    "c": emit_c,
}
TARGETS = tuple(_EMITTERS)


def emit(scheme: Scheme, target: str) -> str:
    """The scheme as text in one of `TARGETS`: deterministic, and code that does not import fluxforge."""
    check_scheme(scheme)
    if not isinstance(target, str) or target not in _EMITTERS:
        raise InputError(f"no target {target!r:.60} to export to; known: {', '.join(TARGETS)}")
    return _EMITTERS[target](scheme)
