"""Equations with transport: modified equation, effective equation, and stability over the complex plane."""

import math
from typing import Any

import numpy as np
import pytest
import sympy as sp

from fluxforge.certify import Verdict, verify
from fluxforge.certify._lattice import h
from fluxforge.certify.effective import effective_equation
from fluxforge.certify.modified import modified_equation, modified_line
from fluxforge.certify.stability import (
    imaginary_interval,
    measure_stability,
    spectral_limit,
    stability_line,
    wave_limit,
)
from fluxforge.mesh import dual, jittered
from fluxforge.pde import Equation, from_document
from fluxforge.scheme import amplification, find, symbol
from fluxforge.stepping import step_matrix

VELOCITY = {"rank": "vector", "units": {"length": 1, "time": -1}}
CENTRAL_FLUX = "a_n*(u_P + u_N)/2"


def equation(name: str, **fields: object) -> Equation:
    parameters = {"a": VELOCITY, **fields.pop("parameters", {})}  # type: ignore[dict-item]
    return from_document({"name": name, "transported": "u", "velocity": "a", "parameters": parameters, **fields})


D = {"D": {"default": 0.001}}
UPWIND, CENTRAL = equation("upwind"), equation("central", two_point=CENTRAL_FLUX)
BOTH = equation("both", diffusion="D", capacity="c", reaction="-r*u", parameters={"D": {}, "c": {}, "r": {}})
THIN = equation("thin", diffusion="D", two_point=f"{CENTRAL_FLUX} - D*(u_N - u_P)/delta", parameters=D)
a_x, a_y, dt = symbol("a_x"), symbol("a_y"), symbol("dt")


def test_upwind_diffuses_by_half_a_h_times_one_minus_the_courant_number() -> None:
    modified = modified_equation(find("euler", UPWIND), "squares")
    nu = a_x * dt / h
    wanted = a_x * h / 2 * (1 - nu)
    along = modified.leading[2, 0].subs(sp.Abs(a_x), a_x)
    assert sp.simplify(along - wanted) == 0
    assert sp.simplify(modified.leading[1, 1] + a_x * a_y * dt) == 0
    assert (modified.leading[1, 0], modified.leading[0, 1]) == (-a_x, -a_y)
    assert modified.consistent
    # Of second order in time, the numerical diffusion does not depend on the step.
    assert sp.simplify(modified_equation(find("midpoint", UPWIND), "squares").leading[2, 0] - sp.Abs(a_x) * h / 2) == 0


@pytest.mark.parametrize("family", ["right", "cross", "equilateral"])
@pytest.mark.parametrize("name", ["central", "lax-wendroff"])
def test_cells_without_a_weight_of_their_own_do_not_hide_the_equation(name: str, family: str) -> None:
    """A central flux on triangles lets fields that alternate between types of cells last, besides smooth fields."""
    scheme = find(name)
    found = effective_equation(scheme, family, parameters=scheme.equation.example(2, 2.5))
    assert found.holds
    assert str(found.found) == "T_t = -2.5 T_x - 1 T_y"


def test_a_modified_equation_without_dt_says_why() -> None:
    modified = modified_equation(find("lax-wendroff"), "squares")
    evidence = modified_line("squares", modified, heat=False).evidence
    assert "this is the limit Δt → 0 only: the step is not known to be a function of one operator" in evidence
    reacting = modified_line("squares", modified_equation(find("euler", BOTH), "squares"), heat=False).evidence
    assert "Δt → 0 only: terms with Δt are not derived where constants change" in reacting
    assert "Δt → 0" not in modified_line("squares", modified_equation(find("upwind"), "squares"), heat=False).evidence


def test_a_central_flux_disperses_and_euler_makes_it_diffuse_backwards() -> None:
    assert sp.simplify(modified_equation(find("rk4", CENTRAL), "squares").error[3, 0] + a_x * h**2 / 6) == 0
    assert sp.simplify(modified_equation(find("euler", CENTRAL), "squares").leading[2, 0] + a_x**2 * dt / 2) == 0


def test_every_coefficient_of_the_equation_is_in_it() -> None:
    c, r = symbol("c"), symbol("r")
    modified = modified_equation(find("euler", BOTH), "cubes")
    assert modified.consistent
    assert sp.simplify(modified.leading[0, 0, 0] + r / c) == 0
    assert sp.simplify(modified.leading[0, 0, 1] + symbol("a_z") / c) == 0
    assert sp.simplify(modified.leading[0, 0, 2].subs(h, 0) - symbol("D") / c) == 0


def test_a_tensor_is_named_component_by_component() -> None:
    scheme = find("euler", from_document({"name": "t", "diffusion": "K", "parameters": {"K": {"rank": "tensor"}}}))
    on_squares = modified_equation(scheme, "squares")
    assert dict(on_squares.leading) == {(2, 0): symbol("K_xx"), (0, 2): symbol("K_yy")}
    assert on_squares.wanted[1, 1] == 2 * symbol("K_xy")
    assert not on_squares.consistent
    # Three directions see all of K, here with its example values, but weigh them by n·K n instead of what they carry.
    assert not modified_equation(scheme, "equilateral").consistent


@pytest.mark.parametrize("family", ["squares", "equilateral", "cubes"])
def test_smooth_fields_obey_the_equation_on_every_lattice(family: str) -> None:
    size = 3 if family == "cubes" else 2
    effective = effective_equation(find("euler", BOTH), family, parameters=BOTH.example(size, 2.5))
    assert effective.holds
    # Upwind of the other side: the sign of the drift turns around.
    turned = {**BOTH.example(size, 2.5), "a": tuple(-a for a in BOTH.example(size, 2.5)["a"])}
    assert effective_equation(find("euler", BOTH), family, parameters=turned).found.distance_from(effective.own) > 1


@pytest.mark.parametrize(
    ("name", "limit"), [("euler", 0.0), ("midpoint", 0.0), ("rk4", 2 * math.sqrt(2)), ("crank-nicolson", math.inf)]
)
def test_the_imaginary_axis_is_where_a_central_flux_lies(name: str, limit: float) -> None:
    scheme = find(name, CENTRAL)
    factor = amplification(scheme)
    assert imaginary_interval(factor) == pytest.approx(limit, rel=1e-14)
    waves = wave_limit(scheme, factor, "squares", parameters=CENTRAL.example(2))
    assert waves.on_axis
    # On squares the reference step is h/(|a_x| + |a_y|), and the largest eigenvalue the inverse of it.
    assert waves.over_reference == pytest.approx(limit, rel=1e-12)


@pytest.mark.parametrize("family", ["squares", "cubes"])
def test_upwind_is_stable_up_to_a_courant_number_of_one(family: str) -> None:
    scheme = find("euler", UPWIND)
    waves = wave_limit(scheme, amplification(scheme), family, parameters=UPWIND.example(3 if family == "cubes" else 2))
    assert waves.over_reference == pytest.approx(1.0, rel=1e-9)
    assert not waves.on_axis


def test_a_little_diffusion_makes_short_steps_stable() -> None:
    """Euler's method and a central flux: Δt ≤ 2D/|a|², from long waves, where D is small."""
    scheme = find("euler", THIN)
    waves = wave_limit(scheme, amplification(scheme), "squares", parameters={"a": (1.0, 0.0), "D": 0.001})
    assert waves.dt == pytest.approx(0.002, rel=1e-6)


def test_growth_at_small_steps_is_not_lost_in_round_off() -> None:
    """|R(iy)|² − 1 = y⁴/4 of the midpoint rule, 2.5e-17 at y = 1e-4."""
    factor = amplification(find("midpoint", CENTRAL))
    assert spectral_limit(factor, np.array([1j, -1j])) < 1e-5
    assert spectral_limit(amplification(find("euler", UPWIND)), np.array([-1.0, -2.0])) == pytest.approx(1.0)


def test_a_central_flux_with_euler_is_told_to_have_no_stable_step() -> None:
    certificate = verify(find("euler", CENTRAL), quick=True, families=())
    line = next(line for line in certificate.lines if line.property == "no step is stable")
    assert line.verdict is Verdict.FAILS
    assert "imaginary axis" in line.evidence
    assert [check.property for check in certificate.contradicted] == ["stable_to"]
    document: Any = certificate.to_document()
    assert document["stability"]["waves"]["dt_max_over_reference"] == 0


def test_the_eigenvalues_of_a_mesh_are_no_bound() -> None:
    graph = dual(jittered(5, 0.2, 1))
    stability = measure_stability(find("rk4", CENTRAL), graph, parameters=CENTRAL.example(2))
    assert stability.spectral
    assert not stability.bound
    assert stability.stable_below
    for share, stable in ((0.999, True), (1.001, False)):
        M = step_matrix(find("rk4", CENTRAL), graph, share * stability.dt_max, parameters=CENTRAL.example(2))
        assert (np.abs(np.linalg.eigvals(M.toarray())).max() <= 1 + 1e-12) == stable
    line = stability_line(stability, "here", CENTRAL.words)
    assert "Δt_Courant" in line.property
    assert "plane waves on squares: stable up to 2.828 Δt_Courant" in line.evidence


def test_lines_use_the_terms_of_the_equation() -> None:
    certificate = verify(find("euler", UPWIND), quick=True, families=())
    text = " ".join(f"{line.property} {line.evidence} {line.method}" for line in certificate.lines)
    assert "Fourier" not in text
    assert "α" not in text
    assert "temperatures" not in text
    assert "Δt_Courant" in text


def test_what_is_not_linear_has_no_modified_equation() -> None:
    burgers = equation("burgers", transported="u**2/2", unknown_units={})
    certificate = verify(find("euler", burgers), quick=True, families=())
    line = next(line for line in certificate.lines if line.property == "modified equation")
    assert line.verdict is Verdict.UNKNOWN
    assert "not linear" in line.evidence
