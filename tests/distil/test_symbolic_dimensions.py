from fractions import Fraction

import pytest
from symbolic_tables import flux_table

from fluxforge.distil import consistent, front_of, measure, units_of
from fluxforge.expression import parse
from fluxforge.pde import Clash, dimensions, unit
from fluxforge.scheme import Hop, message_symbols, output_symbols

NAMES = ("A", "delta", "T_N", "T_P", "T", "S", "dt", "V", "alpha", "z", "d_x")
UNITS = units_of(NAMES)
TEMPERATURE = unit(unknown=1)


def verdict(text, units=UNITS):
    return dimensions(parse(text, NAMES), units)


def test_units_of_a_scheme_in_two_dimensions():
    assert verdict("alpha*A/delta*(T_N - T_P)") == unit(length=2, time=-1, unknown=1)
    assert verdict("dt*alpha/V") == unit()
    assert verdict("T + dt*S") == TEMPERATURE
    assert verdict("sqrt(V)") == unit(length=1)
    assert verdict("abs(T_N - T_P)") == TEMPERATURE
    assert verdict("V**(1/3)").length == Fraction(2, 3)
    assert str(verdict("S/V")) == "L^-2 t^-1 Θ"


def test_every_symbol_of_a_scheme_but_sums_of_messages_has_a_unit():
    names = {*output_symbols(["z"], []), *(name for hop in Hop for name in message_symbols(hop, []))}
    assert names - set(units_of(tuple(names))) == {"z"}


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("T + S", "S + T"),
        ("dt*(T + S*dt + V)", "S*dt + T + V"),
        ("A + 1", "A + 1"),
        ("0.3*A*(T_N - delta)", "T_N - delta"),
        ("2*T - 3*S", "2*T - 3*S"),
        ("exp(T)", "exp(T)"),
        ("1/(A + T)", "A + T"),
    ],
)
def test_a_sum_of_different_units_is_named(text, where):
    clash = verdict(text)
    assert isinstance(clash, Clash)
    assert clash.where == where
    assert len(set(clash.found)) > 1
    assert where in str(clash)


def test_a_fitted_constant_carries_the_unit_that_is_missing():
    assert verdict("0.3*A/delta*(T_N - T_P)") is None
    assert verdict("T + 0.3*S") == TEMPERATURE
    assert verdict("T + 0.3") == TEMPERATURE
    assert verdict("T + dt*(2.1*z/V + S)") == TEMPERATURE
    assert verdict("exp(0.3*T)") == unit()


def test_a_symbol_without_a_unit_may_have_any():
    assert verdict("T + dt/V*z") == TEMPERATURE
    known = {**UNITS, "z": unit(length=2, unknown=1)}
    assert isinstance(verdict("T + dt/V*z", known), Clash)
    known["z"] = unit(length=2, time=-1, unknown=1)
    assert verdict("T + dt/V*z", known) == TEMPERATURE


def test_inconsistent_candidates_are_pruned_from_a_front():
    table = flux_table()
    texts = ("T_N", "T_N - A", "0.3*A/delta*(T_P - T_N)")
    front = front_of(measure(parse(text, table.names), table) for text in texts)
    assert len(front) >= 2
    kept = consistent(front, units_of(table.names))
    assert [c.text for c in kept] == [c.text for c in front if c.text != "T_N - A"]
