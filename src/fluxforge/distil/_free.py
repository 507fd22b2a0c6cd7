"""Stages whose numbers are symbols, to be fitted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import sympy as sp

from fluxforge.scheme import Message, Output, Stage, symbol


@dataclass(frozen=True)
class Free:
    """Stages whose numbers are symbols c1, c2, …, and the values they had."""

    stages: tuple[Stage, ...]
    values: Mapping[str, float]

    def filled(self, values: Mapping[str, sp.Expr | float]) -> tuple[Stage, ...]:
        """The stages with numbers in place of the symbols."""
        known = {symbol(name): sp.Float(value) if isinstance(value, float) else value for name, value in values.items()}
        return _mapped(self.stages, lambda expression: expression.subs(known))


def set_free(stages: tuple[Stage, ...]) -> Free:
    """Every decimal number becomes a constant; whole numbers are structure. Equal numbers stay apart."""
    values: dict[str, float] = {}

    def freed(expression: sp.Expr) -> sp.Expr:
        if isinstance(expression, sp.Float):
            name = f"c{len(values) + 1}"
            values[name] = float(expression)
            return symbol(name)
        if not expression.args:
            return expression
        return expression.func(*(freed(each) for each in expression.args))

    return Free(_mapped(stages, freed), values)


def _mapped(stages: tuple[Stage, ...], change: Callable[[sp.Expr], sp.Expr]) -> tuple[Stage, ...]:
    return tuple(
        Stage(
            {name: Message(change(each.expression), each.hop) for name, each in stage.messages.items()},
            {name: Output(change(each.expression), each.ghost) for name, each in stage.outputs.items()},
        )
        for stage in stages
    )
