"""The questions of a certificate that are about transport, in turn."""

from collections.abc import Callable
from typing import Protocol, TypeVar, runtime_checkable

from fluxforge.certify._claims import ClaimCheck
from fluxforge.certify._evidence import Line
from fluxforge.certify.flux import Flux, flux_of, is_antisymmetric, is_consistent, states_of
from fluxforge.certify.harten import step_bound
from fluxforge.certify.layer import boundary_layer
from fluxforge.certify.limiter import limiter_line, limiter_region
from fluxforge.certify.monotone import Monotonicity, e_condition, monotonicity, peclet_limit
from fluxforge.certify.riemann import riemann_line, solve_riemann
from fluxforge.certify.transport import (
    TransportProperties,
    bound_line,
    entropy_line,
    identity_line,
    layer_line,
    limited_bound_line,
    monotone_line,
    named_flux,
    named_limiter,
)
from fluxforge.pde._equation import Equation
from fluxforge.scheme._document import split_name
from fluxforge.scheme._linear import linear_stages
from fluxforge.scheme._scheme import Scheme

T = TypeVar("T")


@runtime_checkable
class Ask(Protocol):
    """`Recorder.ask`: measure, add a line, and return the result; None, with a line that says why, if that fails."""

    def __call__(
        self, name: str, measure: Callable[[], T], line: Callable[[T], Line], *, always: bool = False
    ) -> T | None:
        """The result of `measure`, whose line is `line` of it."""


def ask_transport(scheme: Scheme, ask: Ask, *, refine: bool) -> TransportProperties | None:
    """Everything that applies to the scheme, with `refine` Riemann problems; None for an equation without transport."""
    equation = scheme.equation
    if equation.velocity is None:
        return None
    states = states_of(equation)
    flux = flux_of(scheme)
    found = TransportProperties(states)
    if flux is not None:
        found = _ask_flux(flux, ask, stepped=_steps_like_euler(scheme))
    limiter = named_limiter(scheme)
    region = None
    if limiter is not None:
        region = ask("limiter", lambda: limiter_region(limiter.phi), limiter_line, always=True)
        if region is not None and region.holds and len(scheme.stages) == 1:
            ask("total variation", lambda: region, lambda _: limited_bound_line(), always=True)
    riemann = None
    if refine and _only_transports(equation):
        riemann = ask("Riemann problems", lambda: solve_riemann(scheme, states), riemann_line, always=True)
    layer = None
    if equation.linear and equation.reaction == 0 and _has_scalar_diffusion(equation) and linear_stages(scheme):
        layer = ask("boundary layer", lambda: boundary_layer(scheme), layer_line, always=True)
    return TransportProperties(
        states=states,
        consistent=found.consistent,
        antisymmetric=found.antisymmetric,
        monotone=found.monotone,
        peclet_limit=found.peclet_limit,
        entropy=found.entropy,
        steps=found.steps,
        limiter=region,
        limited_steps=region is not None and len(scheme.stages) == 1,
        riemann=riemann or (),
        layer=layer,
    )


def _only_transports(equation: Equation) -> bool:
    return bool(equation.diffusion == 0 and equation.reaction == 0 and equation.capacity == 1)


def _has_scalar_diffusion(equation: Equation) -> bool:
    return bool(equation.diffusion != 0 and equation.diffusion_tensor is None)


def _steps_like_euler(scheme: Scheme) -> bool:
    """Whether a step is one of Euler's, or a convex combination of such steps, as in SSP methods of order 2 and 3."""
    if scheme.implicit:
        return False
    parts = split_name(scheme.name)
    return len(scheme.stages) == 1 or (parts is not None and parts.tableau.name in ("ssp2", "ssp3"))


def _ask_flux(flux: Flux, ask: Ask, *, stepped: bool) -> TransportProperties:
    same = ask(
        "flux", lambda: (is_consistent(flux), is_antisymmetric(flux)), lambda both: identity_line(*both), always=True
    )
    limits: list[float | None] = [None]

    def measure() -> Monotonicity:
        found = monotonicity(flux)
        if found.holds is False and flux.diffuses:
            limits[0] = peclet_limit(flux)
        return found

    monotone = ask("monotonicity", measure, lambda found: monotone_line(found, flux.states, limits[0]), always=True)
    entropy = bound = None
    if monotone is not None and not flux.diffuses:
        entropy = ask("E-flux", lambda: e_condition(flux, monotone), entropy_line, always=True)
        if monotone.holds and stepped:
            bound = ask(
                "total variation", lambda: step_bound(flux), lambda found: bound_line(found, flux.states), always=True
            )
    consistent, antisymmetric = same if same is not None else (None, None)
    return TransportProperties(flux.states, consistent, antisymmetric, monotone, limits[0], entropy, bound)


def transport_claims(scheme: Scheme, found: TransportProperties | None) -> tuple[ClaimCheck, ...]:
    """The check of the monotonicity that the flux a scheme is named after claims; a flux may claim that it is not."""
    own = None if found is None else named_flux(scheme)
    if own is None or found is None:
        return ()
    measured = None if found.monotone is None else found.monotone.holds
    reason = "intervals do not decide" if measured is None else ""
    holds = None if measured is None else measured == own.monotone
    return (ClaimCheck("monotone", own.monotone, measured, holds, reason=reason),)
