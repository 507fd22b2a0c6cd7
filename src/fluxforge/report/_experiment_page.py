"""A discovery by experiments as one self-contained HTML page."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup

from fluxforge._files import write_text
from fluxforge.certify import Certificate, summarise
from fluxforge.report._certificate_page import formula_lines, shown_lines
from fluxforge.report._mathml import typeset, typeset_text
from fluxforge.report._page import page
from fluxforge.scheme import Scheme

_SENTENCES = {
    "recovered": "A formula of the flux was recovered: it agrees with the experiments within their errors.",
    "approximation": "The formula is an approximation of the flux: its error is {error:.1e} of the fluxes.",
    "refused": "No formula of the flux was accepted.",
}


def write_experiment(
    document: Mapping[str, Any],
    folder: Path,
    *,
    scheme: Scheme | None,
    certificate: Certificate | None,
    command: str = "",
) -> list[Path]:
    """Write `report.html`; returns its path."""
    path = folder / "report.html"
    write_text(path, experiment_page(document, scheme=scheme, certificate=certificate, command=command))
    return [path]


def experiment_page(
    document: Mapping[str, Any], *, scheme: Scheme | None, certificate: Certificate | None, command: str = ""
) -> str:
    """The page as text."""
    found = document["experiment"]
    error = found.get("error")
    return page(
        "experiment.html",
        result=document,
        found={
            "g": None,
            "flux": None,
            "error": None,
            "worst": None,
            "share": None,
            "textbook": None,
            "processor": "",
            **found,
        },
        data=found["data"],
        sentence=_SENTENCES[document["verdict"]].format(error=float("nan") if error is None else error),
        flux=_math("F = ", found.get("flux")),
        g=_math("g = ", found.get("g")),
        book=_math("F = ", (found.get("textbook") or {}).get("formula")),
        scheme=scheme,
        typeset=Markup("") if scheme is None else typeset(scheme),
        text=[] if scheme is None else formula_lines(scheme),
        certificate=certificate,
        summary="" if certificate is None or scheme is None else summarise(certificate, scheme),
        lines=[] if certificate is None else shown_lines(certificate),
        fronts=document.get("fronts") or {},
        ablations=(document.get("ablations") or {}).get("found", []),
        seconds=document["seconds"],
        next=_commands(document),
        command=command,
    )


def _math(before: str, text: str | None) -> Markup | str:
    return "" if text is None else typeset_text(before + text)


def _commands(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    if not document.get("recovered"):
        return []
    return [
        ("Run it on a mesh", "fluxforge simulate RUN --mesh plate.msh"),
        ("Certify it in full", "fluxforge verify RUN"),
        ("Write it as C", "fluxforge export RUN --to c"),
    ]
