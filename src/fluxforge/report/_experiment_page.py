"""A discovery by experiments as one self-contained HTML page."""

import math
from pathlib import Path

from markupsafe import Markup

from fluxforge.certify._certificate import Certificate
from fluxforge.report._certificate_page import formula_lines
from fluxforge.report._next import describe_scheme
from fluxforge.report._page import page, set_text, typeset, typeset_equation, write_report
from fluxforge.run.result import Discovery
from fluxforge.scheme._scheme import Scheme

_SENTENCES = {
    "recovered": "A formula of the flux was recovered: it agrees with the experiments within their errors.",
    "approximation": "The formula is an approximation of the flux: its error is {error:.1e} of the fluxes.",
    "refused": "No formula of the flux was accepted.",
}


def write_experiment(
    result: Discovery,
    folder: Path,
    *,
    scheme: Scheme | None,
    certificate: Certificate | None,
    command: str = "",
) -> list[Path]:
    """Write `report.html`; return its path."""
    return write_report(folder, experiment_page(result, scheme=scheme, certificate=certificate, command=command), {})


def experiment_page(
    result: Discovery, *, scheme: Scheme | None, certificate: Certificate | None, command: str = ""
) -> str:
    """The page as HTML text; raises ValueError for a result without experiments or verdict."""
    experiment = result.experiment
    if experiment is None or result.verdict is None:
        raise ValueError(f"the result of recipe {result.recipe!r:.60} has no experiments or no verdict")
    return page(
        "experiment.html",
        result=result,
        experiment=experiment,
        sentence=_SENTENCES[result.verdict].format(error=math.nan if experiment.error is None else experiment.error),
        flux=_typeset_formula("F = ", experiment.flux),
        form=set_text(f"F = {experiment.form}".replace(")*g(", ") g(")),
        g=_typeset_formula("g = ", experiment.g),
        book=_typeset_formula("F = ", None if experiment.textbook is None else experiment.textbook.formula),
        scheme=scheme,
        typeset=Markup("") if scheme is None else typeset(scheme),
        text=[] if scheme is None else formula_lines(scheme),
        fronts=result.fronts or {},
        ablations=() if result.ablations is None else result.ablations.found,
        **describe_scheme(result, scheme, certificate, command=command, initial="x*y"),
    )


def _typeset_formula(before: str, text: str | None) -> Markup | str:
    return "" if text is None else typeset_equation(before + text)
