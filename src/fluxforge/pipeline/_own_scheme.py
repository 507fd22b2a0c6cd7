"""Whether a formula is one of the schemes that a time integrator makes of the recipe's equation."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import equinox as eqx
import jax
import numpy as np

from fluxforge import recipe
from fluxforge._types import State
from fluxforge.data import Problem
from fluxforge.graph import evaluate_stages
from fluxforge.pipeline._found import Found
from fluxforge.pipeline._small_steps import judged_steps, problems_by_step
from fluxforge.scheme import TABLEAUX, Hop, Scheme, integrate

Step: TypeAlias = Callable[[Problem], State]
# Steps that differ by less than this part of their largest change are the same: round-off of u' = u + Δt(…) is 1e-16 u,
# and a change at the shortest Δt trained with, 1e-2 of u.
SAME = 1e-9
# Parameters are moved by these factors, in turn: a formula with numbers in place of a parameter is then another scheme.
FACTORS = (1.37, 0.71, 1.13)
PROBLEMS = 64
_NUMBER = 2**29 + 2**21


def matching_scheme(found: Found, spec: recipe.Recipe) -> str | None:
    """The name of the explicit scheme of the recipe's equation that the formula is, whatever it is written like.

    Both are evaluated on random problems of the recipe, at the values of the parameters and at others. None where no
    built-in integrator of as many rounds does the same.
    """
    equation = recipe.equation_of(spec)
    rounds = sum(1 if all(m.hop is Hop.EDGE for m in stage.messages.values()) else 2 for stage in found.stages)
    with jax.enable_x64(True):
        longest = judged_steps(spec)[0]
        here = problems_by_step(spec, (longest,), PROBLEMS, _NUMBER)[longest]
        asked = (here, _with_other_parameters(here))
        theirs = [_answers(found.step, problems) for problems in asked]
        for tableau in TABLEAUX.values():
            if tableau.theta != 0 or len(tableau.rows) != rounds:
                continue
            ours = [_answers(_step(integrate(tableau, equation)), problems) for problems in asked]
            if all(_is_same(*each) for each in zip(theirs, ours, asked, strict=True)):
                return tableau.name
    return None


def describe_match(name: str | None, spec: recipe.Recipe) -> str:
    """The same in words."""
    equation = recipe.equation_of(spec).name
    if name is None:
        return f"as printed it is no built-in scheme of the equation {equation!r}"
    return f"as printed it is the scheme {name!r} of the equation {equation!r}"


def _step(scheme: Scheme) -> Step:
    return lambda p: evaluate_stages(scheme.stages, p.graph, p.T, p.S, parameters=p.named)


def _with_other_parameters(problems: Problem) -> Problem:
    moved = {
        name: value * FACTORS[k % len(FACTORS)] for k, (name, value) in enumerate(sorted(problems.parameters.items()))
    }
    return replace(problems, parameters=moved)


def _answers(step: Step, problems: Problem) -> np.ndarray:
    return np.asarray(eqx.filter_jit(jax.vmap(step))(problems))


def _is_same(theirs: np.ndarray, ours: np.ndarray, problems: Problem) -> bool:
    live = np.asarray(problems.graph.live)
    change = np.abs(ours - np.asarray(problems.T))[live].max()
    # Not `>`: a step that is no number is not the same.
    return bool(np.abs(theirs - ours)[live].max() <= SAME * change)
