"""Which walls an equation takes, and which it has on tags that are not named."""

from fluxforge.errors import InputError
from fluxforge.mesh._boundary import (
    HELD,
    Condition,
    Conditions,
    Dirichlet,
    Inflow,
    Neumann,
    Robin,
    conditions_of_tags,
)
from fluxforge.pde import Equation

_TAKES = "it takes values, which hold where the flow enters (inflow:VALUE), and periodic"


def default_condition(equation: Equation | None) -> Condition:
    """U = 0; for an equation with a velocity 0 where the flow enters, and free outflow."""
    return HELD if equation is None or equation.velocity is None else Inflow()


def fit_conditions(conditions: Conditions, tags: tuple[str, ...], equation: Equation | None) -> dict[str, Condition]:
    """The condition of every tag, as the equation takes it.

    A value on a wall of an equation without diffusion is that of the inflow. Raises InputError, naming the tag, for a
    wall that the equation does not take.
    """
    walls = conditions_of_tags(conditions, tags, default_condition(equation))
    return walls if equation is None else {tag: _fit_condition(each, tag, equation) for tag, each in walls.items()}


def _fit_condition(condition: Condition, tag: str, equation: Equation) -> Condition:
    where = f"the boundary condition of {tag!r}: equation {equation.name!r}"
    if isinstance(condition, Inflow) and equation.velocity is None:
        raise InputError(f"{where} has no velocity, so there is no inflow; give a value, neumann:Q or robin:H:T")
    if isinstance(condition, Robin) and equation.u in equation.diffusion.free_symbols:
        raise InputError(f"{where} has a diffusivity that depends on {equation.unknown}: it takes no robin wall")
    if equation.diffusion != 0 or equation.velocity is None:
        if isinstance(condition, Robin) and equation.diffusion == 0:
            raise InputError(f"{where} has no diffusion: it takes no robin wall")
        return condition
    # A gradient of 0 says that the value outside is that inside, which transport can have.
    if isinstance(condition, Robin) or (isinstance(condition, Neumann) and condition.normal_gradient not in (0, "0")):
        kind = "robin" if isinstance(condition, Robin) else "neumann"
        raise InputError(f"{where} has no diffusion: it takes no {kind} wall; {_TAKES}")
    return Inflow(condition.value) if isinstance(condition, Dirichlet) else condition
