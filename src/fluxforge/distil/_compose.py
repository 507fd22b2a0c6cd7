"""Formulas of a network's parts → the stages of a scheme, in canonical form.

Messages are determined up to scale: whatever factor f_agg has, f_up undoes. The canonical form is the one in which the
update's factor of each sum carries no number, so that all of it is in the message.
"""

from collections.abc import Mapping

import numpy as np
import sympy as sp

from fluxforge.errors import SchemeError
from fluxforge.expression import evaluate
from fluxforge.gnn import F, Network
from fluxforge.scheme import Hop, Message, Output, Stage, gradient_names, symbol
from fluxforge.scheme._symbols import ENDS

# A message is a difference of fields if equal ones leave less than this share of its terms.
DIFFERENCE = 0.1


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
    """The gauge fixed, and fluxes written with α: the number left in each is relative to α.

    A flux is a message that vanishes where the fields at its ends are equal. Others, such as the sum of the neighbours'
    values or of their A/δ, and messages with an α of their own, keep their numbers: a factor α would make them wrong
    at every diffusivity but the trained one.
    """
    return tuple(_canonical(stage, diffusivity) for stage in stages)


def _canonical(stage: Stage, diffusivity: float) -> Stage:
    messages, outputs = dict(stage.messages), dict(stage.outputs)
    for name, message in stage.messages.items():
        scale = _scale(name, outputs)
        z = symbol(name)
        outputs = {key: Output(_unscaled(out.expression, z, scale), out.ghost) for key, out in outputs.items()}
        flux = _is_flux(message)
        scaled = scale * message.expression / (diffusivity if flux else 1)
        factored = sp.factor_terms(sp.expand(scaled))
        messages[name] = Message(symbol("alpha") * factored if flux else factored, message.hop)
    return Stage(messages, outputs)


def _is_flux(message: Message) -> bool:
    """Whether a message without α depends on fields, and vanishes where each has one value at all ends.

    Its constants are still to be refitted, so that T_N − 1.02 T_P is taken for a difference: what is left of the terms
    is compared with their size, at random geometries and fields.
    """
    expression, hop = message.expression, message.hop
    symbols = sorted(expression.free_symbols, key=str)
    if expression.has(symbol("alpha")) or all(_field(each.name, hop) is None for each in symbols):
        return False
    rng = np.random.default_rng(0)
    # Gradients vanish where T has one value.
    draws = dict.fromkeys(gradient_names(3), np.zeros(32))
    # The same draws for a field at every end.
    values = {
        each: draws.setdefault(_field(each.name, hop) or each.name, rng.uniform(0.3, 1.7, 32)) for each in symbols
    }
    with np.errstate(all="ignore"):
        terms = np.array(
            [evaluate(term, values, np) + np.zeros(32) for term in sp.Add.make_args(sp.expand(expression))]
        )
    left, size = np.abs(terms.sum(axis=0)).sum(), np.abs(terms).sum()
    return bool(left <= DIFFERENCE * size)


def _field(name: str, hop: Hop) -> str | None:
    """T of T_N: the field whose value at an end a symbol is; None for geometry, cell volumes included."""
    stem, _, end = name.rpartition("_")
    return stem if end in ENDS[hop] and stem != "V" else None


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
