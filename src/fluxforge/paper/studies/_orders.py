"""Observed orders in time and in space from the rows of a convergence study."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fluxforge.certify import Rates


def time_orders(name: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """By mesh, for the free and the driven run: from the steps that are stable, if there are four at least."""
    sizes = dict.fromkeys(row["wanted"] for row in rows if row["scheme"] == name)
    return {
        str(wanted): {kind: _time_order(rows, name=name, wanted=wanted, kind=kind) for kind in ("free", "driven")}
        for wanted in sizes
    }


def _time_order(rows: Sequence[Mapping[str, Any]], *, name: str, wanted: int, kind: str) -> dict[str, Any]:
    chosen = [
        (row["fourier"], row[kind])
        for row in rows
        # A network has no limit to compare with: it is taken at its word as long as it did not blow up.
        if row["scheme"] == name and row["wanted"] == wanted and row["stable"] is not False and row[kind] is not None
    ]
    return _judged(sorted(chosen, reverse=True))


def space_order(name: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """In h = 1/√cells, over the meshes on which nothing blew up."""
    chosen = [(row["cells"] ** -0.5, row["error"]) for row in rows if row["scheme"] == name]
    return _judged([pair for pair in chosen if pair[1] is not None])


def _judged(pairs: Sequence[tuple[float, float]]) -> dict[str, Any]:
    rates = Rates(tuple(size for size, _ in pairs), tuple(error for _, error in pairs))
    found = rates.rates if len(pairs) > 1 else ()
    return {
        "levels": len(pairs),
        "order": rates.order if len(pairs) > 1 else None,
        "rates": [rate if math.isfinite(rate) else None for rate in found],
    }
