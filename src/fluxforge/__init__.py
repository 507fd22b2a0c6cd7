"""Discover finite-volume schemes, distil them to formulas, certify them.

The names of the README: `ff.mesh`, `ff.scheme`, `ff.dual`, `ff.Dirichlet`, `ff.Neumann`, `ff.stepper`, `ff.simulate`,
`ff.compare`, `ff.verify`, `ff.discover`, `ff.equation`. Each is imported at first use, so that importing the package is
fast.
"""

import importlib
import sys
import types
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

__version__ = version("fluxforge")

if TYPE_CHECKING:
    from fluxforge import mesh, scheme
    from fluxforge.discover import discover
    from fluxforge.mesh import Dirichlet, Neumann, dual
    from fluxforge.pde import equation
    from fluxforge.simulate import compare, simulate, stepper
    from fluxforge.verify import verify

__all__ = [
    "Dirichlet",
    "Neumann",
    "__version__",
    "compare",
    "discover",
    "dual",
    "equation",
    "mesh",
    "scheme",
    "simulate",
    "stepper",
    "verify",
]

_HOME = {
    "Dirichlet": "mesh",
    "Neumann": "mesh",
    "compare": "simulate",
    "discover": "discover",
    "dual": "mesh",
    "equation": "pde",
    "simulate": "simulate",
    "stepper": "simulate",
    "verify": "verify",
}


class _Facade(types.ModuleType):
    """`ff.simulate`, `ff.verify` and `ff.discover` are functions, though subpackages bear the same names.

    The import system would set those attributes to the subpackages as soon as anything imports them; the facade
    keeps the functions, and `from fluxforge.simulate import …` works as ever.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOME and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        if name in _HOME:
            found = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
            super().__setattr__(name, found)
            return found
        if name in ("mesh", "scheme"):
            return importlib.import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


sys.modules[__name__].__class__ = _Facade
