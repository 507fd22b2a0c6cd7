"""The page of the whole paper: self-contained, with claims that can be filtered and data that can be downloaded."""

import base64
import csv
import io
import json
import re
from urllib.parse import unquote

import pytest
from msgspec.structs import replace

from browser import PROGRAM, Browser
from fluxforge.paper import reproduce, write_reproduction
from fluxforge.paper._page import make_section, reproduction_page
from fluxforge.report import Table, table_csv, tables
from toy_paper import Toy, part


@pytest.fixture
def folder(toys, tmp_path):
    for name in ("first", "second"):
        reproduce(name, folder=tmp_path)
    return tmp_path


@pytest.fixture
def text(folder):
    write_reproduction(folder, command="fluxforge reproduce first second")
    return (folder / "index.html").read_text(encoding="utf-8")


def content(href):
    head, _, body = href.partition(",")
    return base64.b64decode(body).decode() if head.endswith(";base64") else unquote(body)


def files(text):
    return {name: content(href) for href, name in re.findall(r'href="(data:[^"]+)" download="([^"]+)"', text)}


def test_every_claim_has_a_row_with_its_verdict(text):
    rows = re.findall(r'<tr id="claim-(\w+)" data-verdict="([^"]+)" data-section="(\d)">', text)
    assert rows == [
        ("one", "holds", "1"),
        ("both", "holds under a condition", "2"),
        ("neither", "cannot be tested from the text", "3"),
    ]
    assert '<li class="verdict holds">holds: 1</li>' in text
    assert "Not run in this folder" not in text


def test_the_claims_and_the_numbers_of_every_figure_can_be_had(text):
    downloads = files(text)
    assert {"claims.csv", "claims.json", "first.json", "first-figure.csv", "first-figure.json"} <= set(downloads)
    rows = list(csv.DictReader(io.StringIO(downloads["first-figure.csv"])))
    assert [float(row["error"]) for row in rows] == [1.0, 0.25, 0.0625]
    assert {row["table"] for row in rows} == {"rows"}
    assert json.loads(downloads["first-figure.json"])["rows"][2]["step"] == 0.25
    assert json.loads(downloads["first.json"])["rows"][1]["step"] == 0.5
    assert len(json.loads(downloads["claims.json"])) == 3


def test_the_page_makes_no_external_request(text):
    without_data = re.sub(r"data:[^\"]+", "", text)
    assert not re.findall(r"(?:src|href)=\"https?:", without_data)
    assert "@import" not in without_data
    assert "default-src 'none'" in text


def test_a_part_that_is_missing_is_named(toys, tmp_path):
    reproduce("first", folder=tmp_path)
    reproduction = write_reproduction(tmp_path)
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "<code>fluxforge reproduce second</code>" in text
    assert reproduction.counts["not run here"] == 1
    assert json.loads((tmp_path / "claims.json").read_text(encoding="utf-8"))["counts"] == reproduction.counts


def test_words_of_a_claim_cannot_become_part_of_the_page():
    row = {
        "claim": "x",
        "section": "1",
        "text": "<script>alert(1)</script>",
        "verdict": "holds",
        "evidence": "a < b & c",
        "parts": [],
    }
    text = reproduction_page([], [row], {"holds": 1}, table="", missing=[], command="")
    assert "<script>alert(1)" not in text
    assert "a &lt; b &amp; c" in text


def test_a_condition_is_what_a_verdict_begins_with_and_a_part_can_have_a_table():
    row = {"claim": "x", "section": "1", "text": "", "verdict": "holds under a condition", "evidence": "", "parts": []}
    row |= {"condition": "with other formulas than printed"}
    table = Table("Verdicts <over> seeds", ("recipe", "recovered"), (("two-hop", "9 & 1"),))
    study = replace(part(Toy("x")), figures={}, draw={}, table=lambda _: table)
    section = make_section("x", study, {"experiment": "x", "rows": [], "claims": []})
    text = reproduction_page([section], [row], {}, table="", missing=[], command="")
    assert ">with other formulas than printed: holds under a condition</td>" in text
    assert '<th scope="row">two-hop</th><td>9 &amp; 1</td>' in text
    assert "Verdicts &lt;over&gt; seeds" in text


def test_tables_are_found_at_every_depth_of_a_document():
    by_place = tables(
        {
            "rows": [{"a": 1, "deep": {"b": 2}, "list": [1, 2]}, {"a": 3}],
            "direct": {"θ = 1": {"rows": [{"c": 4}]}},
            "per_scheme": {"euler": {"bytes": 68.0}, "midpoint": {"bytes": 128.0}},
            "arm": {"x": [1, 2, 3], "y": [4, 5, 6]},
            "words": "none",
            "empty": [],
        }
    )
    assert by_place == {
        "rows": [{"a": 1, "deep.b": 2}, {"a": 3}],
        "direct/θ = 1/rows": [{"c": 4}],
        "per_scheme": [{"name": "euler", "bytes": 68.0}, {"name": "midpoint", "bytes": 128.0}],
        "arm": [{"x": 1, "y": 4}, {"x": 2, "y": 5}, {"x": 3, "y": 6}],
    }
    assert table_csv(by_place["rows"]) == "a,deep.b\n1,2\n3,\n"
    assert table_csv([], ("a", "b")) == "a,b\n"


@pytest.mark.skipif(PROGRAM is None, reason="no Chromium here to open the page with")
def test_in_a_browser_the_claims_can_be_filtered_by_keyboard_and_nothing_is_fetched(folder):
    write_reproduction(folder)
    shown = "[...document.querySelectorAll('#claims-table tbody tr')].filter(r => !r.hidden).map(r => r.id).join()"
    with Browser() as browser:
        browser.open(folder / "index.html", width=1280)
        assert browser.complaints == []
        assert all(url.startswith(("file:", "data:")) for url in browser.requests)
        assert browser.value(shown) == "claim-one,claim-both,claim-neither"
        box = "document.querySelector('#filters input[value=\"holds\"]')"
        browser.value(f"{box}.focus(), 1")
        for kind in ("keyDown", "keyUp"):
            browser.tell("Input.dispatchKeyEvent", type=kind, key=" ", code="Space", text=" ", windowsVirtualKeyCode=32)
        assert browser.value(shown) == "claim-both,claim-neither"
        assert browser.value("document.getElementById('claims-shown').textContent") == "2 of 3 claims shown"
        browser.value("form.elements.words.value = 'knows', choose(), 1")
        assert browser.value(shown) == "claim-neither"
        browser.value("form.reset(), choose(), 1")
        assert browser.value(shown) == "claim-one,claim-both,claim-neither"


@pytest.mark.skipif(PROGRAM is None, reason="no Chromium here to open the page with")
@pytest.mark.parametrize("width", [1280, 400])
def test_in_a_browser_nothing_is_wider_than_the_page_and_everything_has_a_name(folder, width):
    write_reproduction(folder)
    with Browser() as browser:
        browser.open(folder / "index.html", width=width)
        assert browser.value("document.documentElement.scrollWidth") <= width
        unnamed = "[...document.querySelectorAll('[role=img]')].filter(i => !i.getAttribute('aria-label')).length"
        assert browser.value(unnamed) == 0
        dead = (
            "[...document.querySelectorAll('a[href^=\"#\"]')]"
            ".filter(a => !document.getElementById(a.getAttribute('href').slice(1))).length"
        )
        assert browser.value(dead) == 0
        names = browser.value("[...document.querySelectorAll('[id]')].map(e => e.id).join(' ')").split()
        assert len(names) == len(set(names))
