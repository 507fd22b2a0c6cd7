"""A network that predicts T' itself: all of the update is found, none of it built in."""

import jax
import pytest
import sympy as sp

from fluxforge import recipe
from fluxforge.data import source
from fluxforge.distil import Search, choose, engine, sample, search_front
from fluxforge.expression import parse
from fluxforge.gnn import F, build
from fluxforge.scheme import output_symbols
from fluxforge.train import train


def test_the_direct_recipe_builds_nothing_in() -> None:
    forms = {
        name: build(recipe.load(name).network, jax.random.key(0)).layers[0].update.forms
        for name in ("first-order", "first-order-direct")
    }
    assert forms["first-order-direct"] == (F,)
    T, dt, V = (output_symbols((), ())[name] for name in ("T", "dt", "V"))
    assert forms["first-order"] == (T + dt / V * F,)


@pytest.mark.slow
def test_all_of_the_first_order_update_is_found() -> None:
    """The shipped recipe, from training to the composed formula."""
    spec = recipe.load("first-order-direct")
    network = train(spec, source(spec)).member(0)
    problems = source(spec).batch(jax.random.key(1), 2000)
    sampled = sample(network, problems, rows=2000)
    fronts = {each.name: search_front(engine("operon"), each.table, Search(seconds=60.0), seed=0) for each in sampled}
    with jax.enable_x64(True):
        sets = [source(spec, dtype="float64").batch(jax.random.key(2), 512)]
        # The network's own loss is about 4e-3.
        choice = choose(network, sampled, fronts, spec=spec, samples=sets, network_loss=1e-2, threshold=0.1)
    (stage,) = choice.free.fill_constants(choice.fitted.chosen)
    update = stage.outputs["T_new"].expression
    assert sp.simplify(update - parse("T + dt/V*z1 + dt*S", output_symbols(("z1",), ()))) == 0
    assert choice.fitted.loss < 1e-12
