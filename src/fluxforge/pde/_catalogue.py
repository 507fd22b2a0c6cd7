"""The built-in equations, one value each."""

import sympy as sp

from fluxforge.expression._symbols import symbol
from fluxforge.pde._equation import Equation
from fluxforge.pde._parameter import NUMBER, Parameter, Rank, Where, unit

_DIFFUSIVITY = unit(length=2, time=-1)
_SPEED = unit(length=1, time=-1)
_u = symbol("u")

HEAT = Equation(
    name="heat",
    unknown="T",
    summary="conduction of heat with one diffusivity",
    parameters=(Parameter("alpha", meaning="diffusivity", unit=_DIFFUSIVITY, default=1.0),),
    diffusion=symbol("alpha"),
)

CONDUCTION = Equation(
    name="conduction",
    unknown="T",
    summary="conduction of heat; capacity and conductivity may vary from cell to cell, and jump",
    parameters=(
        Parameter("rhoc", meaning="volumetric heat capacity", where=Where.CELL, unit=NUMBER, default=1.0),
        Parameter("k", meaning="conductivity", where=Where.CELL, unit=_DIFFUSIVITY, default=1.0),
    ),
    capacity=symbol("rhoc"),
    diffusion=symbol("k"),
)

ANISOTROPIC = Equation(
    name="anisotropic",
    unknown="T",
    summary="conduction of heat with a conductivity tensor that may vary from cell to cell",
    parameters=(Parameter("K", meaning="conductivity tensor", rank=Rank.TENSOR, where=Where.CELL, unit=_DIFFUSIVITY),),
    diffusion=symbol("K"),
)


def _velocity(name: str = "velocity", meaning: str = "velocity", default: tuple[float, ...] | None = None) -> Parameter:
    return Parameter(name, meaning=meaning, rank=Rank.VECTOR, where=Where.FACE, unit=_SPEED, default=default)


ADVECTION = Equation(
    name="advection",
    summary="transport by a given velocity",
    parameters=(_velocity(),),
    transported=_u,
    velocity="velocity",
)

ADVECTION_DIFFUSION = Equation(
    name="advection-diffusion",
    summary="transport by a given velocity, and diffusion",
    parameters=(
        _velocity(),
        Parameter("D", meaning="diffusivity", where=Where.CELL, unit=_DIFFUSIVITY, default=1.0),
    ),
    transported=_u,
    velocity="velocity",
    diffusion=symbol("D"),
)

BURGERS = Equation(
    name="burgers",
    summary="the inviscid equation of Burgers along a direction",
    parameters=(_velocity("direction", "direction and unit of speed", (1.0, 0.0)),),
    transported=_u**2 / 2,
    velocity="direction",
    unknown_unit=NUMBER,
)

TRAFFIC = Equation(
    name="traffic",
    summary="density of traffic, from 0 to 1, on a road along a direction",
    parameters=(_velocity("direction", "direction, and speed on an empty road", (1.0, 0.0)),),
    transported=sp.Mul(_u, 1 - _u),
    velocity="direction",
    unknown_unit=NUMBER,
)

REACTION_DIFFUSION = Equation(
    name="reaction-diffusion",
    summary="diffusion and growth to 1, the equation of Fisher, Kolmogorov, Petrovsky and Piskunov",
    parameters=(
        Parameter("D", meaning="diffusivity", where=Where.CELL, unit=_DIFFUSIVITY, default=1.0),
        Parameter("r", meaning="rate of growth", unit=unit(time=-1), default=1.0),
    ),
    diffusion=symbol("D"),
    reaction=symbol("r") * _u * (1 - _u),
    unknown_unit=NUMBER,
)

ALLEN_CAHN = Equation(
    name="allen-cahn",
    summary="diffusion and separation into the phases -1 and 1, the equation of Allen and Cahn",
    parameters=(
        Parameter("D", meaning="diffusivity", where=Where.CELL, unit=_DIFFUSIVITY, default=1.0),
        Parameter("r", meaning="rate of separation", unit=unit(time=-1), default=1.0),
    ),
    diffusion=symbol("D"),
    reaction=symbol("r") * (_u - _u**3),
    unknown_unit=NUMBER,
)

BUILT_IN: dict[str, Equation] = {
    equation.name: equation
    for equation in (
        HEAT,
        CONDUCTION,
        ANISOTROPIC,
        ADVECTION,
        ADVECTION_DIFFUSION,
        BURGERS,
        TRAFFIC,
        REACTION_DIFFUSION,
        ALLEN_CAHN,
    )
}
