"""A certificate as one self-contained HTML page with its plots."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fluxforge._files import write_text
from fluxforge.certify._certificate import Certificate
from fluxforge.certify._evidence import Line
from fluxforge.certify._summary import summarise
from fluxforge.expression._print import to_text
from fluxforge.report._page import (
    COLOURS,
    MARKERS,
    embed_figure,
    page,
    panels,
    save_figures,
    set_text,
    typeset,
    typeset_equation,
)
from fluxforge.scheme._scheme import Scheme

CAPTIONS = {
    "convergence": "Relative error of the steady state against the number of cells, per mesh family: the worse of two "
    "manufactured solutions.",
    "time": "Error in time against the exact solution of the same semi-discrete system.",
    "stability": "The amplification factor on the negative axis, and where its modulus is at most one.",
    "cost": "Error in time against memory traffic, compared with other schemes.",
}
_NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
# Three or more numbers with a blank between any two.
_ROW = re.compile(rf"(?<![\w.]){_NUMBER}(?: {_NUMBER}){{2,}}(?![\w.])")

PLOTS = {"convergence": "errors in space", "time": "errors in time", "stability": "stability", "cost": "error and cost"}


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
    """The page as HTML text that contains its figures."""
    return page(
        "certificate.html",
        certificate=certificate,
        scheme=scheme,
        sentence=summarise(certificate, scheme),
        typeset=typeset(scheme),
        formula=formula_lines(scheme),
        lines=typeset_lines(certificate),
        figures=[
            embed_figure(figure, name, CAPTIONS[name], look="" if len(figure.axes) > 1 else "narrow")
            for name, figure in figures.items()
        ],
        files=[
            ("certificate.json", "everything on this page, as JSON"),
            *((f"{name}.svg", f"the plot of {words}, also as PNG") for name, words in PLOTS.items() if name in figures),
        ],
        command=command,
    )


def typeset_lines(certificate: Certificate) -> list[tuple[Line, Markup | str]]:
    """The lines of a certificate with their evidence as HTML: equations as MathML, powers and indices set."""
    equations = {f"modified equation, {name}": str(each) for name, each in certificate.modified.items()}
    return [
        (
            line,
            typeset_equation(equations[line.property])
            if line.property in equations
            else set_text(separate_numbers(line.evidence)),
        )
        for line in certificate.lines
    ]


def separate_numbers(text: str) -> str:
    """A text with commas in rows of three or more numbers: 1.6e-3 4.0e-4 1.0e-4 reads badly once typeset."""
    return _ROW.sub(lambda match: match[0].replace(" ", ", "), text)


def formula_lines(scheme: Scheme) -> list[str]:
    """The stages of a scheme as text, one line per message and per output."""
    lines = []
    for number, stage in enumerate(scheme.stages, start=1):
        for name, message in stage.messages.items():
            lines.append(f"stage {number}   {name} = Σ over {message.hop}s of {to_text(message.expression)}")
        for name, output in stage.outputs.items():
            lines.append(f"stage {number}   {name} = {to_text(output.expression)}")
    if scheme.implicit:
        lines.append(f"implicit  T' − T = (1 − θ)(F(T) − T) + θ(F(T') − T'),  θ = {to_text(scheme.theta)}")
    return lines


def certificate_figures(certificate: Certificate) -> dict[str, Figure]:
    """The figures for which the certificate has data, by name: `convergence`, `time`, `stability`, `cost`."""
    figures = {}
    if any(result.study is not None for result in certificate.space.values()):
        figures["convergence"] = convergence_figure(certificate)
    if certificate.time is not None:
        figures["time"] = time_figure(certificate)
    if certificate.stability is not None and certificate.stability.one_operator:
        figures["stability"] = stability_figure(certificate)
    if certificate.curves:
        figures["cost"] = cost_figure(certificate)
    return figures


def convergence_figure(certificate: Certificate) -> Figure:
    """Relative L2 and L∞ errors of the steady state against the number of cells, with slopes of order 1 and 2."""
    figure, axes = panels(2)
    for panel, norm in zip(axes, ("l2", "linf"), strict=True):
        for k, (family, result) in enumerate(certificate.space.items()):
            if result.study is None:
                continue
            rates = getattr(result.study, norm)
            order = rates.order
            label = f"{family}: {f'order {order:.2f}' if order is not None else 'no order'}"
            panel.loglog(
                result.study.cells, rates.errors, MARKERS[k % 7] + "-", color=COLOURS[k % 7], label=label, markersize=4
            )
        _draw_guides(panel)
        panel.set(xlabel="number of cells", ylabel=f"relative {'L2' if norm == 'l2' else 'L∞'} error")
        panel.legend(fontsize=7.5, framealpha=0.9)
    return figure


def _draw_guides(panel: Axes) -> None:
    """Draw slopes of order 1 and 2 in h, that is −½ and −1 in the number of cells, named at the right edge."""
    left, right = panel.get_xlim()
    x = np.array([left * 1.3, right])
    top = panel.get_ylim()[1] / 1.5
    for order, style in ((1, ":"), (2, "--")):
        y = top * (x / x[0]) ** (-order / 2)
        panel.loglog(x, y, style, color="0.6", linewidth=1)
        look: dict[str, Any] = {"fontsize": 7.5, "color": "0.4", "va": "center"}
        panel.annotate(f"order {order}", (x[1], y[1]), xytext=(2, 0), textcoords="offset points", **look)
    panel.set_xlim(left, right)


def time_figure(certificate: Certificate) -> Figure:
    """Errors in time against the matrix exponential, for the free run (S = 0) and the driven run (T₀ = 0)."""
    assert certificate.time is not None
    figure, (panel,) = panels(1)
    runs = {"free: T₀, S = 0": certificate.time.free, "driven: T₀ = 0, S": certificate.time.driven}
    for k, (name, run) in enumerate(runs.items()):
        order = "exact" if run.exact else ("no order" if run.order is None else f"order {run.order:.2f}")
        errors = np.maximum(run.errors, 1e-17)
        panel.loglog(run.sizes, errors, MARKERS[k] + "-", color=COLOURS[k], label=f"{name}: {order}", markersize=5)
    panel.set(xlabel=r"$\Delta t / (2\,\Delta t_{\mathrm{Fourier}})$", ylabel="relative error against exp(tG)")
    panel.legend(fontsize=8)
    return figure


def stability_figure(certificate: Certificate) -> Figure:
    """The amplification factor R on the negative axis, and the region |R| ≤ 1 in the complex plane."""
    stability = certificate.stability
    assert stability is not None
    assert stability.factor is not None
    assert stability.interval is not None
    figure, (along, region) = panels(2)
    factor = _compile_factor(stability.factor)
    reach = 4.0 if not np.isfinite(stability.interval) or stability.interval == 0 else 1.15 * stability.interval
    x = np.linspace(0, reach, 800)
    along.plot(-x, np.real(factor(-x + 0j)), color=COLOURS[0])
    along.axhspan(-1, 1, color="0.92", zorder=0)
    along.axhline(0, color="0.6", linewidth=0.8)
    if np.isfinite(stability.interval) and stability.interval > 0:
        along.axvline(-stability.interval, color=COLOURS[1], linestyle="--", label=f"−{stability.interval:.5g}")
        along.legend(fontsize=8)
    along.set(xlabel="z = Δtλ", ylabel="R(z)", ylim=(-1.6, 1.6))
    # The range of Re z begins where that of the left panel does. Im z reaches to ±2 at least, which the regions of
    # explicit schemes need. Both axes have the same unit.
    height = max(2.0, 0.48 * reach)
    X, Y = np.meshgrid(np.linspace(-reach, 2.4 * height - reach, 300), np.linspace(-height, height, 250))
    size = np.abs(factor(X + 1j * Y))
    region.contourf(X, Y, size, levels=[0, 1], colors=["#cfe3f3"])
    region.contour(X, Y, size, levels=[1], colors=[COLOURS[0]], linewidths=1.2)
    region.axhline(0, color="0.6", linewidth=0.8)
    region.axvline(0, color="0.6", linewidth=0.8)
    region.set(xlabel="Re z", ylabel="Im z", title="|R| ≤ 1", aspect="equal")
    return figure


def cost_figure(certificate: Certificate) -> Figure:
    """Error in time against bytes moved per cell, for the scheme and those it is compared with."""
    figure, (panel,) = panels(1)
    for k, curve in enumerate(certificate.curves):
        width = 2.2 if curve.scheme == certificate.scheme else 1.2
        style = MARKERS[k % 7] + "-"
        panel.loglog(
            curve.bytes, curve.error, style, color=COLOURS[k % 7], label=curve.scheme, linewidth=width, markersize=4
        )
    panel.set(xlabel="bytes moved per cell over the run", ylabel="relative error in time")
    panel.legend(fontsize=8)
    return figure


def _compile_factor(factor: sp.Expr) -> Callable[[np.ndarray], np.ndarray]:
    numerator, denominator = sp.fraction(sp.together(factor))
    z = next(iter(factor.free_symbols))
    top, bottom = ([complex(c) for c in sp.Poly(part, z).all_coeffs()] for part in (numerator, denominator))
    return lambda at: np.polyval(top, at) / np.polyval(bottom, at)
