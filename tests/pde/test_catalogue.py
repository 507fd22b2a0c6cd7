"""The built-in equations: what they say, their defaults, other reactions."""

import pytest
import sympy as sp

import fluxforge as ff
from fluxforge.errors import EquationError
from fluxforge.expression import symbol
from fluxforge.mesh import dual, resolve, squares
from fluxforge.pde import BUILT_IN, BURGERS, REACTION_DIFFUSION, from_document, to_document

u = symbol("u")
TEXTS = {
    "heat": "∂T/∂t = ∇·(alpha ∇T) + S",
    "conduction": "rhoc ∂T/∂t = ∇·(k ∇T) + S",
    "anisotropic": "∂T/∂t = ∇·(K ∇T) + S",
    "advection": "∂u/∂t + ∇·(velocity u) = S",
    "advection-diffusion": "∂u/∂t + ∇·(velocity u) = ∇·(D ∇u) + S",
    "burgers": "∂u/∂t + ∇·(direction u**2/2) = S",
    "traffic": "∂u/∂t + ∇·(direction u*(1 - u)) = S",
    "reaction-diffusion": "∂u/∂t = ∇·(D ∇u) + r*u*(1 - u) + S",
    "allen-cahn": "∂u/∂t = ∇·(D ∇u) + r*(u - u**3) + S",
}


def test_the_text_of_every_equation():
    assert {name: equation.text for name, equation in BUILT_IN.items()} == TEXTS
    assert all(ff.equation(name) is equation for name, equation in BUILT_IN.items())


@pytest.mark.parametrize("equation", BUILT_IN.values(), ids=str)
def test_documents_are_read_back(equation):
    assert from_document(to_document(equation)) == equation


def test_a_sum_before_a_derivative_is_in_brackets():
    own = from_document(
        {"name": "own", "capacity": "1 + c", "diffusion": "1 + k", "reaction": "-u", "parameters": {"c": {}, "k": {}}}
    )
    assert own.text == "(c + 1) ∂u/∂t = ∇·((k + 1) ∇u) - u + S"


def test_default_directions_have_the_dimension_of_the_mesh():
    (direction,) = BURGERS.parameters
    assert direction.default_in(2) == (1.0, 0.0)
    assert direction.default_in(3) == (1.0, 0.0, 0.0)
    graph = dual(squares(2))
    given = resolve(BURGERS, graph, {"direction": (1, 0)}).slots["direction_n"]
    assert (resolve(BURGERS, graph, {}).slots["direction_n"] == given).all()


def test_another_reaction_replaces_the_built_in_one():
    cubic = ff.equation("reaction-diffusion", reaction="u - u**3")
    assert cubic.reaction == u - u**3
    assert [p.name for p in cubic.parameters] == ["D"]
    assert cubic.diffusion == REACTION_DIFFUSION.diffusion
    ignition = ff.equation("reaction-diffusion", reaction="r*(u > 1/4)*(1 - u)")
    assert [p.name for p in ignition.parameters] == ["D", "r"]
    assert not ignition.linear
    assert ff.equation("reaction-diffusion", reaction="-2*u").linear


def test_a_step_is_no_linear_reaction():
    assert not ff.equation("reaction-diffusion", reaction="u > 1/2").linear
    assert not ff.equation("reaction-diffusion", reaction="where(u > 1/2, -u, u)").linear


@pytest.mark.parametrize(
    ("reaction", "message"),
    [
        (
            "u + q",
            "equation 'reaction-diffusion': reaction: unknown symbol 'q' at column 5 of \"u + q\"; known: D, r, u",
        ),
        ("r*D*u", "equation 'reaction-diffusion': the term of 'reaction' has the unit L^2 t^-2, but c ∂u/∂t has t^-1"),
        ("r*u + D", "equation 'reaction-diffusion': 'reaction': D + r*u mixes the units"),
        ("u ** ", "equation 'reaction-diffusion': reaction: expected a number"),
        ("x*u", "equation 'reaction-diffusion': reaction: unknown symbol 'x'"),
    ],
)
def test_reactions_that_are_refused(reaction, message):
    with pytest.raises(EquationError) as refused:
        ff.equation("reaction-diffusion", reaction=reaction)
    assert str(refused.value).startswith(message)


def test_terms_of_a_reaction_agree_where_the_unknown_has_a_unit():
    heat = ff.equation("heat")
    assert heat.with_reaction("-2*T").reaction == -2 * symbol("T")
    with pytest.raises(EquationError, match="mixes the units"):
        heat.with_reaction("T - T**3")
    assert sp.diff(heat.with_reaction("-2*T").reaction, symbol("T")) == -2
