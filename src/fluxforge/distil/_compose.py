"""Formulas of a network's parts → the stages of a scheme, in canonical form.

Messages are determined up to scale: whatever factor f_agg has, f_up undoes. The canonical form is the one in which the
update's factor of each sum carries no number, so that all of it is in the message.
"""

from collections.abc import Mapping

import sympy as sp

from fluxforge.errors import SchemeError
from fluxforge.gnn import F, Network
from fluxforge.scheme import Message, Output, Stage, symbol


def compose(network: Network, formulas: Mapping[str, sp.Expr]) -> tuple[Stage, ...]:
    """Each MLP replaced by its formula, given in the scheme's symbols under the name of the sum or field it makes."""
    stages = []
    for layer in network.layers:
        messages = {name: Message(formulas[name], each.hop) for each in layer.messages for name in each.names}
        update = layer.update
        outputs = {
            name: Output(sp.expand(form.subs(F, formulas[name])), ghost)
            for name, form, ghost in zip(update.names, update.forms, update.ghosts, strict=True)
        }
        stages.append(Stage(messages, outputs))
    return tuple(stages)


def canonical(stages: tuple[Stage, ...], *, diffusivity: float) -> tuple[Stage, ...]:
    """The gauge fixed, and messages written with α: the number left in each is relative to α."""
    return tuple(_canonical(stage, diffusivity) for stage in stages)


def _canonical(stage: Stage, diffusivity: float) -> Stage:
    messages, outputs = dict(stage.messages), dict(stage.outputs)
    for name, message in stage.messages.items():
        scale = _scale(name, outputs)
        z = symbol(name)
        outputs = {key: Output(_unscaled(out.expression, z, scale), out.ghost) for key, out in outputs.items()}
        factored = sp.factor_terms(sp.expand(scale * message.expression / diffusivity))
        messages[name] = Message(symbol("alpha") * factored, message.hop)
    return Stage(messages, outputs)


def _scale(name: str, outputs: Mapping[str, Output]) -> sp.Expr:
    """The number in front of a sum, in the first output that has it; a sum nobody reads has none."""
    z = symbol(name)
    if bent := next((out for out in outputs.values() if sp.diff(sp.expand(out.expression), z).has(z)), None):
        raise SchemeError(f"the update is not linear in the sum {name!r}: {bent.expression}")
    for output in outputs.values():
        slope = sp.expand(output.expression).coeff(z, 1)
        if slope != 0:
            return sp.factor_terms(sp.expand(slope)).as_coeff_Mul()[0]
    return sp.Integer(1)


def _unscaled(expression: sp.Expr, z: sp.Symbol, scale: sp.Expr) -> sp.Expr:
    """The sum's factor divided by the scale, exactly: a number that was the scale is gone, not 0.9999…"""
    expanded = sp.expand(expression)
    slope = expanded.coeff(z, 1)
    number, rest = sp.factor_terms(sp.expand(slope)).as_coeff_Mul()
    factor = rest if number == scale else sp.expand(slope / scale)
    return sp.expand(expanded.coeff(z, 0)) + factor * z
