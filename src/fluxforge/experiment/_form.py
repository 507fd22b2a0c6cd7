"""The form of a flux: F = offset + Σ weight · g(columns), with one unknown function g of few numbers."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import sympy as sp
from jaxtyping import Float

from fluxforge.experiment._setup import Experiment, Samples
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import symbol


@dataclass(frozen=True)
class Term:
    """weight · g(columns): formulas of the experiment's variables."""

    weight: sp.Expr
    columns: tuple[sp.Expr, ...]


@dataclass(frozen=True)
class Form:
    """F = offset + Σ weight · g(columns).

    `names` are what g calls its columns; `positive` ones span decades, so that a network sees their logarithm.
    """

    names: tuple[str, ...]
    terms: tuple[Term, ...]
    positive: tuple[bool, ...]
    offset: sp.Expr = sp.S.Zero

    def compose(self, g: sp.Expr) -> sp.Expr:
        """The flux, where g is this formula of `names`."""
        parts = [term.weight * _replace(g, dict(zip(self.names, term.columns, strict=True))) for term in self.terms]
        return self.offset + sp.Add(*parts)

    def arrays(self, samples: Samples) -> "FormArrays":
        """The form's numbers in the given experiments."""
        values = {symbol(name): each for name, each in samples.items()}
        count = len(next(iter(samples.values())))

        def number(formula: sp.Expr) -> np.ndarray:
            with np.errstate(all="ignore"):
                return np.broadcast_to(np.asarray(evaluate(formula, values, np), float), count)

        return FormArrays(
            offset=number(self.offset),
            weights=np.stack([number(term.weight) for term in self.terms], axis=1),
            columns=np.stack([np.stack([number(each) for each in term.columns], axis=1) for term in self.terms], 1),
        )


@dataclass(frozen=True, eq=False)
class FormArrays:
    """Offset, weights and columns of a form, by experiment, term and column."""

    offset: Float[np.ndarray, " samples"]
    weights: Float[np.ndarray, "samples terms"]
    columns: Float[np.ndarray, "samples terms columns"]


def _replace(g: sp.Expr, columns: Mapping[str, sp.Expr]) -> sp.Expr:
    return g.subs({symbol(name): column for name, column in columns.items()}, simultaneous=True)


def whole_form(experiment: Experiment) -> Form:
    """Nothing known: F = g(everything)."""
    columns = tuple(each.symbol for each in experiment.variables)
    positive = tuple(each.positive for each in experiment.variables)
    return Form(experiment.names, (Term(sp.S.One, columns),), positive)
