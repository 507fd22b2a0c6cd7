"""`data.law` and `data.noise`: what is accepted, and what is refused by name."""

from typing import Any

import pytest
import sympy as sp
from recipe_files import ON_MESHES, PLAIN

from fluxforge.errors import RecipeError
from fluxforge.recipe import Pairs, TwoCells, exchange_law, fingerprint, load, override
from fluxforge.scheme import symbol

FLUX = "A/delta*(T_N - T_P)"


def refused(changes: dict[str, Any], name: str = "first-order") -> str:
    with pytest.raises(RecipeError) as caught:
        override(load(name), changes)
    assert str(caught.value).isprintable()
    return str(caught.value)


@pytest.mark.parametrize(
    "law",
    [
        FLUX,
        f"{FLUX} + 0.15*A/delta*(T_N - T_P)**3",
        "alpha*A/delta^2*(T_N - T_P)",
        "A/sqrt(delta)*(T_N - T_P)",
        f"V*{FLUX}",
        f"(1 + 0.5*n_x**2)*{FLUX}",
        "A*(n_x*d_x + n_y*d_y)/delta**2*(T_N - T_P)",
        "A*tanh(T_N - T_P)",
        "S_N - S_P",
    ],
)
def test_a_law_is_a_formula_of_what_an_edge_carries(law: str) -> None:
    assert override(load("first-order"), {"data.law": law}).data.law == law


def test_v_is_the_volume_of_the_cell_that_receives() -> None:
    law = exchange_law(Pairs(law="V*A"))
    assert law == symbol("V_P") * symbol("A")
    assert exchange_law(Pairs(law="V_P*A")) == law
    assert exchange_law(Pairs()) is None
    assert exchange_law(TwoCells(law="2")) == sp.Integer(2)


@pytest.mark.parametrize(
    ("law", "message"),
    [
        ("A/delta*(T_N - T)", "field 'data.law': unknown symbol 'T'"),
        ("z1*A", "field 'data.law': unknown symbol 'z1'"),
        ("V_N*A", "field 'data.law': unknown symbol 'V_N'"),
        ("T_Q - T_P", "field 'data.law': unknown symbol 'T_Q'"),
        ("__import__('os')", "field 'data.law': "),
        ("A/delta*(T_N - T_P", "field 'data.law': "),
        ("", "field 'data.law': "),
        ("A*log(T_N - T_P)", "field 'data.law': is not a finite number on every edge"),
        ("A*sqrt(T_N)", "field 'data.law': is not a finite number on every edge"),
        ("A/(T_N - T_N)", "field 'data.law': "),
        (3, "field 'data.law': expected text, got 3"),
    ],
)
def test_another_formula_is_refused_with_the_reason(law: object, message: str) -> None:
    assert message in refused({"data.law": law})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"data.law": FLUX},
            "fields 'data.law' and 'loss.residual': a residual is computed from the equation (heat), without a law",
        ),
        ({"data.noise": 0.01}, "fields 'data.noise' and 'loss.residual': a residual uses no answers"),
        ({"data.noise": -0.1}, "field 'data.noise': expected a number from 0 to 100, got -0.1"),
    ],
)
@pytest.mark.parametrize("name", ["first-order-pinn", "midpoint"])
def test_a_residual_has_neither_law_nor_noise(name: str, changes: dict[str, Any], message: str) -> None:
    assert message in refused(changes, name)


def test_a_recipe_without_law_and_noise_keeps_its_fingerprint() -> None:
    """The fingerprints are those of the commit before the two fields were added: kept runs can be resumed."""
    assert fingerprint(PLAIN) == "c2a82153561206a3"
    assert fingerprint(ON_MESHES) == "1b06683f71960fed"
    plain = override(PLAIN, {"data.law": FLUX})
    noisy = override(PLAIN, {"data.noise": 0.01})
    assert len({fingerprint(PLAIN), fingerprint(plain), fingerprint(noisy)}) == 3
