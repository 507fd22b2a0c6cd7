"""`fluxforge bench equations`: schemes of every equation on problems with known solutions, and compared with FiPy."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

from fluxforge.bench._diffusion_problems import anisotropic, fisher_wave, heat_kernel, two_layers
from fluxforge.bench._fipy_problems import advection_diffusion, conduction, robin_wall
from fluxforge.bench._rows import SIZES, Row, Sizes, load_fipy
from fluxforge.bench._transport_problems import burgers, deformation, rotation
from fluxforge.errors import InputError


@dataclass(frozen=True)
class Group:
    """The problem of one table: its title, and the function that solves it and returns the rows."""

    title: str
    solve: Callable[[Sizes], list[Row]]


GROUPS: Mapping[str, Group] = MappingProxyType(
    {
        "varying-k": Group("conduction with k = 1 + x² + ½ sin 3y, compared with FiPy", conduction),
        "advection-diffusion": Group("a Gaussian, transported and diffused, compared with FiPy", advection_diffusion),
        "robin": Group("a Robin wall, compared with FiPy", robin_wall),
        "heat-kernel": Group("the heat kernel", heat_kernel),
        "two-layers": Group("a wall of two layers, k = 1 and 100: contact flux", two_layers),
        "anisotropic": Group("K = diag(1, 1000) turned by 40°: error, minimum and maximum", anisotropic),
        "fisher": Group("Fisher's wave: speed", fisher_wave),
        "rotation": Group("a cone and a slotted cylinder, turned once", rotation),
        "deformation": Group("LeVeque's deformational flow, after one period", deformation),
        "burgers": Group("Burgers' equation: speed of a shock, transonic fan", burgers),
    }
)


@dataclass(frozen=True)
class Validation:
    """The rows of each group that was solved; `fipy` is FiPy's version, None if it is not installed."""

    size: str
    fipy: str | None
    groups: Mapping[str, Sequence[Row]]

    def document(self) -> dict[str, Any]:
        """The JSON document: all rows in one list, each with the name of its group."""
        rows = [{"group": name, **asdict(row)} for name, rows in self.groups.items() for row in rows]
        return {"equations": {"size": self.size, "fipy": self.fipy, "rows": rows}}


def bench_equations(
    *, size: str = "default", only: Sequence[str] | None = None, progress: Callable[[str], None] | None = None
) -> Validation:
    """Solve the problems of GROUPS, or those named in `only`, with the sizes SIZES[size].

    The caller has to enable JAX's 64-bit mode. Raises InputError for an unknown name.
    """
    if size not in SIZES:
        raise InputError(f"size should be one of {', '.join(SIZES)}, got {size!r}")
    names = list(GROUPS) if only is None else list(only)
    if not names:
        raise InputError(f"only: no problem is given; choose from {', '.join(GROUPS)}")
    if unknown := [name for name in names if name not in GROUPS]:
        raise InputError(f"only: there is no problem {unknown[0]!r}; choose from {', '.join(GROUPS)}")
    groups = {}
    for name in names:
        if progress is not None:
            progress(name)
        groups[name] = GROUPS[name].solve(SIZES[size])
    fipy = load_fipy()
    return Validation(size, None if fipy is None else str(fipy.__version__), MappingProxyType(groups))
