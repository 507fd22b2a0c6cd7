"""A scheme as affine maps of its fields, with geometric coefficients."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import sympy as sp

from fluxforge.expression._symbols import symbol
from fluxforge.scheme._scheme import Scheme, Stage
from fluxforge.scheme._symbols import ALL_ENDS, NODE_FIELDS, Hop, Reduction


@dataclass(frozen=True)
class Affine:
    """Σ coefficients[s] · s + constant, every coefficient free of fields."""

    coefficients: Mapping[sp.Symbol, sp.Expr]
    constant: sp.Expr


@dataclass(frozen=True)
class LinearStage:
    """A stage of a linear scheme. Parts that do not depend on T or S stay expressions, to be evaluated once."""

    fixed_messages: Mapping[str, tuple[Hop, sp.Expr]]
    fixed_outputs: Mapping[str, sp.Expr]
    messages: Mapping[str, tuple[Hop, Affine]]
    outputs: Mapping[str, Affine]


@lru_cache(maxsize=256)
def linear_stages(scheme: Scheme) -> tuple[LinearStage, ...] | None:
    """The scheme as affine maps of T, S and earlier outputs, or None where it is not linear in them."""
    varying = set(NODE_FIELDS)
    stages: list[LinearStage] = []
    for stage in scheme.stages:
        linear = _linear_stage(stage, varying)
        if linear is None:
            return None
        varying |= set(linear.outputs)
        stages.append(linear)
    return tuple(stages)


def _linear_stage(stage: Stage, varying: set[str]) -> LinearStage | None:
    ends = {symbol(f"{name}_{end}") for name in varying for end in ALL_ENDS}
    fixed_messages: dict[str, tuple[Hop, sp.Expr]] = {}
    messages: dict[str, tuple[Hop, Affine]] = {}
    if any(message.reduction is not Reduction.SUM for message in stage.messages.values()):
        return None
    for name, message in stage.messages.items():
        if not message.expression.free_symbols & ends:
            fixed_messages[name] = (message.hop, message.expression)
        elif (affine := affine_form(message.expression, ends)) is not None:
            messages[name] = (message.hop, affine)
        else:
            return None
    here = {symbol(name) for name in (*varying, *messages)}
    fixed_outputs: dict[str, sp.Expr] = {}
    outputs: dict[str, Affine] = {}
    for name, output in stage.outputs.items():
        if not output.expression.free_symbols & here:
            fixed_outputs[name] = output.expression
        elif (affine := affine_form(output.expression, here)) is not None:
            outputs[name] = affine
        else:
            return None
    return LinearStage(fixed_messages, fixed_outputs, messages, outputs)


def affine_form(expression: sp.Expr, variables: set[sp.Symbol]) -> Affine | None:
    """Split an expression into coefficients of the variables and a constant; None where it is not affine in them."""
    present = sorted(expression.free_symbols & variables, key=str)
    # Derivatives of nested extremes take SymPy very long, and no function of a field is affine in it.
    if any(part.free_symbols & variables for part in expression.atoms(sp.Function, sp.Min, sp.Max)):
        return None
    coefficients = {}
    for variable in present:
        slope = sp.diff(expression, variable)
        if slope.free_symbols & variables or slope.has(sp.Derivative, sp.Subs):
            slope = sp.cancel(sp.expand(slope))
        if slope.free_symbols & variables:
            return None
        coefficients[variable] = slope
    constant = expression.xreplace(dict.fromkeys(present, sp.Integer(0)))
    if constant.has(sp.nan, sp.zoo, sp.oo):
        return None
    return Affine(coefficients, constant)
