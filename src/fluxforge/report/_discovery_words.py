"""The words of a discovery's page: its question, its letters and its physics, as the run's equation has them."""

from collections.abc import Mapping, Sequence
from typing import Any

from fluxforge.pde import Equation
from fluxforge.report._discovery_figures import terms
from fluxforge.scheme import Hop, Scheme

Record = Mapping[str, Any]
LEARNED_FROM = {
    frozenset({"supervised"}): "was shown examples of single steps",
    frozenset({"residual"}): "was shown {equation} and no scheme",
    frozenset({"supervised", "residual"}): "was shown examples of single steps and {equation}",
}
HEAT = "heat"
# What the letters of a formula stand for, by the name a scheme's text gives them, and how they are set.
LETTERS = {
    "T": ("T", "temperature"),
    "S": ("S", "source"),
    "A": ("A", "length of the shared face"),
    "delta": ("δ", "distance between centres"),
    "n": ("n", "normal of the shared face"),
    "d": ("d", "vector between centres"),
    "V": ("V", "area of a cell"),
    "dt": ("Δt", "time step"),
    "chi": ("χ", "0 at a wall of given flux, 1 elsewhere"),
}
GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "sigma": "σ"}


def equation_name(result: Record) -> str:
    """The name of a run's equation; runs from before there were others are about heat."""
    return str(result.get("equation") or HEAT)


def physics_rows(result: Record) -> list[tuple[str, Any]]:
    """The equation and its parameters as rows of a table; of heat its diffusivity alone."""
    if equation_name(result) == HEAT:
        return [("diffusivity α", result["diffusivity"])] if "diffusivity" in result else []
    return [("equation", equation_name(result)), *(result.get("parameters") or {}).items()]


def question(metrics: Sequence[Record], equation: str) -> str:
    """What a run asked, in a sentence."""
    how = LEARNED_FROM.get(frozenset(terms(metrics)) - {"sparsity"}, "was trained on it")
    how = how.format(equation="the heat equation" if equation == HEAT else f"the equation {equation}")
    what = "temperatures" if equation == HEAT else "values"
    return (
        f"Which formula carries the {what} of a mesh's cells one time step ahead, "
        f"as learned by a small network that sees only cells and their neighbours and {how}?"
    )


def letters(scheme: Scheme) -> list[tuple[str, str]]:
    """The letters that the scheme uses, with their meaning; names of its own sums and outputs are not among them."""
    own = {name for stage in scheme.stages for name in (*stage.messages, *stage.outputs)}
    formulas = [m.expression for stage in scheme.stages for m in stage.messages.values()]
    formulas += [o.expression for stage in scheme.stages for o in stage.outputs.values()]
    symbols = {symbol.name for formula in formulas for symbol in formula.free_symbols}
    used = {name.split("_")[0] for name in symbols - own}
    return [words for name, words in _meanings(scheme.equation).items() if name in used]


def _meanings(equation: Equation) -> dict[str, tuple[str, str]]:
    """How the letters of an equation's schemes are set, and what they stand for."""
    own = {"T": LETTERS["T"] if equation.name == HEAT else ("T", f"the unknown {equation.unknown}")}
    parameters = {p.name: (GREEK.get(p.name, p.name), p.meaning or "a parameter") for p in equation.parameters}
    return {**LETTERS, **own, **parameters}


def reading(scheme: Scheme) -> str:
    """How to read the formula."""
    where = "its neighbours N" if scheme.hops() <= {Hop.EDGE} else "its neighbours N and theirs, Q"
    if len(scheme.stages) > 1:
        return f"In {len(scheme.stages)} rounds, every cell P adds up messages over {where}, and goes on with the sums."
    return f"Every cell P adds up messages over {where}, and takes one step with the sum."
