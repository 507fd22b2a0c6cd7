"""Formulas without a network: the flux of heat by both methods, another law as itself, none without a budget."""

import numpy as np
import pytest
import sympy as sp

from fluxforge import recipe
from fluxforge.distil import ablate, no_ablation
from fluxforge.distil._ablation import split_change
from fluxforge.distil._sparse import Edges, evaluate_terms, fit_sparse, stlsq
from fluxforge.expression import evaluate, parse, to_text
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
    ablations = ablate(spec())
    search, sparse = ablations.found
    assert ablations.reason == ""
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
    _, sparse = ablate(spec(data__law=CUBIC, data__faces="none", search__evaluations=1, search__restarts=1)).found
    assert powers(sparse.messages["z1"]) == {1: pytest.approx(1.0, abs=1e-9), 3: pytest.approx(0.15, abs=1e-9)}
    assert sparse.error < 1e-12


def random_edges(law: str, *, seed: int, noise: float = 0.0) -> Edges:
    """Cells with one to three neighbours of random geometry; (T' − T)/Δt = 1/V Σ law + S, with relative noise."""
    rng = np.random.default_rng(seed)
    shape = (2_000, 3)
    sizes = {name: rng.uniform(0.5, 2.0, shape) for name in ("A", "delta")}
    cell = {name: np.repeat(rng.uniform(*reach, (2_000, 1)), 3, axis=1) for name, reach in CELL.items()}
    values = {symbol(name): each for name, each in {**sizes, **cell, "T_N": rng.uniform(-1, 1, shape)}.items()}
    mask = rng.uniform(size=shape) < [1.0, 0.7, 0.7]
    known = {**values, symbol("n_x"): np.cos(rng.uniform(0, 6.28, shape))}
    sent = np.where(mask, evaluate(parse(law, message_symbols(Hop.EDGE, ())), known, np), 0.0).sum(axis=1)
    V, S, dt = (cell[name][:, 0] for name in ("V_P", "S_P", "dt"))
    change = dt * (sent / V + S)
    spoilt = change + noise * np.sqrt(np.mean(change**2)) * rng.normal(size=len(dt))
    return Edges(values, mask, spoilt, dt)


CELL = {"V_P": (0.5, 2.0), "S_P": (-1.0, 1.0), "dt": (0.05, 0.1), "T_P": (-1.0, 1.0)}
FLUX = "A/delta*(T_N - T_P)"


def test_noise_does_not_add_terms() -> None:
    sparse = fit_sparse(*(random_edges(FLUX, seed=seed, noise=0.1) for seed in (0, 1)))
    stage = sparse.stage()
    assert len(sparse.terms) == 2
    # 2,000 cells, 10 % noise: a coefficient is known to about 0.1/sqrt(2000) = 0.2 %; five times that.
    assert powers(to_text(stage.messages["z1"].expression)) == {1: pytest.approx(1.0, abs=0.011)}


def test_a_law_outside_the_library_is_not_taken_for_heat() -> None:
    directional = [random_edges(f"(1 + 0.5*n_x**2)*{FLUX}", seed=seed) for seed in (0, 1)]
    sparse = fit_sparse(*directional)
    rate = evaluate_terms(directional[1], [term for _, term in sparse.terms]) @ [number for number, _ in sparse.terms]
    off = directional[1].change - directional[1].dt * rate
    assert np.linalg.norm(off) / np.linalg.norm(directional[1].change) > 0.02


def test_a_recipe_without_ablations_says_so() -> None:
    document = ablate(recipe.load("first-order-pinn")).document()
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


def test_a_formula_is_split_into_message_and_cell() -> None:
    names = (*["T_P", "T_N", "A", "delta", "V_P", "S_P", "dt"],)
    stage = split_change(parse("dt*(S_P + A/delta*(T_N - T_P)/V_P) - 0.5*T_P*dt", names))
    message, output = stage.messages["z1"].expression, stage.outputs["T_new"].expression
    assert sp.simplify(message - parse("dt*A/delta*(T_N - T_P)/V_P", message_symbols(Hop.EDGE, ()))) == 0
    assert sp.simplify(output - parse("T + dt*S - 0.5*T*dt + z1", output_symbols(("z1",), ()))) == 0
    assert not split_change(parse("dt*S_P", names)).messages


def test_terms_below_the_threshold_are_dropped_until_none_is() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    y = X @ np.array([1.0, 0.0, 0.2, 0.0, 0.01])
    gram, right = X.T @ X / 200, X.T @ y / 200
    kept = [stlsq(gram, right, threshold=each, ridge=1e-12).tolist() for each in (0.001, 0.1, 0.5, 2.0)]
    assert kept == [[1, 0, 1, 0, 1], [1, 0, 1, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0]]
