"""What is found without a network: the flux of heat by both ways, another law as itself, and nothing out of budget."""

import numpy as np
import pytest
import sympy as sp

from fluxforge import recipe
from fluxforge.distil import ablate, no_ablation
from fluxforge.distil._ablation import split
from fluxforge.distil._sparse import stlsq
from fluxforge.expression import parse
from fluxforge.scheme import Hop, message_symbols, output_symbols, symbol

CUBIC = "A/delta*(T_N - T_P) + 0.15*A/delta*(T_N - T_P)**3"


def spec(**changes: object) -> recipe.Recipe:
    return recipe.override(
        recipe.load("first-order"), {name.replace("__", "."): value for name, value in changes.items()}
    )


def powers(text: str) -> dict[int, float]:
    """A message's coefficient of A/δ (T_N − T_P)^p for every p; anything else in it fails."""
    message = parse(text, message_symbols(Hop.EDGE, ()))
    across, flux = sp.Symbol("d"), symbol("A") / symbol("delta")
    series = sp.Poly(sp.expand(message.subs(symbol("T_N"), symbol("T_P") + across) / flux), across)
    return {p: float(c) for (p,), c in series.terms()}


def test_both_ways_find_the_flux_of_heat() -> None:
    found = ablate(spec(), seconds=120.0)
    search, sparse = found.found
    assert found.reason == ""
    assert (search.method, sparse.method) == ("search without a network", "sparse regression")
    # The data are exact: what is left is round-off, of a refit to 1e-9 in the search.
    assert sparse.error < 1e-12
    assert search.error < 1e-6
    assert powers(sparse.messages["z1"]) == {1: pytest.approx(1.0, abs=1e-10)}
    update = parse(sparse.update, output_symbols(("z1",), ()))
    for number in update.atoms(sp.Float):
        assert float(number) == pytest.approx(1.0, abs=1e-10)
    exact = "T + dt*S + dt/V*z1"
    assert update.replace(lambda e: isinstance(e, sp.Float), lambda _: sp.S.One) == parse(
        exact, output_symbols(("z1",), ())
    )
    # The search has Δt/V in its message: with one neighbour nothing says where the sum ends.
    message = parse(search.messages["z1"], message_symbols(Hop.EDGE, ()))
    flux = parse("dt*A/delta*(T_N - T_P)/V_P", message_symbols(Hop.EDGE, ()))
    ratio = sp.simplify(message / flux)
    assert float(ratio) == pytest.approx(1.0, abs=1e-5)


def test_sparse_regression_tells_a_cubic_term() -> None:
    sparse = ablate(spec(data__law=CUBIC), seconds=0.0).found[1]
    assert powers(sparse.messages["z1"]) == {1: pytest.approx(1.0, abs=1e-9), 3: pytest.approx(0.15, abs=1e-9)}
    assert sparse.error < 1e-12


def test_noise_does_not_add_terms() -> None:
    sparse = ablate(spec(data__noise=0.1), seconds=0.0).found[1]
    # 1,000 problems of two cells, 10 % noise: about 0.1/sqrt(2000) = 0.2 %; five times that.
    assert powers(sparse.messages["z1"]) == {1: pytest.approx(1.0, abs=0.011)}
    assert sparse.error == pytest.approx(0.1, rel=0.2)


def test_a_law_outside_the_library_has_an_error() -> None:
    sparse = ablate(spec(data__law="(1 + 0.5*n_x**2)*A/delta*(T_N - T_P)"), seconds=0.0).found[1]
    assert sparse.error > 0.02


def test_without_time_the_search_is_left_out_and_says_so() -> None:
    search = ablate(spec(), seconds=0.0).found[0]
    assert search.note == "no time was left for it"
    document = ablate(recipe.load("first-order-pinn"), seconds=9.0).document()
    assert document == {
        "reason": "without supervised answers there is nothing to regress", "seconds": 0.0, "found": [],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("first-order", {}, ""),
        ("first-order-direct", {}, ""),
        ("midpoint", {}, "supervised"),
        ("generalisation", {}, "pairs"),
        ("first-order", {"network.layers": 2}, "several layers"),
    ],
)
def test_which_recipes_have_ablations(name: str, changes: dict[str, object], said: str) -> None:
    reason = no_ablation(recipe.override(recipe.load(name), changes))
    assert said in reason
    assert bool(said) == bool(reason)


def test_data_without_single_messages_are_not_searched() -> None:
    search = ablate(spec(data__presence=1.0), seconds=30.0).found[0]
    assert search.note == "too few cells of the data have a single message"


def test_a_formula_is_split_into_message_and_cell() -> None:
    names = (*["T_P", "T_N", "A", "delta", "V_P", "S_P", "dt"],)
    stage = split(parse("dt*(S_P + A/delta*(T_N - T_P)/V_P) - 0.5*T_P*dt", names))
    message, output = stage.messages["z1"].expression, stage.outputs["T_new"].expression
    assert sp.simplify(message - parse("dt*A/delta*(T_N - T_P)/V_P", message_symbols(Hop.EDGE, ()))) == 0
    assert sp.simplify(output - parse("T + dt*S - 0.5*T*dt + z1", output_symbols(("z1",), ()))) == 0
    assert not split(parse("dt*S_P", names)).messages


def test_terms_below_the_threshold_are_dropped_until_none_is() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    y = X @ np.array([1.0, 0.0, 0.2, 0.0, 0.01])
    gram, right = X.T @ X / 200, X.T @ y / 200
    kept = [stlsq(gram, right, threshold=each, ridge=1e-12).tolist() for each in (0.001, 0.1, 0.5, 2.0)]
    assert kept == [[1, 0, 1, 0, 1], [1, 0, 1, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0]]
