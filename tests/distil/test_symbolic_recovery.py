"""The study behind the defaults: the formula is at the knee whatever the gauge, the seed and the network's error."""

import numpy as np
import pytest
from symbolic_tables import flux_table, is_flux, is_update, update_table

from fluxforge.distil import Search, engine, knee

ERRORS = (0.001, 0.01, 0.03)


def gauge(seed, largest):
    rng = np.random.default_rng(1000 + seed)
    return float(rng.uniform(0.1, largest) * rng.choice([-1, 1]))


@pytest.mark.slow
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("seed", range(4))
def test_the_flux_is_recovered(seed, error):
    table = flux_table(c=gauge(seed, 3.0), error=error, seed=seed)
    assert is_flux(knee(engine("operon").fit(table, Search(), seed=seed)).expression)


@pytest.mark.slow
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("kind", ["whole", "change", "rate"])
@pytest.mark.parametrize("seed", range(4))
def test_the_update_is_recovered(seed, kind, error):
    table = update_table(kind, g=gauge(seed, 4.0), error=error, seed=seed)
    assert is_update(kind)(knee(engine("operon").fit(table, Search(), seed=seed)).expression)
