"""The words of a discovery's page: its opening sentence, question, letters and physics."""

from collections.abc import Sequence

from fluxforge.certify._certificate import Certificate
from fluxforge.certify._summary import summarise
from fluxforge.pde._equation import Equation
from fluxforge.report._page import Metric, list_terms
from fluxforge.run.result import Discovery
from fluxforge.scheme._scheme import Hop, Scheme

LEARNED_FROM = {
    frozenset({"supervised"}): "was trained on examples of single steps",
    frozenset({"residual"}): "was trained on the residual of {equation}, without any scheme",
    frozenset({"supervised", "residual"}): "was trained on examples of single steps and the residual of {equation}",
}
HEAT = "heat"
PLOTS = {
    "front": "error against complexity",
    "limit": "constants against the step",
    "loss": "training",
    "errors": "errors on unseen meshes",
}
# The letters of formulas, by their names in the text of a scheme: how each is typeset, and its meaning.
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


def label_fronts(result: Discovery) -> dict[str, str]:
    """What the candidates of every MLP are formulas of, by the name of its front.

    It is f (or f1, f2, … of several) for the update of a network that computes T + Δt/V·f, otherwise the name itself.
    """
    fronts = result.fronts or {}
    updates = [name for name, front in fronts.items() if front.kind == "update" and result.update == "residual"]
    learned = {name: "f" if len(updates) == 1 else f"f{k}" for k, name in enumerate(updates, start=1)}
    return {name: learned.get(name, name) for name in fronts}


def define_labels(result: Discovery) -> list[str]:
    """Equations that define those labels that are not names of the result, such as f = (T_new - T)*V/dt."""
    return [f"{label} = ({name} - T)*V/dt" for name, label in label_fronts(result).items() if label != name]


def describe_member(result: Discovery) -> str:
    """Which network of how many was distilled, counted from 1, such as `2 of 4`; empty if it is not known."""
    if result.member is None:
        return ""
    return f"{result.member + 1} of {len(result.skipped)}" if result.skipped else str(result.member + 1)


def equation_name(result: Discovery) -> str:
    """The name of a run's equation; results of older versions, which do not record it, are of the heat equation."""
    return result.equation or HEAT


def physics_rows(result: Discovery) -> list[tuple[str, object]]:
    """Rows of a table: label and value of the equation and its parameters; for heat only of the diffusivity."""
    if equation_name(result) == HEAT:
        return [] if result.diffusivity is None else [("diffusivity α", result.diffusivity)]
    return [("equation", equation_name(result)), *(result.parameters or {}).items()]


def describe_question(metrics: Sequence[Metric], equation: str) -> str:
    """A sentence that states the question of a run: what the network sees, learns from and predicts."""
    how = LEARNED_FROM.get(frozenset(list_terms(metrics)) - {"sparsity"})
    name = "the heat equation" if equation == HEAT else f"the equation {equation}"
    trained = "" if how is None else f" and {how.format(equation=name)}"
    what = "temperatures" if equation == HEAT else "values"
    return (
        f"The question: by which formula does a small network, which sees only cells and their neighbours{trained}, "
        f"advance the {what} of a mesh by one time step?"
    )


def explain_letters(scheme: Scheme) -> list[tuple[str, str]]:
    """The letters in the formulas of a scheme with their meanings, without the names of its messages and outputs."""
    internal = {name for stage in scheme.stages for name in (*stage.messages, *stage.outputs)}
    symbols = {symbol.name for formula in scheme.formulas() for symbol in formula.free_symbols}
    used = {name.split("_")[0] for name in symbols - internal}
    return [words for name, words in _meanings(scheme.equation).items() if name in used]


def _meanings(equation: Equation) -> dict[str, tuple[str, str]]:
    """The letters of an equation's schemes by name: how each is typeset, and its meaning."""
    unknown = {"T": LETTERS["T"] if equation.name == HEAT else ("T", f"the unknown {equation.unknown}")}
    parameters = {p.name: (GREEK.get(p.name, p.name), p.meaning or "a parameter") for p in equation.parameters}
    return {**LETTERS, **unknown, **parameters}


def describe_reading(scheme: Scheme) -> str:
    """A sentence on how a step of the scheme is computed from messages of neighbours."""
    where = "its neighbours N" if scheme.hops() <= {Hop.EDGE} else "its neighbours N and theirs, Q"
    if len(scheme.stages) > 1:
        stages = f"In each of {len(scheme.stages)} stages every cell P sums messages over {where}"
        return f"{stages}; outputs follow from the sums."
    return f"Every cell P sums messages over {where}, and its new value follows from the sum."


def opening_sentence(
    result: Discovery, scheme: Scheme | None, certificate: Certificate | None, stopped: str | None
) -> str:
    """A summary of the certificate, or of why there is none, and the share of the network's step that is explained."""
    least = None if result.explained is None else result.explained.least
    share = "" if least is None else f"The network's step is explained to {_percent(least)} %."
    if scheme is None or certificate is None:
        why = f"the run stopped at {stopped}" if stopped else "no formula was certified"
        return f"{why[0].upper()}{why[1:]}. {share}".strip()
    caution = "" if result.recovered else "Of the candidate, which was not accepted as the network's law: "
    return f"{caution}{summarise(certificate, scheme)} {share}".strip()


def _percent(share: float) -> str:
    """A share in per cent: 100 less the rest with one decimal, as verdicts quote it; at most 99.9 unless it is all."""
    return f"{100.0 if share >= 1.0 else min(100.0 - round(100.0 * (1.0 - share), 1), 99.9):g}"
