"""A discovery as one self-contained HTML page: the question, the formula, the evidence for it, and how it was made."""

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from markupsafe import Markup
from matplotlib.figure import Figure
from msgspec import UnsetType

from fluxforge._files import write_text
from fluxforge.certify._certificate import Certificate
from fluxforge.errors import InputError
from fluxforge.report._certificate_page import formula_lines, typeset_lines
from fluxforge.report._discovery_figures import (
    DRAWN_MEASURES,
    MEASURES,
    discovery_figures,
    drawn_errors,
    fitted_constants,
    format_with_uncertainty,
    front_csv,
    front_figure,
    limit_pictures,
    limit_steps,
    limit_table,
    shown_fronts,
    step_errors,
)
from fluxforge.report._discovery_words import (
    HEAT,
    PLOTS,
    define_labels,
    describe_member,
    describe_question,
    describe_reading,
    equation_name,
    explain_letters,
    label_fronts,
    opening_sentence,
    physics_rows,
)
from fluxforge.report._next import list_files, run_commands, scheme_commands
from fluxforge.report._page import (
    Metric,
    Shown,
    align,
    decimals,
    embed_figure,
    inline_math,
    list_terms,
    mathml,
    number,
    page,
    typeset,
    typeset_text,
    write_report,
)
from fluxforge.run._outputs import name_outputs
from fluxforge.run._record import Number
from fluxforge.run.result import Discovery, FrontTable, Law, Laws
from fluxforge.scheme._scheme import Scheme

HEADLINES = {
    "recovered": "a formula was recovered",
    "approximation": "an approximation was found",
    "refused": "no formula was accepted",
}
# Number of factors of a power law that fit on a line of a narrow page.
FACTORS_PER_LINE = 4
ERRORS_CAPTION = (
    "How far network (circles) and formula (squares) are from the reference on meshes that neither has seen, in units "
    "of the {quantity}: root mean squares over all cells, whose squares the table gives, and the worst cell."
)


def write_discovery(
    result: Discovery,
    folder: str | os.PathLike[str],
    *,
    scheme: Scheme | None,
    certificate: Certificate | None,
    metrics: Sequence[Metric],
    command: str,
    pictures: Mapping[str, Figure] | None = None,
) -> list[Path]:
    """Write `report.html` and, if there are data for them, figures as PNG and SVG and `front.csv`; return the paths."""
    folder = Path(folder)
    figures = discovery_figures(result, metrics)
    text = discovery_page(
        result, figures, scheme=scheme, certificate=certificate, metrics=metrics, command=command, pictures=pictures
    )
    paths = write_report(folder, text, figures)
    if fronts := shown_fronts(result):
        write_text(folder / "front.csv", front_csv(fronts))
        paths.append(folder / "front.csv")
    return paths


def discovery_page(
    result: Discovery,
    figures: Mapping[str, Figure],
    *,
    scheme: Scheme | None,
    certificate: Certificate | None,
    metrics: Sequence[Metric] = (),
    command: str = "",
    pictures: Mapping[str, Figure] | None = None,
) -> str:
    """The page as HTML text that contains its figures; `pictures` are further figures by title.

    A formula is typeset only if the result is recovered; raises InputError if that is so and `scheme` is None.
    """
    recovered = result.recovered
    if recovered and scheme is None:
        raise InputError(f"the result of recipe {result.recipe!r:.60} is recovered, and its scheme is not given")
    stopped = _find_stage(result, certificate)
    equation, fronts, laws = equation_name(result), shown_fronts(result), result.laws
    quantity, labels = "temperature" if equation == HEAT else "value", label_fronts(result)
    return page(
        "discovery.html",
        result=result,
        recovered=recovered,
        verdict=_verdict(result),
        headline=HEADLINES[_verdict(result)],
        sentence=opening_sentence(result, scheme, certificate, stopped),
        question=describe_question(metrics, equation),
        quantity=quantity,
        physics=physics_rows(result),
        formula=typeset(scheme) if recovered and scheme is not None else "",
        text=_formula_text(result, scheme),
        letters=explain_letters(scheme) if scheme is not None else [],
        reading=describe_reading(scheme) if scheme is not None else "",
        parts=_typeset_parts(result),
        stopped=stopped,
        certificate=certificate,
        lines=typeset_lines(certificate) if certificate is not None else [],
        constants=_list_constants(result),
        limit=limit_table(result),
        limit_panels=limit_pictures(result),
        limit_steps=limit_steps(result),
        stencil_symbol=inline_math(r"\partial T_P^{\prime} / \partial T_N"),
        power_law=inline_math(r"f\,A^{a}\,\delta^{b}\,V^{c}\,\Delta t^{d}"),
        laws="" if laws is None else _typeset_laws(laws),
        laws_text="" if laws is None else _laws_in_words(laws, "of heat " if equation == HEAT else ""),
        losses=_list_losses(result),
        fronts=fronts,
        labels=labels,
        definitions=define_labels(result),
        chosen=any(isinstance(front.chosen, int) for front in fronts.values()),
        panels=_front_pictures(fronts, labels),
        figures=_embed_plots(result, figures, metrics, quantity),
        member=describe_member(result),
        pictures=[
            embed_figure(figure, f"field{k}", "", alt=f"Field on an unseen mesh: {title}", look="light")
            for k, (title, figure) in enumerate((pictures or {}).items())
        ],
        rollout="many" if result.evaluation is None else result.evaluation.rollout or "many",
        measures=MEASURES,
        skipped=metrics[-1].get("skipped") if metrics else None,
        command=command,
        next=[*_scheme_commands(result, scheme), *run_commands(result.recipe, result.seed, command)],
        files=list_files(
            scheme, name_outputs(result), [(name, PLOTS[name]) for name in figures], metrics=bool(metrics)
        ),
    )


def _scheme_commands(result: Discovery, scheme: Scheme | None) -> list[tuple[str, str]]:
    """Commands about the formula, with the parameters of the run; none without a formula."""
    if scheme is None:
        return []
    initial = "exp(-30*((x - 0.5)**2 + (y - 0.5)**2))"
    return scheme_commands(scheme, name_outputs(result).scheme, initial=initial, parameters=result.parameters)


def _embed_plots(
    result: Discovery, figures: Mapping[str, Figure], metrics: Sequence[Metric], quantity: str
) -> dict[str, Shown]:
    """The figures `loss` and `errors` with captions and alternative texts, if there are data for them.

    `quantity` is what the field is of, a temperature or a value.
    """
    shown = {}
    if "loss" in figures:
        several = any(isinstance(value, list) and len(value) > 1 for value in metrics[-1].values())
        each = ", a line per network: that of the distilled one has marks, the others are pale" if several else ""
        caption = f"The terms of the loss during training{each}."
        ends = ", ".join(f"{term} from {_format_span(metrics, term)}" for term in list_terms(metrics))
        alt = f"Loss during {metrics[-1]['step']} training steps: {ends}"
        shown["loss"] = embed_figure(figures["loss"], "loss", caption, alt=alt, look="narrow")
    if "errors" in figures:
        network, formula = map(drawn_errors, step_errors(result).values())
        words = "; ".join(
            f"{label}: network {number(network[key])}, formula {number(formula[key])}"
            for key, label in DRAWN_MEASURES.items()
        )
        alt = f"Distance from the reference. {words}"
        shown["errors"] = embed_figure(
            figures["errors"], "errors", ERRORS_CAPTION.format(quantity=quantity), alt=alt, look="narrow"
        )
    return shown


def _verdict(result: Discovery) -> str:
    """The verdict of a run; results of older versions record only whether a formula was recovered."""
    return result.verdict or ("recovered" if result.recovered else "refused")


def _formula_text(result: Discovery, scheme: Scheme | None) -> list[str]:
    """The formulas as lines of text: those of the scheme, or without one the messages and outputs of the result."""
    if scheme is not None:
        return formula_lines(scheme)
    messages = [f"{name} = Σ of {formula}" for name, formula in (result.messages or {}).items()]
    return messages + [f"{name} = {formula}" for name, formula in (result.outputs or {}).items()]


def _typeset_parts(result: Discovery) -> list[tuple[Markup, Markup]]:
    """The messages and outputs of a formula that was not recovered: labels with typeset formulas."""
    messages, outputs = (result.messages or {}).items(), (result.outputs or {}).items()
    return [
        *((_name_part("message", name), typeset_text(text, sum_of=name)) for name, text in messages),
        *((_name_part("update", name), typeset_text(f"{name} = {text}")) for name, text in outputs),
    ]


def _name_part(kind: str, name: str) -> Markup:
    """An MLP or its formula by kind and name, the name typeset."""
    return Markup("{} {}").format(kind, typeset_text(name))


def _find_stage(result: Discovery, certificate: Certificate | None) -> str | None:
    """A text on the stage at which a run stopped; None if it was completed."""
    if not result.messages:
        if result.fronts:
            return "choosing a formula: candidates were found, and none was accepted"
        searched = "distil" in result.seconds
        return "reading a formula off the network" if searched else "training, before any formula was searched for"
    if result.stencil is None or result.evaluation is None:
        return "checking the formula against the network"
    return "certifying the formula" if certificate is None else None


def _list_losses(result: Discovery) -> dict[str, Number]:
    """The losses that were measured, by label."""
    if result.loss is None:
        return {}
    known = {
        "the network": result.loss.network,
        "the formula, constants fitted": result.loss.formula,
        "the formula, constants as fractions": result.loss.rational,
    }
    return {label: loss for label, loss in known.items() if not isinstance(loss, UnsetType)}


def _list_constants(result: Discovery) -> list[tuple[str, str, str, str]]:
    """Rows of text: constant, the network's value and that of least loss, each ± uncertainty, rounded fraction."""
    least, spread = fitted_constants(result)
    limit, limit_spread = result.limit or {}, result.limit_uncertainty or {}
    rational = result.rational or {}
    return [
        (
            name,
            format_with_uncertainty(limit.get(name), limit_spread.get(name)),
            format_with_uncertainty(value, spread.get(name)),
            rational.get(name) or "—",
        )
        for name, value in least.items()
    ]


def _typeset_laws(laws: Laws) -> Markup:
    """The power laws ∂T′_P/∂T_N ≈ 0.80 A^1.03 … over one hop and two, aligned, with two decimals, as MathML."""
    rows = []
    for cell, law in (("N", laws.near), ("Q", laws.far)):
        powers = [_format_power(*each) for each in law.exponents.items()]
        left = rf"\frac{{\partial T_P^{{\prime}}}}{{\partial T_{cell}}} \approx"
        for k in range(0, len(powers), FACTORS_PER_LINE):
            factor = [decimals(law.factor, 2)] if k == 0 else []
            rows.append([mathml("" if k else left), mathml(r"\,".join([*factor, *powers[k : k + FACTORS_PER_LINE]]))])
    return align(rows) if rows else Markup("")


def _format_power(name: str, exponent: float | None) -> str:
    """A power as LaTeX: of `A_PN` and 1.03, the letter A with subscript PN and exponent 1.03."""
    letter, _, where = name.partition("_")
    base = {"delta": r"\delta ", "dt": r"\Delta t"}.get(letter, letter)
    return f"{base}{f'_{{{where}}}' if where else ''}^{{{decimals(exponent, 2)}}}"


def _laws_in_words(laws: Laws, of_what: str) -> str:
    """Sentences on the flux that the nearest whole powers describe; `of_what` is inserted after the word flux."""
    near, far = _whole_powers(laws.near), _whole_powers(laws.far)
    if not near:
        return ""
    text = "Over one hop the nearest whole powers are not those of a flux."
    if near == {"A": 1, "delta": -1, "V": -1, "dt": 1}:
        flux = f"the flux {of_what}through the shared face, divided by the area of the cell"
        text = f"Over one hop the nearest whole powers are A Δt/(δ V): {flux}."
    if not far:
        return text
    legs = all(far.get(f"{name}_{leg}") == near.get(name) for name in ("A", "delta") for leg in ("PN", "NQ"))
    areas = far.get("V_P") == far.get("V_N") == near.get("V")
    if legs and areas and far.get("dt") == 2 * near.get("dt", 0):
        return (
            f"{text} Over two hops it is the same law twice, once for each face of the path: the flux is applied twice."
        )
    return f"{text} Over two hops it is not the same law twice."


def _whole_powers(law: Law) -> dict[str, int]:
    powers = law.exponents.items()
    return {name: round(power) for name, power in powers if power is not None and math.isfinite(power)}


def _front_pictures(fronts: Mapping[str, FrontTable], labels: Mapping[str, str]) -> list[Shown]:
    """The fronts as one figure per MLP: they are side by side on a wide page, and below each other on a narrow one."""
    pictures = []
    for k, (name, front) in enumerate(fronts.items()):
        marked, large = "none was chosen", ""
        if isinstance(front.chosen, int):
            row = front.rows[front.chosen]
            marked = f"chosen: {row.formula}, complexity {row.complexity}, error {number(row.error)}"
            large = "; the large one was chosen"
        alt = f"Error against complexity of {len(front.rows)} formulas for the {front.kind} {labels[name]}; {marked}"
        words = "The {}: each point is the best formula of its length{}."
        caption = Markup(words).format(_name_part(front.kind, labels[name]), large)
        pictures.append(embed_figure(front_figure({name: front}, labels), f"front{k}", caption, alt=alt))
    return pictures


def _format_span(metrics: Sequence[Metric], term: str) -> str:
    first, last = (record.get(term) for record in (metrics[0], metrics[-1]))
    return " to ".join(number((each or [None])[0] if isinstance(each, list) else each) for each in (first, last))
