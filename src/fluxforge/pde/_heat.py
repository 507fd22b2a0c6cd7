"""∂T/∂t = ∇·(α ∇T) + S: the heat equation."""

from fluxforge.expression import symbol
from fluxforge.pde._equation import Equation
from fluxforge.pde._parameter import Parameter
from fluxforge.pde._units import unit

HEAT = Equation(
    name="heat",
    unknown="T",
    summary="conduction of heat with one diffusivity",
    parameters=(Parameter("alpha", meaning="diffusivity", unit=unit(length=2, time=-1), default=1.0),),
    diffusion=symbol("alpha"),
)
