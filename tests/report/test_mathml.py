import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from fluxforge.report import typeset
from fluxforge.report._page import mathml, typeset_text
from fluxforge.scheme import find, from_document, reference, to_document


def flat(markup):
    """The letters in reading order."""
    return "".join(ET.fromstring(f"<r>{markup}</r>").itertext())


def tree(latex):
    return ET.fromstring(f"<r>{mathml(latex)}</r>")


def test_a_fraction_has_its_numerator_first():
    top, bottom = tree(r"\frac{\alpha\,A_{PN}}{\delta_{PN}}").find("mfrac")
    assert flat(ET.tostring(top, "unicode")) == "αAPN"
    assert flat(ET.tostring(bottom, "unicode")) == "δPN"


def test_a_subscript_comes_before_a_superscript_whichever_is_written_first():
    for latex in ("T_P^{n+1}", "T^{n+1}_P"):
        base, below, above = tree(latex).find("msubsup")
        assert [flat(ET.tostring(each, "unicode")) for each in (base, below, above)] == ["T", "P", "n+1"]


def test_a_sum_has_its_range_below():
    sign, below = tree(r"\sum_{N\in\mathcal{N}_1(P)} T_N").find("munder")
    assert sign.text == "∑"
    assert flat(ET.tostring(below, "unicode")) == "N∈𝒩1(P)"


@pytest.mark.parametrize("latex", [r"\biggl[a +", r"b\biggr]"])
def test_a_bracket_whose_partner_is_on_another_line_stands_alone(latex):
    assert set(flat(mathml(latex))) <= set("[]ab+")


def test_roots_means_words_and_powers_of_ten():
    assert tree(r"\sqrt{V_P}").find("msqrt") is not None
    assert tree(r"\overline{A_{PN}}").find("mover") is not None
    assert flat(mathml(r"1.5\cdot 10^{-3}\,\mathrm{rate}_{0,N}")) == "1.5·10−3rate0,N"
    assert tree(r"\mathrm{rate}").find("mtext").text == "rate"


@pytest.mark.parametrize(
    ("value", "shown"),
    [("123456.7", "123460"), ("1.5e-7", "1.5·10−7"), ("1.234567e17", "1.2346·1017"), ("0.25", "0.25α")],
)
def test_constants_of_any_size_are_rounded_to_five_digits(value, shown):
    document: Any = to_document(find("euler"))
    document["stages"][0]["messages"]["z"]["expression"] = f"{value}*alpha*A/delta*(T_N - T_P)"
    (row, _) = ET.fromstring(str(typeset(from_document(document))))[0]
    assert flat(ET.tostring(row, "unicode")).startswith(f"zP=∑N∈𝒩1(P){shown}")


def test_what_looks_like_markup_is_escaped():
    assert "<b" not in mathml("a <b")


@pytest.mark.parametrize("name", sorted(reference.BUILT_IN))
def test_every_built_in_scheme_is_well_formed_and_leaves_no_latex_behind(name):
    markup = typeset(find(name))
    root = ET.fromstring(str(markup))
    assert all(child.tag == "mtr" for child in root[0])
    assert not set("\\{}&") & set("".join(root.itertext()))


def test_the_first_order_scheme_reads_as_in_the_paper():
    message, update = ET.fromstring(str(typeset(find("euler"))))[0]
    assert "".join(message.itertext()) == "zP=∑N∈𝒩1(P)αAPNδPN(TNn−TPn)"
    assert "".join(update.itertext()) == "TPn+1=TPn+ΔtSP+ΔtVPzP"


@pytest.mark.parametrize(
    ("text", "set_as"),
    [
        ("0.6025123456*A/delta*(T_N - T_P)", "0.60251Aδ(TN−TP)"),
        ("T_new = T + dt/V*z1", "Tn+1=T+ΔtVz1"),
        ("T_t = alpha*T_xx + alpha*h**2/12*T_xxxx", "Tt=αTxx+αh212Txxxx"),
        ("tanh(5.2e-12*A_PN)", "tanh(5.2·10−12APN)"),
        ("1/2", "12"),
    ],
)
def test_a_formula_given_as_text_is_typeset_and_keeps_its_text_for_readers_of_the_screen(text, set_as):
    markup = typeset_text(text)
    assert flat(markup) == set_as
    assert re.match(r'<math alttext="[^"<>]+">', markup)


def test_a_formula_that_the_parser_refuses_is_shown_as_code():
    assert typeset_text("<script>alert(1)</script>") == "<code>&lt;script&gt;alert(1)&lt;/script&gt;</code>"
