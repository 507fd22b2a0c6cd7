import copy
import csv
import html
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from _discovery_result import EARLY, FRONTS, METRICS, RESULT, read
from matplotlib.figure import Figure

from browser import PROGRAM, Browser
from fluxforge.certify import Certificate, Line, Verdict
from fluxforge.distil import Reading
from fluxforge.errors import InputError
from fluxforge.pipeline._formula import judge
from fluxforge.report import discovery_figures, discovery_page, write_discovery
from fluxforge.report._discovery_words import define_labels, label_fronts
from fluxforge.scheme import find

COMMAND = "fluxforge discover first-order -o runs/first-order"


def certificate():
    lines = (
        Line("conservative", Verdict.HOLDS, "drifts by 1e-17 in 200 steps", "matrix and rollout"),
        Line("linear fields are exact", Verdict.FAILS, "residual 0.14", "patch tests"),
    )
    absent = dict.fromkeys(("linearity", "conservation", "time", "semidiscrete", "stability", "maximum", "cost"))
    return Certificate("euler", True, lines, claims=(), space={}, modified={}, curves=(), **absent)


def of(result, *, scheme=None, certificate=None, metrics=METRICS, drawn=True, **more):
    figures = discovery_figures(read(result), metrics) if drawn else {}
    return discovery_page(read(result), figures, scheme=scheme, certificate=certificate, metrics=metrics, **more)


@pytest.fixture(scope="module")
def recovered():
    figure = Figure()
    figure.add_subplot().plot([0, 1])
    return of(RESULT, scheme=find("euler"), certificate=certificate(), command=COMMAND, pictures={"network": figure})


@pytest.fixture(scope="module")
def browser():
    with Browser() as browser:
        yield browser


class Outline(HTMLParser):
    """Headings, tables without column headers, and pictures without words."""

    def __init__(self, page):
        super().__init__()
        self.headings, self.bare_tables, self.dumb_pictures, self._open, self._labels = [], 0, 0, [], [None]
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if re.fullmatch(r"h\d", tag):
            self.headings.append(int(tag[1]))
        if tag == "div":
            self._labels.append(attrs.get("aria-label"))
        if tag == "svg":
            self.dumb_pictures += not self._labels[-1]
        if tag == "table":
            self._open.append(False)
        if tag == "th" and attrs.get("scope") == "col":
            self._open[-1] = True

    def handle_endtag(self, tag):
        if tag == "table":
            self.bare_tables += not self._open.pop()
        if tag == "div":
            self._labels.pop()


HARD = {"complexity": 3, "error": 0.1, "formula": 'min(a, "b")'}
WRITTEN_FRONTS: dict[str, Any] = FRONTS | {"z2": {"kind": "message", "chosen": None, "rows": [HARD]}}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The folder of a report, and the paths that were told."""
    folder = tmp_path_factory.mktemp("written")
    result = read(RESULT | {"fronts": WRITTEN_FRONTS})
    paths = write_discovery(
        result, folder, scheme=find("euler"), certificate=certificate(), metrics=METRICS, command=COMMAND
    )
    return folder, paths


def test_everything_asked_for_is_written_beside_the_page(written):
    folder, paths = written
    names = {"report.html", "front.csv"} | {
        f"{name}.{suffix}" for name in ("front", "loss", "errors") for suffix in ("png", "svg")
    }
    assert {path.name for path in paths} == {path.name for path in folder.iterdir()} == names
    assert (folder / "front.png").read_bytes().startswith(b"\x89PNG")


def test_the_front_is_a_table_too_with_nothing_rounded_and_a_link_to_it(written):
    folder, _ = written
    with (folder / "front.csv").open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert head == ["name", "kind", "complexity", "error", "formula"]
    every = [(name, front["kind"], row) for name, front in WRITTEN_FRONTS.items() for row in front["rows"]]
    assert [[name, kind, int(c), float(e), f] for name, kind, c, e, f in rows] == [
        [name, kind, row["complexity"], row["error"], row["formula"]] for name, kind, row in every
    ]
    assert 'href="front.csv"' in (folder / "report.html").read_text(encoding="utf-8")


def test_a_run_without_fronts_has_no_table_of_them(tmp_path):
    write_discovery(read(EARLY), tmp_path, scheme=None, certificate=None, metrics=[], command=COMMAND)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_the_page_needs_nothing_from_elsewhere(recovered):
    assert not re.search(r"<(script|link|img|iframe)\b", recovered)
    assert not re.search(r"(src|href)=\"https?:", recovered)


def test_a_recovered_formula_is_typeset_and_given_as_text(recovered):
    formula = recovered[recovered.index('aria-label="The discovered formula"') :]
    assert re.match(r'[^>]*><math display="block"><mtable', formula)
    assert "<mfrac>" in formula
    assert "A*alpha/delta*(T_N - T_P)" in recovered
    assert "first-order: a formula was recovered" in recovered
    assert "the formula does as well as the network" in recovered


def test_letters_that_the_formula_uses_are_explained_and_no_others(recovered):
    assert "length of the shared face" in recovered
    assert "normal of the shared face" not in recovered
    # The two-hop scheme has a sum of its own called d.
    page = of(RESULT | {"fronts": {}}, scheme=find("two-hop"), drawn=False)
    assert "vector between centres" not in page
    assert "its neighbours N and theirs, Q" in page


@pytest.mark.parametrize(
    "shown",
    [
        "drifts by 1\xa0×\xa010⁻¹⁷ in 200 steps",
        '<td class="v fails">fails</td>',
        "1.0000001000 ± 1.0\xa0×\xa010⁻⁹",
        "0.9999900 ± 2.0\xa0×\xa010⁻⁶",
        "2.80\xa0×\xa010⁻¹⁶",
        "1.006",
        "they agree",
        "The network&#39;s step is explained to 99.4 %.",
        "1.0021 ± 0.003",
        "sparse regression",
        "T + Δt/V·f by construction, and only f was learned",
        "which do not affect the verdict: the order in time of the printed formula is 1.00",
        '<math alttext="0.60251*A/delta*(T_N - T_P)">',
        "</math> (chosen)",
        "4.56\xa0×\xa010⁻⁴",
        "Updates skipped because they were not finite: 5.",
        "was trained on examples of single steps",
        COMMAND,
        "12.3",
        "0.6.2",
        ">17<",
    ],
)
def test_the_page_shows(recovered, shown):
    assert shown in recovered


def test_headings_are_in_order_tables_have_headers_and_pictures_words(recovered):
    early = of(EARLY | {"fronts": FRONTS}, drawn=False)
    late = of(RESULT | {"recovered": False}, scheme=find("euler"), drawn=False)
    for page in (recovered, early, late):
        outline = Outline(page)
        assert outline.headings[0] == 1
        assert outline.headings.count(1) == 1
        assert all(after <= before + 1 for before, after in zip(outline.headings, outline.headings[1:], strict=False))
        assert outline.bare_tables == 0
        assert outline.dumb_pictures == 0
    assert recovered.count("<svg") == 5


def test_no_identifier_occurs_twice(recovered):
    identifiers = re.findall(r"\bid=\"([^\"]+)\"", recovered)
    assert identifiers
    assert len(identifiers) == len(set(identifiers))
    assert set(re.findall(r"href=\"#([^\"]+)\"", recovered)) <= set(identifiers)


def test_a_formula_that_is_not_recovered_is_never_shown_as_the_discovered_one():
    result = RESULT | {"recovered": False, "verdict": "refused", "reasons": ["the stencils differ by 40 %"]}
    page = of(result, scheme=find("euler"), certificate=certificate(), drawn=False)
    assert "The discovered formula" not in page
    assert "Of the candidate, which was not accepted as the network&#39;s law: " in page
    assert "no formula was accepted" in page
    assert "Best candidate, not a discovery" in page
    assert "the stencils differ by 40 %" in page
    assert 'class="verdict holds">recovered' not in page


@pytest.mark.parametrize(
    ("result", "stage"),
    [
        (EARLY | {"seconds": {"train": 1.0}}, "training, before any formula was searched for"),
        (EARLY | {"fronts": {}}, "reading a formula off the network"),
        (EARLY | {"fronts": FRONTS}, "choosing a formula"),
        (
            EARLY | {"fronts": FRONTS, "messages": RESULT["messages"], "outputs": RESULT["outputs"]},
            "checking the formula",
        ),
        (RESULT | {"recovered": False, "verdict": "refused"}, "certifying the formula"),
    ],
)
def test_a_run_that_failed_says_at_which_stage(result, stage):
    page = of(result, drawn=False)
    assert f"The run stopped at {stage}" in page
    assert "The discovered formula" not in page


def test_a_run_that_failed_before_choosing_shows_its_best_candidates():
    fronts = {name: front | {"chosen": None} for name, front in FRONTS.items()}
    page = of(EARLY | {"fronts": fronts}, drawn=False)
    assert "Best candidates, none accepted" in page
    assert 'alttext="0.60251*A/delta*(T_N - T_P) + 0.00123*(A - delta)"' in page
    assert "(chosen)" not in page


def test_a_run_without_metrics_has_a_page_all_the_same():
    page = of(EARLY, metrics=[])
    assert "<svg" not in page
    assert "How it was made" in page


def test_a_network_that_blew_up_is_shown_as_such():
    result = copy.deepcopy(RESULT)
    result["evaluation"]["network"]["rollout_mse"] = None
    result["evaluation"]["network"]["one_step_worst"] = float("inf")
    page = of(result, scheme=find("euler"))
    assert page.count('<td class="n">—</td>') == 2


def test_an_evaluation_of_no_meshes_is_left_out():
    assert "errors" not in discovery_figures(read(RESULT | {"evaluation": {"meshes": 0}}), METRICS)


@pytest.mark.parametrize("count", [1, pytest.param(3, marks=pytest.mark.slow), 6])
def test_fronts_of_several_networks_get_a_panel_each(count):
    rows = FRONTS["z1"]
    fronts = {f"z{k}": rows for k in range(count)}
    figure = discovery_figures(read(RESULT | {"fronts": fronts}), [])["front"]
    assert len(figure.axes) == count
    page = of(RESULT | {"fronts": fronts}, scheme=find("two-hop"), drawn=False)
    assert page.count("All candidates for the message") == count


def test_of_a_pair_the_message_is_on_the_left():
    turned = dict(reversed(FRONTS.items()))
    left, right = discovery_figures(read(RESULT | {"fronts": turned}), [])["front"].axes
    assert left.get_title() == "message $z_{1}$"
    assert right.get_title() == "update $f$"


def test_candidates_are_named_by_what_they_are_formulas_of():
    built_in = of(RESULT, scheme=find("euler"), drawn=False)
    assert 'The update learns <math alttext="f = (T_new - T)*V/dt">' in built_in
    assert 'All candidates for the update <math alttext="f">' in built_in
    direct = RESULT | {"update": "direct"}
    assert discovery_figures(read(direct), [])["front"].axes[1].get_title() == "update $T^{n+1}$"
    found = of(direct, scheme=find("euler"), drawn=False)
    assert "The update learns" not in found
    assert 'All candidates for the update <math alttext="T_new">' in found


def test_several_updates_are_numbered():
    fronts = {"z1": FRONTS["z1"], "h1": FRONTS["T_new"], "T_new": FRONTS["T_new"]}
    result = read(RESULT | {"fronts": fronts})
    assert label_fronts(result) == {"z1": "z1", "h1": "f1", "T_new": "f2"}
    assert define_labels(result) == ["f1 = (h1 - T)*V/dt", "f2 = (T_new - T)*V/dt"]


def test_the_rule_of_the_choice_is_told_where_a_choice_was_made(recovered):
    rule = "has no larger loss than the network. If none of those tried has, the one that is best by loss and length"
    assert rule in recovered
    fronts = {name: front | {"chosen": None} for name, front in FRONTS.items()}
    refused = of(EARLY | {"fronts": fronts}, drawn=False)
    assert rule not in refused
    assert "A factor may stand in the messages or in the update" in refused


def test_errors_are_drawn_in_units_of_the_field_and_tabled_as_mean_squares(recovered):
    (panel,) = discovery_figures(read(RESULT), [])["errors"].axes
    drawn = {line.get_label(): list(line.get_xdata()) for line in panel.lines}
    assert drawn["network"] == pytest.approx([1e-3, 0.0123, 4.56e-4**0.5])
    assert drawn["formula"] == pytest.approx([1e-18, 8.9e-16, 4.1e-31**0.5])
    labels = [label.get_text() for label in panel.get_yticklabels()]
    assert labels == ["one step,\nroot mean square", "one step,\nworst cell", "many steps,\nroot mean square"]
    assert '<th scope="row">many steps, mean square</th><td class="n">4.56\xa0×\xa010⁻⁴' in recovered
    assert "in units of the temperature: root mean squares" in recovered


def test_a_training_with_one_recorded_step_has_no_picture():
    page = of(RESULT, scheme=find("euler"), metrics=METRICS[:1])
    assert "loss" not in discovery_figures(read(RESULT), METRICS[:1])
    assert "The terms of the loss during training" not in page
    assert "Updates skipped because they were not finite: 1." in page


@pytest.mark.parametrize(("skipped", "said"), [((0, 3), "2 of 2"), (None, "2")])
def test_the_page_tells_which_network_of_how_many_was_distilled(skipped, said):
    page = of(RESULT | {"member": 1, "skipped": skipped}, scheme=find("euler"), drawn=False)
    assert f'<th scope="row">network distilled</th><td>{said}</td>' in page


def test_the_chosen_point_is_marked():
    panel = discovery_figures(read(RESULT), [])["front"].axes[0]
    assert any(list(line.get_xdata()) == [9] for line in panel.lines)


def test_a_recovered_result_without_its_scheme_is_refused():
    with pytest.raises(InputError, match="'first-order' is recovered, and its scheme is not given"):
        of(RESULT)


def test_the_page_opens_with_the_sentence_of_its_certificate_before_anything_else(recovered):
    first = re.search(r"</h1>\s*<p class=\"lead\">([^<]*)</p>", recovered)[1]
    assert first.startswith("Explicit scheme")
    assert first.endswith("The network&#39;s step is explained to 99.4 %.")


def explained_share(least):
    """The share in per cent that the page of a result quotes."""
    page = of(RESULT | {"explained": {"least": least}, "fronts": {}}, scheme=find("euler"), drawn=False)
    return re.search(r"explained to (\S+) %", page)[1]


# In double precision 98.05 is rounded to 98.0, and 1.95 to 1.9 because 1 - 0.9805 is a little less.
@pytest.mark.parametrize("least", [0.99396, 0.994, 0.9805, 0.97, 0.5, 0.0])
def test_the_share_on_the_page_and_the_rest_in_the_verdict_add_up_to_100(least):
    reading = Reading(0.1, {}, {}, {}, {}, {}, explained=least, explained_by_least=least, loss=0.0, exact=True)
    reason = judge([reading], threshold=0.97, law=None).reasons[0]
    rest = re.search(r"leaves at most (\S+)% of", reason)[1]
    assert float(explained_share(least)) + float(rest) == pytest.approx(100.0, abs=1e-9)


@pytest.mark.parametrize(("least", "said"), [(0.99951, "99.9"), (0.99996, "99.9"), (1.0, "100")])
def test_a_share_is_100_per_cent_only_if_it_is_all(least, said):
    assert explained_share(least) == said


def test_next_commands_are_those_of_the_command_line_and_name_the_right_file(recovered):
    commands = [html.unescape(each) for each in re.findall(r'<pre class="command"><code>([^<]*)</code>', recovered)]
    assert "fluxforge verify scheme.json -o certificate" in commands
    assert "fluxforge discover first-order --seed 18 -o first-order-seed-18" in commands
    assert "fluxforge discover --resume ." in commands
    refused = of(RESULT | {"recovered": False, "verdict": "refused"}, scheme=find("euler"), drawn=False)
    assert "fluxforge export candidate.json --to c -o scheme.c" in refused
    assert "fluxforge export" not in of(EARLY, metrics=[])
    other = of(EARLY, metrics=[], command="fluxforge discover --seed=3 'my law.toml' --overwrite -o old --steps 9")
    assert "fluxforge discover &#39;my law.toml&#39; --steps 9 --seed 18 -o first-order-seed-18" in other


def test_links_are_to_files_that_the_run_leaves_beside_the_page(written):
    folder, _ = written
    links = set(re.findall(r'href="([^"#][^"]*)"', (folder / "report.html").read_text(encoding="utf-8")))
    written_before = {"scheme.json", "certificate.json", "metrics.jsonl", "run.json"}
    assert written_before <= links
    assert all((folder / name).is_file() for name in links - written_before)
    assert {"front.csv", "front.svg", "loss.svg", "errors.svg"} <= links
    early = set(re.findall(r'href="([^"#][^"]*)"', of(EARLY, metrics=[])))
    assert early == {"run.json"}


def test_captions_speak_of_several_networks_only_if_there_are_several(recovered):
    alone = [{"step": 1, "supervised": [0.1], "skipped": [0], "learning_rate": 1e-3}] * 2
    assert "a line per network" in recovered
    assert "a line per network" not in of(RESULT, scheme=find("euler"), metrics=alone)


def test_modified_equations_and_constants_are_typeset(recovered):
    from fluxforge.certify import verify

    page = of(RESULT, scheme=find("euler"), certificate=verify("euler", quick=True, families=()), drawn=False)
    assert '<math alttext="T_t = alpha*T_xx' in page
    assert "alpha*T_xx" not in re.sub(r'alttext="[^"]*"', "", page)
    assert '<th scope="row"><math alttext="c1">' in page


def test_texts_that_look_like_markup_are_shown_as_text():
    hostile = "<script>alert(1)</script>$x$"
    rows = [{"complexity": 1, "error": 0.5, "formula": hostile}]
    result = EARLY | {
        "recipe": hostile,
        "reasons": [hostile],
        "fronts": {hostile: {"kind": "message", "chosen": 0, "rows": rows}},
        "environment": {hostile: hostile},
    }
    page = of(result, command=hostile)
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 6


@pytest.mark.skipif(PROGRAM is None, reason="no Chromium here to open the page with")
@pytest.mark.parametrize("width", [1280, 400])
def test_a_browser_shows_the_page_without_complaint(browser, tmp_path, recovered, width):
    path = tmp_path / "report.html"
    path.write_text(recovered, encoding="utf-8")
    browser.open(path, width=width, dark=width == 400)
    assert browser.complaints == []
    assert all(url.startswith(("file:", "data:")) for url in browser.requests)
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert "A*alpha/delta*(T_N - T_P)" in browser.value("document.body.textContent")
    # Typeset: the fraction is set higher than its letters are.
    assert browser.value("document.querySelector('mfrac').getBoundingClientRect().height") > 20
    dark = browser.value("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 29)"
    assert dark == (width == 400)
