"""Equations as values: the strong form, the two-point flux, and what is refused."""

from dataclasses import replace
from pathlib import Path

import pytest
import sympy as sp

import fluxforge
from fluxforge.errors import EquationError
from fluxforge.expression import parse, symbol
from fluxforge.pde import HEAT, Equation, Parameter, Rank, Where, differentiate, find, from_document, to_document, unit

FISHER = {
    "name": "fisher",
    "unknown": "u",
    "diffusion": "D",
    "reaction": "r*u*(1 - u)",
    "unknown_units": {},
    "parameters": {
        "D": {"units": {"length": 2, "time": -1}, "default": 0.1},
        "r": {"units": {"time": -1}, "default": 1.0},
    },
}
BURGERS = {
    "name": "burgers",
    "transported": "u**2/2",
    "velocity": "a",
    "diffusion": "D",
    "parameters": {"a": {"rank": "vector"}, "D": {}},
}
x, y, z, t, P, N = map(symbol, ("x", "y", "z", "t", "P", "N"))


def formula(text: str) -> sp.Expr:
    names = ("x", "y", "z", "t", "alpha", "a_x", "a_y", "D", "r", "K_xx", "K_xy", "K_yy", "delta", "a_n", "P", "N")
    return parse(text, names)


def test_symbols_are_created_in_one_place_only() -> None:
    root = Path(fluxforge.__file__).parent
    made = [
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if any(word in path.read_text(encoding="utf-8") for word in ("sp.Symbol(", "sp.symbols(", "sp.Dummy("))
    ]
    assert made == ["expression/_symbols.py"]


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_the_strong_form_of_heat_is_that_of_the_textbook_in_every_dimension(dimension: int) -> None:
    places = (x, y, z)[:dimension]
    u = sp.exp(-t) * sp.Mul(*(sp.sin((k + 1) * place) for k, place in enumerate(places)))
    wanted = -u + symbol("alpha") * sum((k + 1) ** 2 for k in range(dimension)) * u
    assert sp.simplify(HEAT.strong(u, dimension) - wanted) == 0


def test_every_term_of_the_strong_form_has_its_sign() -> None:
    parameters = {"a": {"rank": "vector"}, "D": {}, "r": {}, "c": {}}
    equation = from_document(BURGERS | {"reaction": "r*u", "capacity": "c", "parameters": parameters})
    u = x**2 * y + t
    source = equation.strong(u, 2, {"c": 3 + x, "a": (y, x)})
    wanted = (3 + x) + sp.diff(y * u**2 / 2, x) + sp.diff(x * u**2 / 2, y) - formula("D") * 2 * y - formula("r") * u
    assert sp.expand(source - wanted) == 0


def test_a_tensor_that_varies_is_differentiated() -> None:
    tensor = Equation("anisotropic", parameters=(Parameter("K", rank=Rank.TENSOR),), diffusion=symbol("K"))
    u = x * y
    assert tensor.strong(u, 2) == -2 * symbol("K_xy")
    flow = (x * y + y * x, y * y + x)
    source = tensor.strong(u, 2, {"K": ((x, y), (y, sp.Integer(1)))})
    assert sp.expand(source + sp.diff(flow[0], x) + sp.diff(flow[1], y)) == 0
    assert tensor.flux(P, N) == -symbol("K_nn") * (N - P) / symbol("delta")


def test_the_flux_points_out_of_the_cell() -> None:
    assert sp.expand(HEAT.flux(P, N) - formula("alpha/delta*(P - N)")) == 0
    warm_to_cold = HEAT.flux(sp.Integer(1), sp.Integer(0)).xreplace({symbol("alpha"): 2, symbol("delta"): 1})
    assert warm_to_cold == 2


@pytest.mark.parametrize("document", [BURGERS, BURGERS | {"transported": "u"}, BURGERS | {"transported": "u*(1 - u)"}])
def test_the_flux_is_consistent_and_antisymmetric(document: dict) -> None:
    equation = from_document(document)
    a_n = symbol("a_n")
    assert sp.simplify(equation.flux(P, P) - equation.transported.xreplace({equation.u: P}) * a_n) == 0
    turned = equation.flux(N, P).xreplace({a_n: -a_n})
    both = equation.flux(P, N) + turned
    for values in ((0.3, -1.7, 2.0), (-0.4, 0.9, -1.0), (1.0, 2.0, 0.5)):
        at = dict(zip((P, N, a_n), values, strict=True)) | {symbol("D"): 0.7, symbol("delta"): 0.3}
        assert abs(both.xreplace({key: sp.Float(value) for key, value in at.items()})) < 1e-14


def test_linear_transport_is_upwind() -> None:
    equation = from_document(BURGERS | {"transported": "u", "diffusion": "0"})
    for a in (2, -3):
        assert equation.flux(P, N).xreplace({symbol("a_n"): sp.Integer(a)}) == a * (P if a > 0 else N)


def test_a_conductivity_per_cell_has_the_harmonic_mean() -> None:
    equation = Equation("layers", parameters=(Parameter("k", where=Where.CELL),), diffusion=symbol("k"))
    k_P, k_N = symbol("k_P"), symbol("k_N")
    assert sp.simplify(equation.flux(P, N) - 2 * k_P * k_N / (k_P + k_N) * (P - N) / symbol("delta")) == 0


def test_a_conductivity_of_the_unknown_has_the_arithmetic_mean() -> None:
    """It may vanish on both sides, where a harmonic mean is 0/0: nothing flows between empty cells."""
    parameters = {"q": {}, "k": {"where": "cell"}, "m": {"where": "cell"}}
    k_P, k_N, m_P, m_N, q, delta = map(symbol, ("k_P", "k_N", "m_P", "m_N", "q", "delta"))
    means = {
        "q*u": q * (P + N) / 2,
        "q + u**2": q + (P**2 + N**2) / 2,
        "k*u**2": 2 * k_P * k_N / (k_P + k_N) * (P**2 + N**2) / 2,
        "k*u + m*u": 2 * (k_P + m_P) * (k_N + m_N) / (k_P + m_P + k_N + m_N) * (P + N) / 2,
    }
    for text, mean in means.items():
        equation = from_document({"name": "porous", "diffusion": text, "parameters": parameters})
        flux = equation.flux(P, N)
        assert sp.simplify(flux - mean * (P - N) / delta) == 0
        assert flux.xreplace({P: sp.Integer(0), N: sp.Integer(0)}) == 0


def test_linear_equations_say_so() -> None:
    assert HEAT.linear
    assert not from_document(FISHER).linear
    assert not from_document(BURGERS).linear
    assert from_document(BURGERS | {"transported": "u"}).linear


@pytest.mark.parametrize("document", [FISHER, BURGERS, to_document(HEAT)])
def test_documents_are_read_back(document: dict) -> None:
    equation = from_document(document)
    assert from_document(to_document(equation)) == equation
    assert hash(from_document(to_document(equation))) == hash(equation)


def test_heat_is_found_by_name_and_others_by_file(tmp_path: Path) -> None:
    assert find("heat") is HEAT
    assert from_document(to_document(HEAT)) == HEAT
    path = tmp_path / "fisher.toml"
    path.write_text('name = "fisher"\ndiffusion = "D"\nreaction = "r*u*(1 - u)"\n[parameters.D]\n[parameters.r]\n')
    assert find(path).reaction == parse("r*u*(1 - u)", ("r", "u"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"diffusio": "D"}, "my.toml: unknown field 'diffusio'; known: name, unknown, summary, capacity, "),
        ({"reaction": "r*u*(1 - v)"}, "field 'reaction': unknown symbol 'v'"),
        ({"reaction": "__import__('os')"}, "field 'reaction'"),
        (
            {"parameters": {"D": {"rank": "matrix"}}},
            "my.toml: parameter 'D': field 'rank' should be one of scalar, vector, tensor, got 'matrix'",
        ),
        (
            {"parameters": {"D": {"units": {"lenght": 1}}}},
            "parameter 'D': field 'units': unknown field 'lenght'; known: length, time, unknown",
        ),
        ({"unknown_units": {"time": 0.5}}, "field 'unknown_units': field 'time' should be a whole number, got 0.5"),
        (
            {"parameters": {"D": {"default": "1"}}},
            "parameter 'D': field 'default' should be a number or a list of numbers, got '1'",
        ),
        ({"parameters": {"D": 3}}, "parameter 'D': should be a table, got 3"),
        ({"parameters": 3}, "field 'parameters' should be a table, got 3"),
        ({"parameters": {"D": {}, "r": {"where": "face"}}}, "'reaction' contains r"),
        ({"parameters": {"D": {}, "r": {"rank": "vector", "where": "cell"}}}, "'r', a vector, should be"),
        ({"velocity": "D"}, "should be a vector"),
        ({"velocity": "w"}, "no parameter 'w'"),
        ({"transported": "u"}, "belong together"),
        ({"unknown": "r", "reaction": "0"}, "the name 'r' is already used"),
        ({"unknown": "S", "reaction": "0"}, "the name 'S' is already used"),
        ({"parameters": {"D": {}, "r": {}, "T": {}}}, "the name 'T' is already used"),
        ({"capacity": "u"}, "'capacity' contains u"),
        ({"two_point": "D/delta*(u_P - 2*u_N)"}, "'two_point' of equal values"),
        ({"parameters": {"D": {"units": {"length": 1}}, "r": {"units": {"time": -1}}}}, "the term of 'diffusion'"),
        ({"diffusion": "-1"}, "the diffusion should be positive, or 0 for none, got -1"),
        ({"capacity": "0"}, "the capacity should be positive, got 0"),
        ({"capacity": "-1"}, "the capacity should be positive, got -1"),
        ({"unknown_units": {"unknown": 1}}, "mixes the units"),
    ],
)
def test_what_cannot_be_an_equation_is_refused_in_one_line(change: dict, words: str) -> None:
    with pytest.raises(EquationError, match=r"my\.toml: ") as refused:
        from_document(FISHER | change, "my.toml")
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name = ", "is not TOML"),
        ("\xff", "is not TOML"),
        ("name = 3", "field 'name' should be text, got 3"),
        ("", "field 'name' is missing"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(EquationError, match=r"bad\.toml: ") as refused:
        find(path)
    assert words in str(refused.value)


def test_an_unknown_name_is_told_with_its_neighbour() -> None:
    with pytest.raises(EquationError, match="Did you mean 'heat'"):
        find("heta")
    with pytest.raises(EquationError, match="cannot be read"):
        find("nowhere.toml")


def test_units_are_compared_where_all_are_stated() -> None:
    with pytest.raises(EquationError, match="c ∂u/∂t has"):
        replace(HEAT, parameters=(Parameter("alpha", unit=unit(length=1)),))


def test_the_derivative_of_a_step_is_a_formula() -> None:
    """Where a formula jumps its slope counts as 0: no node that the evaluator does not know."""
    u = symbol("u")
    assert differentiate(parse("-3*sign(u) + u", ("u",)), u) == 1
    assert differentiate(parse("u*max(u, 0)", ("u",)), u).has(sp.DiracDelta) is False
