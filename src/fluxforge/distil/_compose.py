"""Formulas of a network's MLPs → the stages of a scheme, in canonical form; and the choice of formulas by joint loss.

Messages are determined up to a factor, since f_up can undo any factor of f_agg. In the canonical form, the update's
factor of each sum contains no number: the message has the whole constant.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import sympy as sp

from fluxforge import recipe
from fluxforge.data._model import Model, model_of
from fluxforge.data._problem import Problem
from fluxforge.distil._constants import Fitted, refit_constants
from fluxforge.distil._front import Candidate, Front
from fluxforge.distil._objective import Free, set_free
from fluxforge.distil._table import Sampled
from fluxforge.errors import DiscoveryError, SchemeError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import symbol
from fluxforge.gnn._network import F, Network
from fluxforge.pde._equation import Equation
from fluxforge.pde._parameter import Rank, Where
from fluxforge.scheme._scheme import HOP_ENDS, Hop, Message, Output, Stage
from fluxforge.scheme.reference import gradient_names

# A message counts as a difference of fields if its value for equal fields is below this share of its terms.
DIFFERENCE = 0.1


def compose(network: Network, formulas: Mapping[str, sp.Expr]) -> tuple[Stage, ...]:
    """The stages of a network with each MLP replaced by its formula, in the scheme's symbols.

    `formulas` has the formula of each message under the name of its sum, and that of each update under its field.
    """
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


def to_canonical(stages: tuple[Stage, ...], model: Model) -> tuple[Stage, ...]:
    """Fix the gauge, and write the constants of fluxes and reactions relative to the equation's parameters.

    A flux is a message that vanishes where the fields at its ends are equal: it is written with the factor K/c of the
    equation, α of heat. Other messages, such as the sum of the neighbours' values or of their A/δ, and messages that
    contain a parameter, keep their numbers: a factor K would make them wrong at every value but the trained one. In
    outputs, a product of powers that also occurs in the equation's own Δt (r(u) + S)/c is written with the parameters
    it has there; others keep their numbers. Raises SchemeError for an update that is not linear in a sum.
    """
    canonical: list[Stage] = []
    fields = ["T"]
    for stage in stages:
        canonical.append(_canonicalise_stage(stage, model, fields))
        fields += stage.outputs
    return tuple(canonical)


def _canonicalise_stage(stage: Stage, model: Model, fields: Sequence[str]) -> Stage:
    messages, outputs = dict(stage.messages), dict(stage.outputs)
    K = _conductivity(model.equation)
    for name, message in stage.messages.items():
        scale = _scale(name, outputs)
        z = symbol(name)
        outputs = {key: Output(_remove_scale(out.expression, z, scale), out.ghost) for key, out in outputs.items()}
        flux = K is not None and _is_flux(message, model.equation)
        rescaled = scale * message.expression / (_number(K, model) if flux else 1)
        factored = sp.factor_terms(sp.expand(rescaled))
        messages[name] = Message(K * factored if flux else factored, message.hop)
    factors = _list_equation_terms(model.equation, fields)
    outputs = {key: Output(_put_parameters(out.expression, factors, model), out.ghost) for key, out in outputs.items()}
    return Stage(messages, outputs)


def _conductivity(equation: Equation) -> sp.Expr | None:
    """K/c as a formula of constants; None if K is 0 or a tensor, or if K/c depends on the unknown or on the cell."""
    ratio = equation.diffusion / equation.capacity
    constants = {symbol(p.name) for p in equation.parameters if p.rank is Rank.SCALAR and p.where is Where.CONSTANT}
    return ratio if ratio != 0 and ratio.free_symbols <= constants else None


def _list_equation_terms(equation: Equation, fields: Sequence[str]) -> dict[sp.Expr, sp.Expr]:
    """The terms of Δt (r(u) + S)/c, with each field for u, that contain parameters.

    They are given as {product of powers: its factor of parameters and numbers}.
    """
    constants = [symbol(name) for p in equation.parameters for name in p.cell_names]
    factors: dict[sp.Expr, sp.Expr] = {}
    for field in fields:
        total = equation.at_cell(equation.reaction, symbol(field)) + symbol("S")
        terms = sp.Add.make_args(sp.expand(symbol("dt") * total / equation.at_cell(equation.capacity, symbol(field))))
        rests: dict[sp.Expr, sp.Expr] = {}
        for term in terms:
            plain, with_parameters = term.as_independent(*constants, as_Add=False)
            number, rest = plain.as_coeff_Mul()
            if with_parameters.free_symbols <= set(constants):
                rests[rest] = rests.get(rest, sp.S.Zero) + number * with_parameters
        factors |= rests
    return {rest: factor for rest, factor in factors.items() if factor.free_symbols}


def _put_parameters(expression: sp.Expr, factors: Mapping[sp.Expr, sp.Expr], model: Model) -> sp.Expr:
    """The expression with `factors` in the terms that the equation has, too, and numbers relative to them."""
    if not factors:
        return expression
    terms = []
    for term in sp.Add.make_args(sp.expand(expression)):
        number, rest = term.as_coeff_Mul()
        if rest in factors:
            size = _number(factors[rest], model)
            # Division by an integer keeps an integer exact, so that it is structure and not a constant to be fitted.
            term = (number / int(size) if size == int(size) else number / size) * factors[rest] * rest
        terms.append(term)
    return sp.Add(*terms)


def _number(formula: sp.Expr, model: Model) -> float:
    values = {symbol(name): value for name, value in model.values if isinstance(value, float)}
    return float(formula.xreplace(values))


def _is_flux(message: Message, equation: Equation) -> bool:
    """Whether a message has no parameter, depends on fields, and vanishes where each field is equal at all ends.

    Its constants have not been refitted yet, so that T_N − 1.02 T_P counts as a difference: the sum of the terms is
    compared with their size, at random geometries and fields.
    """
    expression, hop = message.expression, message.hop
    symbols = sorted(expression.free_symbols, key=str)
    parameters = {symbol(name) for p in equation.parameters for name in p.edge_names()}
    if expression.free_symbols & parameters or all(_field_name(each.name, hop) is None for each in symbols):
        return False
    rng = np.random.default_rng(0)
    # Gradients vanish where T is constant.
    draws = dict.fromkeys(gradient_names(3), np.zeros(32))
    # The same draws for a field at every end.
    values = {
        each: draws.setdefault(_field_name(each.name, hop) or each.name, rng.uniform(0.3, 1.7, 32)) for each in symbols
    }
    with np.errstate(all="ignore"):
        terms = np.array(
            [evaluate(term, values, np) + np.zeros(32) for term in sp.Add.make_args(sp.expand(expression))]
        )
    left, size = np.abs(terms.sum(axis=0)).sum(), np.abs(terms).sum()
    return bool(left <= DIFFERENCE * size)


def _field_name(name: str, hop: Hop) -> str | None:
    """The field of which a symbol is the value at an end, T of T_N; None for geometry, which includes volumes."""
    stem, _, end = name.rpartition("_")
    return stem if end in HOP_ENDS[hop] and stem != "V" else None


def _scale(name: str, outputs: Mapping[str, Output]) -> sp.Expr:
    """Numerical factor of the sum `name` in the first output that contains it; 1 if none does."""
    z = symbol(name)
    if bent := next((out for out in outputs.values() if sp.diff(sp.expand(out.expression), z).has(z)), None):
        raise SchemeError(f"the update is not linear in the sum {name!r}: {bent.expression}")
    for output in outputs.values():
        slope = sp.expand(output.expression).coeff(z, 1)
        if slope != 0:
            return sp.factor_terms(sp.expand(slope)).as_coeff_Mul()[0]
    return sp.Integer(1)


def _remove_scale(expression: sp.Expr, z: sp.Symbol, scale: sp.Expr) -> sp.Expr:
    """The expression with the factor of z divided by the scale, exactly: a number equal to it becomes 1, not 0.9999…"""
    expanded = sp.expand(expression)
    slope = expanded.coeff(z, 1)
    number, rest = sp.factor_terms(sp.expand(slope)).as_coeff_Mul()
    factor = rest if number == scale else sp.expand(slope / scale)
    return sp.expand(expanded.coeff(z, 0)) + factor * z


# The decrease of log loss that a symbol of complexity must bring, as on a front; losses below FLOOR count as equal.
PRICE = 0.2
FLOOR = 1e-12
# The largest number of combinations of candidates that are fitted.
MOST_TRIES = 12


@dataclass(frozen=True)
class Choice:
    """One formula per MLP, the stages they make with their constants free, and the constants refitted."""

    chosen: Mapping[str, Candidate]
    free: Free
    fitted: Fitted
    tried: int

    @property
    def complexity(self) -> int:
        """The sum over all formulas."""
        return sum(each.complexity for each in self.chosen.values())

    @property
    def score(self) -> float:
        """Log loss plus the price of complexity: the smaller the better."""
        return math.log(max(self.fitted.loss, FLOOR)) + PRICE * self.complexity


def choose(
    network: Network,
    sampled: Sequence[Sampled],
    fronts: Mapping[str, Front],
    *,
    spec: recipe.Recipe,
    samples: Sequence[Problem],
    network_loss: float,
    threshold: float,
) -> Choice:
    """Choose one candidate per MLP: combinations are tried, the simplest first, until one has the network's loss.

    Candidates with errors above the threshold are left out.
    A front alone cannot decide: a message may be multiplied by any function of the receiving cell's data if the update
    divides by it, and trained networks do so by a few per cent. Longer formulas describe that gauge, not the scheme; in
    the composed scheme it cancels, and the refitted short formula has the smaller loss. If no combination does as well
    as the network, the best by log loss plus 0.2 per symbol is returned. Raises DiscoveryError if a part has no
    candidate.
    """
    worthy = {name: [each for each in front if each.error <= threshold] for name, front in fronts.items()}
    if short := [name for name, candidates in worthy.items() if not candidates]:
        raise DiscoveryError(
            f"no formula for {short[0]!r} is within {threshold:g} of the network: the best has an error of "
            f"{fronts[short[0]].best_error:.3g}; train longer, or search longer"
        )
    meanings = {each.name: each for each in sampled}
    combinations = sorted(itertools.product(*worthy.values()), key=lambda some: sum(each.complexity for each in some))
    best: Choice | None = None
    for tried, some in enumerate(combinations[:MOST_TRIES], start=1):
        chosen = dict(zip(worthy, some, strict=True))
        formulas = {name: meanings[name].translate(each.expression) for name, each in chosen.items()}
        try:
            stages = to_canonical(compose(network, formulas), model_of(spec))
            stages = (*(each.stage for each in network.before), *stages)
        except SchemeError:
            continue
        free = set_free(stages)
        choice = Choice(chosen, free, refit_constants(free, spec.loss, samples), tried)
        if best is None or choice.score < best.score:
            best = choice
        if choice.fitted.loss <= network_loss:
            return choice
    if best is None:
        raise DiscoveryError(
            "none of the formulas found can be composed into a scheme: no update is linear in its sums"
        )
    return best
