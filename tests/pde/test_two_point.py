"""A two-point flux given in full: those of the equation pass, others are refused in one line."""

import pytest

from fluxforge.errors import EquationError
from fluxforge.pde import Equation, from_document

PER_TIME = {"length": 2, "time": -1}
DIFFUSION = {"name": "d", "diffusion": "D", "parameters": {"D": {}}}
WITH_UNITS = DIFFUSION | {"parameters": {"D": {"units": PER_TIME}}}
CARRIED = {
    "name": "carried",
    "diffusion": "D",
    "transported": "u",
    "velocity": "a",
    "parameters": {"D": {"units": PER_TIME}, "a": {"rank": "vector", "units": {"length": 1, "time": -1}}},
}
LAYERS = {"name": "layers", "diffusion": "k", "parameters": {"k": {"where": "cell"}}}
TENSOR = {"name": "tensor", "diffusion": "K", "parameters": {"K": {"rank": "tensor"}}}
POROUS = {"name": "porous", "diffusion": "2*q*u", "parameters": {"q": {}}}
BOUNDED = {"name": "bounded", "diffusion": "q/sqrt(1 - u)", "parameters": {"q": {}}}


def equation_with_flux(document: dict, flux: str) -> Equation:
    return from_document(document | {"two_point": flux}, "my.toml")


@pytest.mark.parametrize(
    ("document", "flux"),
    [
        (WITH_UNITS, "D*(u_P - u_N)/delta"),
        (WITH_UNITS, "D*u_P/delta - D*u_N/delta"),
        (CARRIED, "D*(u_P - u_N)/delta + max(a_n, 0)*u_P + min(a_n, 0)*u_N"),
        (CARRIED, "D*(u_P - u_N)/delta + a_n*(1 + sign(a_n))/2*u_P + a_n*(1 - sign(a_n))/2*u_N"),
        (CARRIED, "D*(u_P - u_N)/delta + a_n*(u_P + u_N)/2"),
        # The exact flux of one dimension, by Scharfetter and Gummel.
        (CARRIED, "a_n*(u_P - (u_N - u_P)/(exp(a_n*delta/D) - 1))"),
        (LAYERS, "sqrt(k_P*k_N)*(u_P - u_N)/delta"),
        (TENSOR, "K_nn*(u_P - u_N)/delta"),
        (POROUS, "q*(u_P**2 - u_N**2)/delta"),
        (BOUNDED, "2*q*(sqrt(1 - u_N) - sqrt(1 - u_P))/delta"),
    ],
)
def test_fluxes_of_the_equation_are_taken(document: dict, flux: str) -> None:
    assert equation_with_flux(document, flux).two_point is not None


@pytest.mark.parametrize(
    ("document", "flux", "words"),
    [
        (DIFFUSION, "2*D*(u_P - u_N)/delta", "should tend to"),
        (DIFFUSION, "D*(u_P - u_N)", "should tend to"),
        (DIFFUSION, "D*(u_N - u_P)/delta", "should tend to"),
        (DIFFUSION, "D*(u_P - u_N)/delta + D*(u_P - u_N)**3/delta**3", "should tend to"),
        (DIFFUSION, "0", "should tend to"),
        (DIFFUSION, "D*abs(u_P - u_N)/delta", "become its negative"),
        (WITH_UNITS, "D*(u_P - u_N)", "has the unit L^2 t^-1 Θ, but a flux should have L t^-1 Θ"),
        (CARRIED, "a_n*u_P", "become its negative"),
        (CARRIED, "max(a_n, 0)*u_P + min(a_n, 0)*u_N", "should tend to"),
        (CARRIED, "D*(u_P - u_N)/delta", "of equal values"),
        (LAYERS, "k_P*(u_P - u_N)/delta", "become its negative"),
        (LAYERS, "(k_P*u_P - k_N*u_N)/delta", "of equal values"),
        (POROUS, "2*q*(u_P**2 - u_N**2)/delta", "should tend to"),
    ],
)
def test_fluxes_of_something_else_are_refused(document: dict, flux: str, words: str) -> None:
    with pytest.raises(EquationError, match=r"^my\.toml: equation .*'two_point'") as refused:
        equation_with_flux(document, flux)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_flux_that_is_not_linear_makes_the_equation_not_linear() -> None:
    assert equation_with_flux(DIFFUSION, "D*(u_P - u_N)/delta").linear
    assert equation_with_flux(CARRIED, "D*(u_P - u_N)/delta + max(a_n, 0)*u_P + min(a_n, 0)*u_N").linear
    assert not equation_with_flux(DIFFUSION, "D*(u_P - u_N)/delta*(1 + (u_P - u_N)**2)").linear
