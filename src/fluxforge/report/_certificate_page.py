"""A certificate as one self-contained HTML page."""

import io
import os
import re
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib import rc_context
from matplotlib.figure import Figure

from fluxforge._files import write_text
from fluxforge.expression import to_text
from fluxforge.mesh import save_figure
from fluxforge.report._figures import certificate_figures
from fluxforge.scheme import Scheme
from fluxforge.verify import Certificate, Verdict

CLASSES = {
    Verdict.HOLDS: "holds",
    Verdict.FAILS: "fails",
    Verdict.MEASURED: "measured",
    Verdict.UNKNOWN: "unknown",
}
CAPTIONS = {
    "convergence": "Relative error of the steady state against the number of cells, per mesh family.",
    "time": "Error in time against the exact solution of the same semi-discrete system.",
    "stability": "The amplification factor on the negative axis, and where its modulus is at most one.",
    "cost": "Error in time against the memory traffic it takes, beside other schemes.",
}


@dataclass(frozen=True)
class _Shown:
    svg: str
    caption: str
    wide: bool


def write_certificate(
    certificate: Certificate, scheme: Scheme, folder: str | os.PathLike[str], *, command: str = ""
) -> list[Path]:
    """Write `certificate.json`, `certificate.html` and each plot as PNG and SVG; return their paths."""
    folder = Path(folder)
    certificate.save(folder / "certificate.json")
    written = [folder / "certificate.json", folder / "certificate.html"]
    figures = certificate_figures(certificate)
    write_text(folder / "certificate.html", certificate_page(certificate, scheme, figures, command=command))
    for name, figure in figures.items():
        for suffix in (".png", ".svg"):
            save_figure(figure, folder / f"{name}{suffix}", dpi=130)
            written.append(folder / f"{name}{suffix}")
    return written


def certificate_page(certificate: Certificate, scheme: Scheme, figures: dict[str, Figure], *, command: str = "") -> str:
    """The page as text, its pictures inside it."""
    environment = Environment(loader=PackageLoader("fluxforge.report"), autoescape=True, undefined=StrictUndefined)
    return environment.get_template("certificate.html").render(
        certificate=certificate,
        scheme=scheme,
        formula=formula_lines(scheme),
        classes=CLASSES,
        figures=[_Shown(_svg(figure, name), CAPTIONS[name], len(figure.axes) > 1) for name, figure in figures.items()],
        version=version("fluxforge"),
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


def _svg(figure: Figure, name: str) -> str:
    """The figure inline: no XML head, and identifiers of its own so that figures on one page do not meet."""
    buffer = io.StringIO()
    with rc_context({"svg.hashsalt": name, "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return re.sub(r"\s(width|height)=\"[\d.]+pt\"", "", text[text.index("<svg") :], count=2)
