"""The sentence on a scheme states what its certificate shows, and nothing else."""

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fluxforge.certify import Certificate, ClaimCheck, Line, Verdict, summarise, verify, verify_step
from fluxforge.certify._families import Levels
from fluxforge.certify._summary import ORTHOGONAL, SKEWED
from fluxforge.mesh import dual, right_triangles, two_cells
from fluxforge.scheme import FAMILIES, Scheme, SchemeBuilder, find
from own_equations import ADVECTION, FISHER, equation

QUICK = " (Quick certificate: small meshes only.)"


@pytest.fixture(scope="module")
def euler() -> Scheme:
    return find("euler")


@pytest.fixture(scope="module")
def certificate(euler: Scheme) -> Certificate:
    return verify(euler, quick=True, families=("squares", "right"))


def test_the_sentence_of_euler(certificate: Certificate) -> None:
    assert certificate.summary == (
        "Explicit two-point flux; order 2 on squares, does not converge on right triangles; first order in time; "
        "stable up to 1.63 Fourier steps on an irregular mesh; conserves the total heat." + QUICK
    )


def test_all_orthogonal_or_all_skewed_families_are_called_that(certificate: Certificate, euler: Scheme) -> None:
    space = dict.fromkeys(ORTHOGONAL, certificate.space["squares"])
    space |= dict.fromkeys(SKEWED, certificate.space["right"])
    whole = replace(certificate, space=space)
    assert "; order 2 on orthogonal meshes, does not converge on skewed ones; first" in summarise(whole, euler)
    del space["cross"]
    part = summarise(replace(certificate, space=space), euler)
    assert "order 2 on squares and equilateral triangles, does not converge on skewed meshes;" in part
    same = dict.fromkeys(FAMILIES, certificate.space["squares"])
    assert "order 2 on orthogonal and skewed meshes;" in summarise(replace(certificate, space=same), euler)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_families_called_orthogonal_are_those(family: str) -> None:
    graph = dual(Levels(family, (4,)).mesh(4))
    inside = slice(graph.interior)
    d = graph.x[graph.neighbour[inside]] - graph.x[graph.owner[inside]]
    n = np.asarray(graph.n)[inside]
    off = np.abs(d[:, 0] * n[:, 1] - d[:, 1] * n[:, 0]) / np.linalg.norm(d, axis=1)
    # Sines from differences of coordinates of size 1 over distances of at least 0.05: round-off is below 1e-13.
    assert bool(off.max() <= 1e-13) is (family in ORTHOGONAL)
    assert (family in ORTHOGONAL) is not (family in SKEWED)


def test_what_the_certificate_does_not_hold_is_not_stated(certificate: Certificate, euler: Scheme) -> None:
    bare = replace(certificate, space={}, time=None, stability=None, conservation=None, quick=False)
    assert summarise(bare, euler) == (
        "Explicit two-point flux; not established: order in space, order in time, stability, conservation."
    )
    assert summarise(replace(bare, semidiscrete=None), euler).startswith("Explicit scheme, linear in T; not est")
    assert summarise(replace(bare, semidiscrete=None, linearity=None), euler).startswith("Explicit scheme; not est")


def test_what_fails_is_stated(certificate: Certificate, euler: Scheme) -> None:
    leaking = replace(certificate.conservation, holds=False)
    wrong = replace(certificate.semidiscrete, source=0.5)
    growing = replace(certificate.stability, dt_max=0.0)
    claim = ClaimCheck("time_order", 2, 1.0, holds=False)
    text = summarise(
        replace(certificate, conservation=leaking, semidiscrete=wrong, stability=growing, claims=(claim,)), euler
    )
    defects = "does not conserve the total heat; the source enters with a wrong coefficient; contradicts"
    assert f"; unstable at every time step; {defects}" in text
    assert text.endswith("contradicts its claims: time_order." + QUICK)
    both = replace(wrong, plain_flux=0.5, walls=0.5, diffusion=0.5)
    text = summarise(replace(certificate, semidiscrete=both), euler)
    assert "; the source enters with a wrong coefficient; its small-step limit is not the equation." in text
    text = summarise(replace(certificate, semidiscrete=replace(both, source=0.0)), euler)
    assert "source" not in text
    assert "; its small-step limit is not the equation." in text
    doubtful = replace(certificate.stability, diverges_above=False)
    assert "irregular mesh, not confirmed by runs;" in summarise(replace(certificate, stability=doubtful), euler)
    tried = replace(certificate.stability, one_operator=False)
    assert "; eigenvalues stable up to 1.63 Fourier steps on an irregular mesh, which is no bound;" in summarise(
        replace(certificate, stability=tried), euler
    )


def test_a_wrong_diffusivity_is_no_order_of_the_equation(certificate: Certificate, euler: Scheme) -> None:
    space = {"squares": replace(certificate.space["squares"], diffusion=2.0 * np.eye(2))}
    assert "order 2 (to the solution of another equation) on squares;" in summarise(
        replace(certificate, space=space), euler
    )


def test_other_equations_in_their_words(tmp_path: Path) -> None:
    carried = verify("midpoint", equation=equation(ADVECTION, tmp_path), quick=True, families=("squares",))
    assert carried.summary.startswith(
        "Explicit two-point flux; monotone; order 1 on squares; second order in time; stable up to"
    )
    assert " Courant step" in carried.summary
    assert "conserves the total of u" in carried.summary
    spread = verify("euler", equation=equation(FISHER, tmp_path), quick=True, families=())
    assert spread.summary == (
        "Explicit two-point flux; conserves the total of u; not established: order in space, order in time, stability."
        + QUICK
    )


def test_one_mesh_is_named_and_an_implicit_scheme_is_called_one() -> None:
    one = verify("crank-nicolson", mesh=two_cells())
    assert one.summary.startswith("Implicit two-point flux; stable at every time step; conserves the total heat;")
    assert one.summary.endswith("not established: order in space, order in time.")
    assert "Fourier steps on right_triangles(3);" in verify("euler", mesh=right_triangles(3)).summary


def test_a_step_given_as_a_function() -> None:
    def make(graph, dt):
        return lambda T: jnp.asarray(T)

    with jax.enable_x64(True):
        unchanged = verify_step(make, name="still", mesh=two_cells())
    assert unchanged.summary == (
        "Step given as a function, linear in T; conserves the total heat; "
        "not established: order in space, order in time, stability."
    )


def test_a_certificate_shows_itself(certificate: Certificate) -> None:
    assert repr(certificate) == f"<Certificate of 'euler': as claimed. {certificate.summary}>"
    line = Line("a < b", Verdict.HOLDS, "x & y", "by hand")
    shown = replace(certificate, scheme="<i>", lines=(line,))._repr_html_()
    assert "<b>&lt;i&gt;</b>: as claimed. Explicit two-point flux;" in shown
    assert "<td>holds</td><td>a &lt; b</td><td>x &amp; y</td>" in shown


def test_a_scheme_without_a_two_point_flux() -> None:
    text = verify("corrected", mesh=right_triangles(3)).summary
    assert text.startswith("Explicit scheme with a consistent flux other than the two-point one;")
    stage = SchemeBuilder().stage({"z": "alpha*(1 + T_P**2)*A/delta*(T_N - T_P)"}, {"T_new": "T + dt/V*z"})
    summary = verify(stage.build("bent", summary=""), mesh=two_cells()).summary
    assert summary.startswith("Explicit scheme, not linear in T; does not conserve the total heat; its result")
