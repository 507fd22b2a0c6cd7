"""A discovery as one self-contained HTML page: the question, the formula, why to believe it, and how it was made."""

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from fluxforge._files import write_text
from fluxforge.errors import InputError
from fluxforge.report._certificate_page import formula_lines
from fluxforge.report._discovery_figures import (
    MEASURES,
    discovery_figures,
    front_figure,
    shown_fronts,
    terms,
)
from fluxforge.report._mathml import typeset
from fluxforge.report._page import Shown, number, page, save_figures, shown
from fluxforge.scheme import Hop, Scheme
from fluxforge.verify import Certificate

Record = Mapping[str, Any]
LEARNED_FROM = {
    frozenset({"supervised"}): "was shown examples of single steps",
    frozenset({"residual"}): "was shown the heat equation and no scheme",
    frozenset({"supervised", "residual"}): "was shown examples of single steps and the heat equation",
}
# What the letters of a formula stand for, by the name a scheme's text gives them, and how they are set.
LETTERS = {
    "T": ("T", "temperature"),
    "S": ("S", "source"),
    "A": ("A", "length of the shared face"),
    "delta": ("δ", "distance between centres"),
    "n": ("n", "normal of the shared face"),
    "d": ("d", "vector between centres"),
    "V": ("V", "area of a cell"),
    "alpha": ("α", "diffusivity"),
    "dt": ("Δt", "time step"),
    "chi": ("χ", "0 at a wall of given flux, 1 elsewhere"),
}
# What a run that failed early lacks.
ABSENT: Record = {"reasons": (), "loss": None, "stencil": None, "evaluation": None, "seconds": {}, "environment": {}}
CAPTIONS = {
    "loss": "The terms of the loss during training, a line per network; the thick one was distilled.",
    "errors": "How far network and formula are from the first-order scheme on meshes that neither has seen.",
    "picture": "A temperature field on one of the meshes.",
}


def write_discovery(
    result: Record,
    folder: str | os.PathLike[str],
    *,
    scheme: Scheme | None,
    certificate: Certificate | None,
    metrics: Sequence[Record],
    command: str,
    picture: Figure | None = None,
) -> list[Path]:
    """Write `report.html`, and `front`, `loss` and `errors` as PNG and SVG if the run got so far; return the paths."""
    folder = Path(folder)
    figures = discovery_figures(result, metrics)
    text = discovery_page(
        result, figures, scheme=scheme, certificate=certificate, metrics=metrics, command=command, picture=picture
    )
    write_text(folder / "report.html", text)
    return [folder / "report.html", *save_figures(figures, folder)]


def discovery_page(
    result: Record,
    figures: Mapping[str, Figure],
    *,
    scheme: Scheme | None,
    certificate: Certificate | None,
    metrics: Sequence[Record] = (),
    command: str = "",
    picture: Figure | None = None,
) -> str:
    """The page as text, its pictures inside it. A formula is typeset only if the result says it is recovered."""
    recovered = bool(result.get("recovered"))
    if recovered and scheme is None:
        raise InputError(f"the result of recipe {result['recipe']!r:.60} is recovered, and its scheme is not given")
    inline = {
        name: shown(figure, name, CAPTIONS[name], alt=_alt(name, result, metrics), look="narrow")
        for name, figure in figures.items()
        if name in CAPTIONS
    }
    if picture is not None:
        inline["picture"] = shown(picture, "picture", CAPTIONS["picture"], look="narrow light")
    return page(
        "discovery.html",
        result={**ABSENT, **result},
        recovered=recovered,
        asked=_asked(metrics),
        formula=typeset(scheme) if recovered and scheme is not None else "",
        text=_text(result, scheme),
        letters=_letters(scheme) if scheme is not None else [],
        reading=_in_words(scheme) if scheme is not None else "",
        stopped=_stopped(result, certificate),
        certificate=certificate,
        constants=_constants(result),
        fronts=shown_fronts(result),
        panels=_front_pictures(shown_fronts(result)),
        figures=inline,
        measures=MEASURES,
        skipped=metrics[-1].get("skipped") if metrics else None,
        command=command,
    )


def _asked(metrics: Sequence[Record]) -> str:
    how = LEARNED_FROM.get(frozenset(terms(metrics)) - {"sparsity"}, "was trained on it")
    return (
        "Which formula carries the temperatures of a mesh's cells one time step ahead, "
        f"as learned by a small network that sees only cells and their neighbours and {how}?"
    )


def _text(result: Record, scheme: Scheme | None) -> list[str]:
    """The formulas as text: of the scheme, or of what there is instead of one."""
    if scheme is not None:
        return formula_lines(scheme)
    messages = [f"{name} = Σ of {formula}" for name, formula in (result.get("messages") or {}).items()]
    return messages + [f"{name} = {formula}" for name, formula in (result.get("outputs") or {}).items()]


def _letters(scheme: Scheme) -> list[tuple[str, str]]:
    """The letters that the scheme uses, with their meaning; names of its own sums and outputs are not among them."""
    own = {name for stage in scheme.stages for name in (*stage.messages, *stage.outputs)}
    formulas = [m.expression for stage in scheme.stages for m in stage.messages.values()]
    formulas += [o.expression for stage in scheme.stages for o in stage.outputs.values()]
    symbols = {symbol.name for formula in formulas for symbol in formula.free_symbols}
    used = {name.split("_")[0] for name in symbols - own}
    return [words for name, words in LETTERS.items() if name in used]


def _in_words(scheme: Scheme) -> str:
    """How to read the formula."""
    where = "its neighbours N" if scheme.hops() <= {Hop.EDGE} else "its neighbours N and theirs, Q"
    if len(scheme.stages) > 1:
        return f"In {len(scheme.stages)} rounds, every cell P adds up messages over {where}, and goes on with the sums."
    return f"Every cell P adds up messages over {where}, and takes one step with the sum."


def _stopped(result: Record, certificate: Certificate | None) -> str | None:
    """The stage a run did not get past; none if it ran to the end."""
    if not result.get("fronts"):
        return "training, before any formula was searched for"
    if not result.get("messages"):
        return "choosing a formula: candidates were found, and none was accepted"
    if "stencil" not in result or "evaluation" not in result:
        return "checking the formula against the network"
    return "certifying the formula" if certificate is None else None


def _constants(result: Record) -> list[tuple[str, str, str]]:
    """Name, value with its uncertainty, and the rational that stands for it."""
    spread, rational = result.get("constants_uncertainty") or {}, result.get("rational") or {}
    return [
        (name, _with_uncertainty(value, spread.get(name)), str(rational.get(name) or "—"))
        for name, value in (result.get("constants") or {}).items()
    ]


def _with_uncertainty(value: float, spread: float | None) -> str:
    """The value to the digits its uncertainty leaves: 0.99999000 ± 2.0 × 10⁻⁸."""
    if spread is None or not math.isfinite(spread) or not math.isfinite(value):
        return number(value, 10)
    if spread <= 0:
        return f"{number(value, 16)} ± 0"
    decimals = min(max(1 - math.floor(math.log10(spread)), 0), 15)
    return f"{value:.{decimals}f} ± {number(spread, 2)}".replace("-", "−")


def _front_pictures(fronts: Mapping[str, Record]) -> list[Shown]:
    """A picture per MLP, so that they stand side by side on a wide page and one below the other on a narrow one."""
    found = []
    for k, (name, front) in enumerate(fronts.items()):
        rows = front["rows"]
        marked = "none was chosen"
        if front["chosen"] is not None:
            row = rows[front["chosen"]]
            marked = f"chosen: {row['formula']}, complexity {row['complexity']}, error {number(row['error'])}"
        alt = f"Error against complexity of {len(rows)} formulas for the {front['kind']} {name}; {marked}"
        caption = f"The {front['kind']} {name}: each point is the best formula of its length."
        found.append(shown(front_figure({name: front}), f"front{k}", caption, alt=alt))
    return found


def _alt(name: str, result: Record, metrics: Sequence[Record]) -> str:
    if name == "loss":
        ends = (f"{each} from {_span(metrics, each)}" for each in terms(metrics))
        return f"Loss during {metrics[-1]['step']} training steps: {', '.join(ends)}"
    found = result["evaluation"]
    words = (
        f"{label}: network {number(found['network'].get(key))}, formula {number(found['formula'].get(key))}"
        for key, label in MEASURES.items()
    )
    return f"Distance from the first-order scheme. {'; '.join(words)}"


def _span(metrics: Sequence[Record], term: str) -> str:
    first, last = (record.get(term) for record in (metrics[0], metrics[-1]))
    return " to ".join(number((each or [None])[0] if isinstance(each, list) else each) for each in (first, last))
