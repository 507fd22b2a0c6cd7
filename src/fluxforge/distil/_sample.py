"""A network's MLPs as tables: what each was given on its own training problems, and what it answered."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from fluxforge.data import Problem
from fluxforge.distil._table import Table, tabulate
from fluxforge.gnn import Network, inputs
from fluxforge.scheme import symbol


@dataclass(frozen=True)
class Sampled:
    """One output of one MLP: the sum or the field it makes, its table, and what each column stands for."""

    name: str
    kind: str
    layer: int
    table: Table
    columns: tuple[sp.Expr, ...]

    def meaning(self, formula: sp.Expr) -> sp.Expr:
        """A formula of the columns as a formula of the scheme's symbols."""
        return formula.subs(dict(zip(map(symbol, self.table.names), self.columns, strict=True)), simultaneous=True)


def sample(network: Network, problems: Problem, *, rows: int, seed: int = 0) -> list[Sampled]:
    """A table per output of every MLP, layer by layer, messages before update; `rows` of each, drawn at random."""
    tables = iter(inputs(network, problems))
    found: list[Sampled] = []
    for number, layer in enumerate(network.layers):
        parts: list[tuple[Any, str]] = [*((m, "message") for m in layer.messages), (layer.update, "update")]
        for part, kind in parts:
            x = next(tables)
            chosen = np.random.default_rng([seed, len(found)]).permutation(len(x))[:rows]
            y = np.asarray(part.f(x[chosen]), float)
            names = tuple(_name(feature, k) for k, feature in enumerate(part.features))
            found += [
                Sampled(name, kind, number, tabulate(names, np.asarray(x[chosen], float), y[:, k]), part.features)
                for k, name in enumerate(part.names)
            ]
    return found


def _name(feature: sp.Expr, k: int) -> str:
    return feature.name if isinstance(feature, sp.Symbol) else f"x{k + 1}"
