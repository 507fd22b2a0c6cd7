"""Discretisations of transport in space, by name: two-point fluxes, limited slopes on lines of cells and in any cells.

Diffusion, reaction and capacity are as in the equation's two-point flux. All of them are conservative.
"""

from functools import partial

from fluxforge.errors import SchemeError
from fluxforge.expression._symbols import symbol
from fluxforge.pde._equation import BUILT_IN, Equation
from fluxforge.scheme._bounded import bounded
from fluxforge.scheme._integrate import Prepared, Space, State
from fluxforge.scheme._scheme import Message
from fluxforge.scheme._slopes import barth_jespersen, venkatakrishnan
from fluxforge.scheme.fluxes import FLUXES, NumericalFlux
from fluxforge.scheme.limiters import LIMITERS, limited


def _prepare(flux: NumericalFlux, equation: Equation, state: State, tag: str) -> Prepared:
    if tag and flux.one_step:
        raise SchemeError(f"flux {flux.name!r} contains the time step: take forward Euler")
    return Prepared((), Message(-symbol("A") * flux.of(equation, state.at("_P"), state.at("_N"), state.jump)))


def two_point_space(flux: NumericalFlux) -> Space:
    """The discretisation in space of a two-point flux."""
    default = BUILT_IN["advection-diffusion" if flux.diffuses else "advection"]
    return Space(flux.name, flux.summary, partial(_prepare, flux), refuse=flux.refuse, default=default)


TRANSPORT: tuple[Space, ...] = (
    *map(two_point_space, FLUXES.values()),
    *map(limited, LIMITERS.values()),
    *(bounded(limiter)(2) for limiter in LIMITERS.values()),
    barth_jespersen(2),
    venkatakrishnan(2),
)
"""All of them, those in cells of any shape for the plane (`Space.at` gives them in space)."""
