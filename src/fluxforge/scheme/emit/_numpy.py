"""A scheme as a NumPy module."""

from fluxforge.scheme._scheme import Scheme
from fluxforge.scheme.emit._python import Flavour, python_module
from fluxforge.scheme.emit._python_text import CG_NUMPY

_NUMPY = Flavour(
    np="np",
    array="np.ndarray",
    imports="from typing import NamedTuple\n\nimport numpy as np",
    note="The precision, double or single, is that of the arrays.",
    decorator='@np.errstate(divide="ignore", invalid="ignore")  # in unused slots, which are not summed\n',
    entry=(),
    solver=CG_NUMPY,
)


def emit_numpy(scheme: Scheme) -> str:
    """Python source with `step(T, S, mesh, dt, …)` on NumPy arrays."""
    return python_module(scheme, _NUMPY)
