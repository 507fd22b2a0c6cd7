"""A certificate as a page: what it shows, how it is typeset, and the files beside it."""

import re
from dataclasses import replace

import pytest

from fluxforge.certify import verify
from fluxforge.report import write_certificate
from fluxforge.report._certificate_page import separate_numbers, stability_figure
from fluxforge.scheme import find


@pytest.fixture(scope="module")
def certificate():
    return verify("midpoint", quick=True, families=("squares",))


@pytest.fixture(scope="module")
def folder(certificate, tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificate")
    write_certificate(certificate, find("midpoint"), folder, command="fluxforge verify midpoint")
    return folder


def test_the_page_needs_nothing_from_elsewhere(folder):
    page = (folder / "certificate.html").read_text()
    assert not re.search(r"<(script|link|img|iframe)", page)
    assert not re.search(r"(src|href)=\"https?:", page)


def test_the_page_shows_formula_verdicts_and_plots(folder):
    page = (folder / "certificate.html").read_text()
    assert "half_N - half_P" in page
    assert "as claimed" in page
    assert "order in time 2.00" in page
    assert page.count("<svg") == 3


def test_the_page_opens_with_a_sentence_and_typesets_scheme_and_modified_equations(folder):
    page = (folder / "certificate.html").read_text()
    first = re.search(r"</h1>\s*<p class=\"lead\">([^<]*)</p>", page)[1]
    assert first.startswith("Explicit two-point flux; order 2 on squares")
    assert re.search(r'aria-label="The scheme"><math display="block">', page)
    assert '<math alttext="T_t = alpha*T_xx' in page


def test_the_formula_is_set_with_few_digits_and_given_as_text_with_all(certificate, tmp_path):
    from fluxforge.scheme import SchemeBuilder

    flux = "0.2602906832618941*alpha*A/delta*(T_N - T_P)"
    scheme = SchemeBuilder().stage({"z": flux}, {"T_new": "T + dt/V*z + dt*S"}).build("damped")
    write_certificate(certificate, scheme, tmp_path)
    page = (tmp_path / "certificate.html").read_text()
    assert "<mn>0.26029</mn>" in page
    assert page.count("0.2602906832618941") == 1


def test_the_region_of_stability_has_equal_units(certificate):
    _, region = stability_figure(certificate).axes
    assert region.get_aspect() == 1.0


def test_links_are_to_files_beside_the_page(folder):
    links = set(re.findall(r'href="([^"#][^"]*)"', (folder / "certificate.html").read_text()))
    assert {"certificate.json", "convergence.svg"} <= links
    assert all((folder / name).is_file() for name in links)


def test_pictures_are_written_beside_the_page(folder):
    for name in ("convergence", "time", "stability"):
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (folder / f"{name}.svg").read_text().startswith("<?xml")


def test_names_that_look_like_markup_are_shown_as_text(certificate, tmp_path):
    from fluxforge.scheme import Claims, SchemeBuilder

    builder = SchemeBuilder().stage({"z": "alpha*A/delta*(T_N - T_P)"}, {"T_new": "T + dt/V*z + dt*S"})
    scheme = builder.build("<script>alert(1)</script>", summary="<b>bold</b>", claims=Claims())
    # Whatever was measured: the name is the scheme's.
    write_certificate(replace(certificate, scheme=scheme.name, space={}), scheme, tmp_path)
    page = (tmp_path / "certificate.html").read_text()
    assert "<script>" not in page
    assert "<b>bold" not in page


def test_rows_of_numbers_get_commas_and_pairs_of_a_label_and_a_number_do_not():
    evidence = "L2 1.6e-03 4.0e-04 -1 (64–4096 cells), rates 1.97 1.99 2.00, 3 4; a weight of -0.05 at cell 237"
    assert separate_numbers(evidence) == (
        "L2 1.6e-03, 4.0e-04, -1 (64–4096 cells), rates 1.97, 1.99, 2.00, 3 4; a weight of -0.05 at cell 237"
    )
