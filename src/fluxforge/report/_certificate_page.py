"""A certificate as one self-contained HTML page."""

import os
from pathlib import Path

from matplotlib.figure import Figure

from fluxforge._files import write_text
from fluxforge.certify import Certificate
from fluxforge.expression import to_text
from fluxforge.report._figures import certificate_figures
from fluxforge.report._page import page, save_figures, shown
from fluxforge.scheme import Scheme

CAPTIONS = {
    "convergence": "Relative error of the steady state against the number of cells, per mesh family: the worse of two "
    "manufactured solutions.",
    "time": "Error in time against the exact solution of the same semi-discrete system.",
    "stability": "The amplification factor on the negative axis, and where its modulus is at most one.",
    "cost": "Error in time against the memory traffic it takes, beside other schemes.",
}


def write_certificate(
    certificate: Certificate, scheme: Scheme, folder: str | os.PathLike[str], *, command: str = ""
) -> list[Path]:
    """Write `certificate.json`, `certificate.html` and each plot as PNG and SVG; return their paths."""
    folder = Path(folder)
    certificate.save(folder / "certificate.json")
    figures = certificate_figures(certificate)
    write_text(folder / "certificate.html", certificate_page(certificate, scheme, figures, command=command))
    return [folder / "certificate.json", folder / "certificate.html", *save_figures(figures, folder)]


def certificate_page(certificate: Certificate, scheme: Scheme, figures: dict[str, Figure], *, command: str = "") -> str:
    """The page as text, its pictures inside it."""
    return page(
        "certificate.html",
        certificate=certificate,
        scheme=scheme,
        formula=formula_lines(scheme),
        figures=[
            shown(figure, name, CAPTIONS[name], look="" if len(figure.axes) > 1 else "narrow")
            for name, figure in figures.items()
        ],
        command=command,
    )


def formula_lines(scheme: Scheme) -> list[str]:
    """The stages as text, a message or output a line."""
    lines = []
    for number, stage in enumerate(scheme.stages, start=1):
        for name, message in stage.messages.items():
            lines.append(f"stage {number}   {name} = Σ over {message.hop}s of {to_text(message.expression)}")
        for name, output in stage.outputs.items():
            lines.append(f"stage {number}   {name} = {to_text(output.expression)}")
    if scheme.implicit:
        lines.append(f"implicit  T' − T = (1 − θ)(F(T) − T) + θ(F(T') − T'),  θ = {to_text(scheme.theta)}")
    return lines
