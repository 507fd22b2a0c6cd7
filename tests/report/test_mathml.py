import xml.etree.ElementTree as ET

import pytest

from fluxforge.report._mathml import mathml, typeset
from fluxforge.scheme import find, reference


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


def test_brackets_enclose_what_is_between_them_and_stretch_only_around_what_is_tall():
    low = tree(r"\left(a - b\right)").find("mrow")
    tall = tree(r"\left(\frac{a}{b}\right)").find("mrow")
    assert flat(ET.tostring(low, "unicode")) == "(a−b)"
    assert [low[0].get("stretchy"), tall[0].get("stretchy")] == ["false", "true"]


@pytest.mark.parametrize("latex", [r"\biggl[a +", r"b\biggr]"])
def test_a_bracket_whose_partner_is_on_another_line_stands_alone(latex):
    assert set(flat(mathml(latex))) <= set("[]ab+")


def test_roots_means_words_and_powers_of_ten():
    assert tree(r"\sqrt{V_P}").find("msqrt") is not None
    assert tree(r"\overline{A_{PN}}").find("mover") is not None
    assert flat(mathml(r"1.5\cdot 10^{-3}\,\mathrm{rate}_{0,N}")) == "1.5⋅10−3rate0,N"


def test_what_is_unknown_is_shown_by_its_name_and_escaped():
    assert flat(mathml(r"\tanh\left(x\right)")) == "tanh(x)"
    assert "&lt;" in mathml("a < b")


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
