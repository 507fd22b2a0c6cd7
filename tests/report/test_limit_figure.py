import copy
import re
from typing import Any

import numpy as np
import pytest
from _discovery_result import LAW, METRICS, READ, RESULT, STEPS, read
from markupsafe import Markup

from fluxforge.errors import DocumentError
from fluxforge.report import _page, discovery_figures, discovery_page, write_discovery
from fluxforge.report._discovery_figures import limit_pictures, limit_rows, limit_table
from fluxforge.report._page import set_powers, set_text
from fluxforge.run.result import Discovery, from_document
from fluxforge.scheme import find

# As a search names them: constants of the formula are c1, c2, …, whatever they multiply.
SEARCHED = {key: value for key, value in READ.items() if key not in ("laws", "order")}


def of(result, **more):
    return discovery_page(read(result), {}, scheme=find("midpoint"), certificate=None, **more)


def limit_figure(result):
    return discovery_figures(result, [])["limit"]


@pytest.fixture
def unpainted(monkeypatch):
    """Figures are drawn, and not turned into paths, which takes longest."""
    monkeypatch.setattr(_page, "figure_svg", lambda figure, name: Markup("<svg></svg>"))


def lines(panel):
    return {line.get_label(): line for line in panel.lines if not line.get_label().startswith("_")}


def with_row(k, **changed):
    result = copy.deepcopy(READ)
    result["against_step"][k] |= changed
    return result


def test_constants_that_tend_to_the_same_share_a_panel():
    left, right = limit_figure(read(READ)).axes
    assert (left.get_title(), right.get_title()) == ("towards 1/2", "towards 1")
    assert {"$a_{1}$", "$c_{1}$"} <= set(lines(left))
    assert "$c_{2}$" not in lines(left)
    assert "$c_{2}$" in lines(right)


def test_lines_go_through_the_best_constants_and_the_networks_are_hollow():
    panel = limit_figure(read(READ)).axes[0]
    best, own = lines(panel)["$a_{1}$"], lines(panel)["$a_{1}$ of the network"]
    assert panel.get_xscale() == "log"
    # The network is read at the first two steps, and the line goes through the others.
    np.testing.assert_allclose(best.get_xdata(), STEPS[2:])
    np.testing.assert_allclose(best.get_ydata(), 0.5 - 0.2 * np.array(STEPS[2:]))
    marks = next(line for line in panel.lines if line.get_color() == best.get_color() and line is not best)
    np.testing.assert_allclose(marks.get_ydata(), 0.5 - 0.2 * np.array(STEPS))
    np.testing.assert_allclose(own.get_ydata(), [0.38, 0.43, np.nan, np.nan])
    assert own.get_markerfacecolor() == "none"
    assert own.get_linestyle() == "None"
    assert own.get_color() == best.get_color()


def test_the_limit_stands_at_the_left_edge_with_its_uncertainty():
    result = READ | {"constants_uncertainty": {"c2": 0.01}}
    panel = limit_figure(read(result)).axes[1]
    bars: Any
    (bars,) = panel.containers
    (bar,) = bars.lines[2][0].get_segments()
    np.testing.assert_allclose(bar[:, 1], [0.99000006, 1.01000006])
    assert bar[0, 0] < min(STEPS)
    assert bar[0, 0] == min(panel.get_xticks())
    assert "→ 0" in [label.get_text() for label in panel.get_xticklabels()]


@pytest.mark.parametrize(("result", "label"), [(READ, "Δt in units of the Fourier step"), (SEARCHED, "Δt")])
def test_the_axis_says_what_steps_are_measured_in(result, label):
    assert {panel.get_xlabel() for panel in limit_figure(read(result)).axes} == {label}


def test_the_networks_constants_are_those_of_the_formula_and_look_alike():
    drawn = {label: line for panel in limit_figure(read(SEARCHED)).axes for label, line in lines(panel).items()}
    labels = ("$a_{1}$", "$c_{1}$", "$c_{2}$")
    assert set(drawn) == {*labels, *(f"{label} of the network" for label in labels)}
    for name in labels[:2]:
        assert drawn[name].get_color() == drawn[f"{name} of the network"].get_color()
        assert drawn[f"{name} of the network"].get_markerfacecolor() == "none"


def test_a_constant_of_the_network_that_is_far_off_does_not_squeeze_the_rest():
    result = with_row(1, network={"a1": 1e6, "c1": 0.4})
    panel = limit_figure(read(result)).axes[0]
    assert panel.get_ylim()[1] < 1
    assert "1 of which lie outside" in limit_pictures(read(result))[0].caption
    assert "outside" not in limit_pictures(read(READ))[0].caption


def test_the_table_tells_both_ends_the_limit_and_what_was_taken():
    assert limit_table(read(READ))[0] == ("a1", "0.40000", "0.48750", "0.5000072 ± 3.8\xa0×\xa010⁻⁶", "1/2")
    assert limit_table(read(READ | {"rational": {}}))[2][-1] == "1.00000"
    assert limit_table(read(READ | {"constants": {"a1": None}}))[0][3:] == ("—", "1/2")


def test_rows_come_longest_step_first_whatever_their_order_is():
    turned = READ | {"against_step": READ["against_step"][::-1]}
    assert limit_table(read(turned)) == limit_table(read(READ))


def test_the_page_explains_the_limit_and_shows_it():
    page = of(READ)
    assert "the constants of least residual depend on Δt; their limit as Δt → 0 is the scheme" in page
    assert '<td class="n">0.5000072 ± 3.8\xa0×\xa010⁻⁶</td><td class="n"><math alttext="1/2"><mfrac>' in page
    assert "fitted at Δt in units of the Fourier step, from 0.5 down to 0.0625." in page
    assert page.count("<svg") == 2
    assert "a1 goes from 0.40000 at the longest step to 0.5000072" in page
    # Once in the table of constants, and once in that of the limit.
    assert page.count('<th scope="row"><math alttext="c2">') == 2


def test_the_limit_is_written_beside_the_page(tmp_path):
    write_discovery(read(READ), tmp_path, scheme=find("midpoint"), certificate=None, metrics=[], command="")
    assert (tmp_path / "limit.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "limit.svg").exists()
    assert not (tmp_path / "front.csv").exists()


@pytest.mark.usefixtures("unpainted")
def test_without_a_limit_the_page_has_none_of_it():
    page = of(RESULT)
    assert "limit" not in discovery_figures(read(RESULT), METRICS)
    assert "The limit of small steps" not in page
    assert "The network's stencil" not in page
    assert '<th scope="row"><math alttext="c2">' in page


def text_of(markup):
    return re.sub(r"<[^>]+>", " ", markup)


@pytest.mark.usefixtures("unpainted")
def test_both_laws_are_typeset_with_rounded_exponents():
    page = of(READ)
    section = page[page.index("The network's stencil") : page.index("An independent check")]
    words = " ".join(text_of(section).split())
    assert "≈ 0.80 A 1.03 δ − 0.96 V − 1.00 Δ t 0.96" in words
    assert "≈ 0.19 A P N 1.06 δ P N − 0.99" in words
    assert "Δ t 1.80" in words
    assert "A Δt/(δ V): the flux of heat" in words
    assert "the same law twice" in words
    assert section.count("<math display") == 1


@pytest.mark.usefixtures("unpainted")
def test_what_was_measured_is_typeset_though_the_formula_is_not_believed():
    page = of(READ | {"recovered": False})
    assert "The run stopped at certifying the formula" in page
    assert "The discovered formula" not in page
    assert page.count("<math display") == 1


@pytest.mark.usefixtures("unpainted")
@pytest.mark.parametrize(
    ("laws", "said", "unsaid"),
    [
        ({"near": READ["laws"]["near"]}, "the flux of heat", "two hops it is"),
        ({"near": {"exponents": {"A": 2.1}}}, "not those of a flux", "two hops it is"),
        (
            READ["laws"] | {"far": {"exponents": READ["laws"]["far"]["exponents"] | {"dt": 1.1}}},
            "not the same law twice",
            "is repeated",
        ),
    ],
)
def test_what_the_laws_say_follows_from_their_powers(laws, said, unsaid):
    page = of(READ | {"laws": laws})
    assert said in page
    assert unsaid not in page


OPTIONAL = sorted(READ.keys() - {"recipe", "recovered"})


@pytest.mark.usefixtures("unpainted")
@pytest.mark.parametrize("key", OPTIONAL)
def test_a_page_is_written_without_any_single_optional_field(key):
    result = {name: each for name, each in READ.items() if name != key}
    assert "How it was made" in of(result)
    discovery_figures(read(result), METRICS)


NULLS = {name: None for name in OPTIONAL if name not in ("reasons", "seconds", "seed")}


@pytest.mark.parametrize("more", [{}, NULLS, {"stencil": {}}, {"stencil": {"network": {}}}])
def test_a_page_is_written_without_all_optional_fields(more):
    result = {"recipe": "midpoint", "recovered": False, **more}
    assert "How it was made" in of(result)
    assert discovery_figures(read(result), []) == {}


@pytest.mark.parametrize(
    "result",
    [
        READ | {"against_step": []},
        with_row(0, constants={}),
        with_row(0, constants={"a1": None}),
        with_row(0, network=None),
        with_row(0, network={"a1": float("nan")}),
        READ | {"against_step": READ["against_step"][:1]},
        READ | {"constants": {"a1": float("nan")}, "constants_uncertainty": {"a1": float("inf")}},
        READ | {"laws": {"near": {}, "far": {}}},
        READ | {"laws": {"near": {"factor": None, "exponents": {"A": None, "dt": float("nan")}}}},
    ],
)
def test_half_a_limit_or_half_a_law_still_has_a_page(result):
    assert "How it was made" in of(result)
    discovery_figures(read(result), METRICS)


@pytest.mark.parametrize(
    ("document", "field"),
    [(with_row(0, step=None), "against_step"), (READ | {"laws": {"near": LAW, "far": None}}, "laws.far")],
)
def test_a_document_without_a_number_it_needs_is_refused_by_its_field(document, field, tmp_path):
    with pytest.raises(DocumentError, match=re.escape(field)):
        from_document(document, Discovery, tmp_path)


def test_steps_that_are_no_steps_are_left_out():
    assert [row.step for row in limit_rows(read(with_row(0, step=0.0)))] == list(STEPS[1:])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a1 at Δt = 0.1: 1.5e-16, not c2.", "a₁ at Δt = 0.1: 1.5\xa0×\xa010⁻¹⁶, not c₂."),
        ("R(z) = z**2/2 + z + 1, up to Δt^2", "R(z) = z²/2 + z + 1, up to Δt²"),
        ("rkl2-8, 1e5 cells, h2o, data/q1.msh", "rkl2-8, 1\xa0×\xa010⁵ cells, h2o, data/q1.msh"),
        (
            "rates -0.02 -0.00, a weight of -1.6e-05, 64-4096 cells",
            "rates −0.02 −0.00, a weight of −1.6\xa0×\xa010⁻⁵, 64-4096 cells",
        ),
    ],
)
def test_powers_and_indices_are_set_and_names_left_alone(text, shown):
    assert set_powers(text) == shown


def test_indices_of_single_letters_are_set_below_and_other_names_left_alone():
    text = "stable up to 2 Δt_Fourier; ∂F/∂u_P < 0; claim: time_order"
    assert set_text(text) == "stable up to 2 Δt<sub>Fourier</sub>; ∂F/∂u<sub>P</sub> &lt; 0; claim: time_order"
