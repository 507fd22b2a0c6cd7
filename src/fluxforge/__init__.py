"""Discover finite-volume schemes, distil them to formulas, certify them.

The names of the README: `ff.mesh`, `ff.scheme`, `ff.dual`, `ff.Dirichlet`, `ff.Neumann`, `ff.Robin`, `ff.Periodic`,
`ff.Inflow`, `ff.stepper`, `ff.simulate`, `ff.steady`, `ff.compare`, `ff.verify`, `ff.discover`, `ff.sweep`,
`ff.load_run`, `ff.equation`, `ff.mesh_arrays`. Each is imported at first use, so that importing the package is fast.
"""

import importlib
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

__version__ = version("fluxforge")

if TYPE_CHECKING:
    from fluxforge import mesh, scheme
    from fluxforge.certify._verify import verify
    from fluxforge.mesh._boundary import Dirichlet, Inflow, Neumann, Periodic, Robin
    from fluxforge.mesh._build import dual
    from fluxforge.pde import equation
    from fluxforge.pipeline._discover import discover
    from fluxforge.pipeline._run import load_run
    from fluxforge.scheme.emit._mesh_arrays import mesh_arrays
    from fluxforge.stepping._build import stepper
    from fluxforge.stepping._run import compare, simulate
    from fluxforge.stepping._steady import steady
    from fluxforge.sweeps._sweep import sweep

__all__ = [
    "Dirichlet",
    "Inflow",
    "Neumann",
    "Periodic",
    "Robin",
    "__version__",
    "compare",
    "discover",
    "dual",
    "equation",
    "load_run",
    "mesh",
    "mesh_arrays",
    "scheme",
    "simulate",
    "steady",
    "stepper",
    "sweep",
    "verify",
]

_HOME = {
    "Dirichlet": "mesh",
    "Inflow": "mesh",
    "Neumann": "mesh",
    "Periodic": "mesh",
    "Robin": "mesh",
    "compare": "stepping",
    "discover": "pipeline",
    "dual": "mesh",
    "equation": "pde",
    "load_run": "pipeline",
    "mesh_arrays": "scheme.emit",
    "simulate": "stepping",
    "steady": "stepping",
    "stepper": "stepping",
    "sweep": "sweeps",
    "verify": "certify",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    if name in ("mesh", "scheme"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - {"Any", "TYPE_CHECKING", "importlib", "version"})
