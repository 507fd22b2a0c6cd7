"""The grammar of scheme names: SPACE, TIME, and SPACE-TIME."""

import pytest

from fluxforge.errors import SchemeError
from fluxforge.pde import ADVECTION, BUILT_IN, CONDUCTION, HEAT
from fluxforge.scheme import SPACES, TABLEAUX, TWO_POINT, find, find_tableau, integrate, split_name
from fluxforge.scheme import reference as schemes


@pytest.mark.parametrize("time", [*TABLEAUX, "rkl2-5"])
def test_a_time_integrator_alone_is_that_of_the_two_point_flux(time: str) -> None:
    tableau = find_tableau(time)
    assert tableau is not None
    assert find(time, CONDUCTION) == integrate(tableau, CONDUCTION)
    assert find(time).stages == integrate(tableau, HEAT).stages
    assert find(f"two-point-{time}", CONDUCTION).stages == find(time, CONDUCTION).stages


@pytest.mark.parametrize("space", SPACES)
def test_a_space_alone_takes_forward_euler_and_its_own_equation(space: str) -> None:
    scheme = find(space)
    assert scheme.equation == SPACES[space].default
    assert not scheme.implicit
    assert scheme.name == space
    if space not in schemes.BUILT_IN:
        assert scheme.stages == find(f"{space}-euler").stages


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("time", ["euler", "implicit", "crank-nicolson", "rk4"])
def test_spaces_and_time_integrators_combine(space: str, time: str) -> None:
    name = f"{space}-{time}"
    tableau = TABLEAUX[time]
    assert split_name(name) == (SPACES[space], tableau)
    try:
        scheme = find(name)
    except SchemeError as error:
        # Fluxes and limiters that contain Δt are methods of one step.
        assert len(tableau.rows) > 1
        assert "use it with forward Euler" in str(error)  # noqa: PT017
        return
    assert (scheme.name, scheme.theta) == (name, tableau.theta)
    assert scheme.claims.time_order == (tableau.order if SPACES[space].linear else None)
    assert scheme.summary == f"{SPACES[space].summary}, {tableau.summary}"


def test_built_in_names_are_the_built_in_schemes() -> None:
    for name, scheme in schemes.BUILT_IN.items():
        assert find(name) is scheme
        assert find(name, HEAT) is scheme


def test_corrected_heat_has_the_same_flux_with_every_integrator() -> None:
    """`corrected-euler` is `corrected` written with d·n as one symbol."""
    plain, named = find("corrected"), find("corrected-euler")
    assert named.stages[0] == plain.stages[0]
    assert named.dimension == 2
    assert find("corrected", dimension=3).dimension == 3
    assert find("corrected-rk4", "conduction", dimension=3).dimension == 3


@pytest.mark.parametrize(
    ("name", "equation", "reason"),
    [
        (
            "corrected",
            "advection",
            "scheme 'corrected' cannot be used with the equation 'advection': it has no diffusion",
        ),
        ("arithmetic-implicit", "anisotropic", "its mean is defined for scalars only, and K is a tensor"),
        ("two-hop", "conduction", "belongs to the equation 'heat'"),
    ],
)
def test_a_space_refuses_an_equation_it_does_not_serve(name: str, equation: str, reason: str) -> None:
    with pytest.raises(SchemeError, match=reason):
        find(name, equation)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("corected-implicit", "corrected-implicit"), ("implicitt", "implicit"), ("arithmetc", "arithmetic")],
)
def test_unknown_names_have_a_hint(name: str, hint: str) -> None:
    with pytest.raises(SchemeError, match=rf"no scheme '{name}': .*Did you mean '{hint}'\?"):
        find(name)


@pytest.mark.parametrize("name", ["corrected-", "-rk4", "rkl2-1", "rkl2-61", "rkl2-08", "corrected-rk4-rk4", "two"])
def test_what_is_no_name_is_refused(name: str) -> None:
    assert split_name(name) is None
    with pytest.raises(SchemeError, match="no scheme"):
        find(name)


def test_a_two_point_flux_claims_no_orders_beyond_heat() -> None:
    assert find("implicit").claims.space == schemes.PLAIN_FLUX_ORDERS
    assert find("implicit", "conduction").claims.space == {}
    assert find("implicit", ADVECTION).claims.space == {}
    assert find("corrected-implicit", "advection-diffusion").claims.space == {}
    assert SPACES["two-point"] is TWO_POINT
    assert set(BUILT_IN) >= {space.default.name for space in SPACES.values()}
