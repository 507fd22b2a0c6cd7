"""Rates over seeds: what is collected and what is run, what is counted, and verdicts that follow the counts."""

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fluxforge import recipe
from fluxforge.errors import InputError
from fluxforge.paper import PARTS
from fluxforge.paper.studies import _networks, rates
from fluxforge.paper.studies._networks import choose_run
from fluxforge.paper.studies._records import Rate, Spread, read_rates
from fluxforge.paper.studies.rates import describe_seed, find_quartiles, select_constants
from fluxforge.pipeline import Run, run_folder
from fluxforge.run.result import Discovery, from_document, to_document
from study_documents import judge_document, read_partial, run_document

rates_figure = PARTS["rates"].draw["rates"]
MIDPOINT = {"a1": 0.5, "c1": 0.5, "a2": 1.0, "c2": 1.0}
PATHS = {"a2": 1.0, "b": 0.5, "d": 1.0, "e": 0.5}
TWICE = dict(rates.TWICE_APPLIED_POWERS)
FLAT = dict.fromkeys(TWICE, 0.1) | {"dt": 1.0}


def _row(verdict: str = "recovered", *, seed: int = 0, **own: Any) -> dict[str, Any]:
    residual = {"network": 0.1, "euler": 1.0}
    row = {"seed": seed, "verdict": verdict, "as_expected": verdict == "recovered", "explained": 0.99}
    row |= {"constants": dict(MIDPOINT), "rational": {}, "far": None}
    return row | {"residual": residual, "reason": None, "seconds": 60.0 + seed} | own


def _read(row: dict[str, Any]) -> rates.Row:
    return read_partial(row, rates.Row)


def _discovery(**fields: Any) -> Discovery:
    return read_partial(fields, Discovery)


def _describe(**fields: Any) -> rates.Row:
    return describe_seed(recipe.load("first-order"), _discovery(**fields), None)


def _tally(name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return msgspec.to_builtins(rates.tally(recipe.load(name), [_read(row) for row in rows]))


def _recipe(name: str, rows: list[dict[str, Any]], **about: Any) -> dict[str, Any]:
    return _tally(name, rows) | {"expected": "recovered", "update": "residual", "theta": 0.5} | about


def _result(name: str, rows: list[dict[str, Any]], **about: Any) -> dict[str, Any]:
    return {"recipes": {name: _recipe(name, rows, **about)}}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The recipes and seeds that were run, as discoveries that take no time."""
    runs: list[tuple[str, int]] = []

    def finish(folder: Path, spec: recipe.Recipe) -> Run:
        with run_folder(folder, spec, warn=pytest.fail) as held:
            done = held.read_stage("discovery")
            if done is None:
                runs.append((spec.name, spec.seed))
                discovery = _discovery(
                    verdict="recovered", recovered=True, constants={"c1": 1.0}, seconds={"train": 2.0}
                )
                done = to_document(discovery)
                held.finish("discovery", done)
        return Run(folder, spec, from_document(done, Discovery, folder))

    def resume(folder: Path, **_: Any) -> Run:
        name, _, seed = folder.name.rpartition("-")
        return finish(folder, recipe.override(recipe.load(name), {"seed": int(seed)}))

    monkeypatch.setattr(_networks, "discover", lambda spec, folder, **_: finish(folder, spec))
    monkeypatch.setattr(_networks, "resume", resume)
    return runs


CONFIG = rates.Config(recipes=("first-order", "first-order-pinn"), seeds=3)


def test_every_recipe_is_run_with_every_seed_once(made: list[tuple[str, int]], tmp_path: Path) -> None:
    result = run_document(rates, CONFIG, tmp_path)
    assert made == [(name, seed) for name in CONFIG.recipes for seed in range(3)]
    assert sorted(path.name for path in tmp_path.iterdir())[:3] == [f"first-order-{seed}" for seed in range(3)]
    again = run_document(rates, CONFIG, tmp_path)
    assert len(made) == 6
    assert again == result
    assert json.loads(json.dumps(result, allow_nan=False)) == result


def test_finished_run_folders_of_other_processes_are_collected(made: list[tuple[str, int]], tmp_path: Path) -> None:
    """As `fluxforge discover first-order --seed 1 -o FOLDER/first-order-1` leaves them."""
    spec = recipe.override(recipe.load("first-order"), {"seed": 1})
    with run_folder(tmp_path / "first-order-1", spec, warn=pytest.fail) as held:
        discovery = _discovery(verdict="approximation", explained={"least": 0.9})
        held.finish("discovery", to_document(discovery))
    result = run_document(rates, CONFIG, tmp_path)
    assert ("first-order", 1) not in made
    tally = result["recipes"]["first-order"]
    assert [row["verdict"] for row in tally["rows"]] == ["recovered", "approximation", "recovered"]
    assert tally["verdicts"] == {"recovered": 2, "approximation": 1, "refused": 0}
    assert tally["rate"] == {"reached": 2, "of": 3}
    assert tally["medians"]["explained"]["median"] == 0.9


def test_a_run_folder_of_another_recipe_is_refused(made: list[tuple[str, int]], tmp_path: Path) -> None:
    spec = recipe.override(recipe.load("first-order"), {"seed": 1, "training.steps": 7})
    with run_folder(tmp_path / "first-order-1", spec, warn=pytest.fail):
        pass
    with pytest.raises(InputError, match="first-order-1: contains a run of another recipe"):
        run_document(rates, CONFIG, tmp_path)


def test_seeds_are_the_presets_unless_they_are_asked_for() -> None:
    assert (rates.Config().networks, rates.Config(preset="paper").networks) == (5, 10)
    assert rates.Config(changes={"seeds": 7}).networks == 7
    # The recipes are the shipped ones at both presets.
    own = rates.load_spec(rates.Config(preset="paper"), "two-hop", 3)
    assert own == recipe.override(recipe.load("two-hop"), {"seed": 3})


@pytest.mark.parametrize(
    ("document", "verdict"),
    [
        ({"verdict": "approximation", "recovered": False}, "approximation"),
        ({"recovered": True}, "recovered"),
        ({"recovered": False}, "refused"),
    ],
)
def test_a_verdict_is_the_document_s_own_or_what_older_ones_say(document: dict[str, Any], verdict: str) -> None:
    assert _describe(**document).verdict == verdict


def test_constants_are_those_of_the_limit_where_there_is_one() -> None:
    assert select_constants(_discovery(constants={"c1": 0.4}, limit={"c1": 0.5})) == {"c1": 0.5}
    assert select_constants(_discovery(constants={"c1": 0.4}, limit=None)) == {"c1": 0.4}
    # What the network does not determine has no value.
    assert select_constants(_discovery(limit={"c1": 0.5, "a1": None})) == {"c1": 0.5}
    assert select_constants(_discovery(recovered=False)) == {}


def test_medians_have_quartiles_and_nothing_has_none() -> None:
    assert find_quartiles([4.0, 1.0, 3.0, 2.0, 5.0]) == Spread(q1=2.0, median=3.0, q3=4.0)
    assert find_quartiles([]) is None


def test_a_seed_counts_if_its_formula_is_believed_and_its_constants_are_right() -> None:
    rows = [_row(), _row(constants=MIDPOINT | {"c1": 0.52}), _row("approximation"), _row(constants={})]
    tally = _tally("midpoint", rows)
    assert tally["rates"]["midpoint rule"] == {"reached": 1, "of": 4}
    assert tally["rate"] == {"reached": 3, "of": 4}
    # One within two per cent is near enough, and another set of constants is another scheme.
    assert rates.has_constants(_read(_row(constants=MIDPOINT | {"c1": 0.509})), MIDPOINT)
    assert not rates.has_constants(_read(_row(constants=PATHS)), MIDPOINT)
    assert not rates.has_constants(_read(_row(constants={})), {})


def test_a_constant_that_is_taken_for_a_fraction_is_that_fraction() -> None:
    """The network's own limit has an uncertainty, within which the discovery takes it for ½."""
    row = _row(constants=MIDPOINT | {"c1": 0.47})
    assert not rates.has_constants(_read(row), MIDPOINT)
    assert rates.has_constants(_read(row | {"rational": {"c1": 0.5}}), MIDPOINT)
    assert not rates.has_constants(_read(row | {"rational": {"c1": 1 / 3}}), MIDPOINT)
    assert _describe(rational={"c1": "1/2", "a2": "1"}).rational == {"c1": 0.5, "a2": 1.0}
    assert _describe(recovered=False).rational == {}


def test_a_seed_is_as_expected_if_its_document_says_so() -> None:
    spec = recipe.override(recipe.load("first-order"), {"expect": "approximation"})
    for document, expected in (
        ({"verdict": "recovered"}, True),
        ({"verdict": "approximation"}, True),
        ({"verdict": "refused"}, False),
        ({"verdict": "recovered", "as_expected": False}, False),
    ):
        assert rates.describe_seed(spec, _discovery(**document), None).as_expected is expected


def test_residuals_are_counted_where_all_seeds_have_one() -> None:
    rows = [_row(), _row(residual={"network": 0.6, "euler": 1.0})]
    tally = _tally("midpoint", rows)
    assert tally["rates"]["lower residual than Euler"] == {"reached": 1, "of": 2}
    assert tally["medians"]["residual over Euler's"]["median"] == pytest.approx(0.35)
    assert "lower residual than Euler" not in _tally("midpoint", [_row(residual=None)])["rates"]


def test_powers_of_the_two_hop_term_are_told_apart() -> None:
    off = {**TWICE, "A_PN": 0.5}
    rows = [
        _row("approximation", constants=PATHS, far=TWICE),
        # A formula with the flux applied twice explains the network, whatever powers are fitted to its weights.
        _row(constants=PATHS, far=off),
        _row("approximation", constants=PATHS, far=off),
        _row("approximation", constants=PATHS, far=FLAT),
        _row("refused", far=None),
    ]
    shares = _tally("two-hop", rows)["rates"]
    assert shares["two-hop term is the flux twice"] == {"reached": 2, "of": 5}
    assert shares["two-hop term is something else"] == {"reached": 2, "of": 5}
    # The power of Δt is no matter of areas and distances.
    assert shares["two-hop term without A and δ"] == {"reached": 1, "of": 5}


@pytest.mark.parametrize(
    ("good", "of", "verdict"),
    [
        (10, 10, "holds under a condition"),
        (5, 10, "holds under a condition"),
        (4, 10, "does not hold"),
        (4, 4, "cannot be tested from the text"),
        (5, 5, "holds under a condition"),
    ],
)
def test_verdicts_follow_the_rates(good: int, of: int, verdict: str) -> None:
    rows = [_row()] * good + [_row("refused", constants={})] * (of - good)
    (claim,) = judge_document(rates, _result("midpoint", rows))
    assert claim.verdict == verdict
    assert bool(claim.condition) == (verdict == "holds under a condition")


def test_without_anything_built_in_or_changed_a_sentence_can_hold() -> None:
    rows = [_row(constants={"c1": 1.0}, residual=None)] * 10
    for about, condition, verdict in (
        ({"update": "direct", "theta": None}, "", "holds"),
        ({"theta": None}, "with T + Δt/V built into the network", "holds under a condition"),
        ({"update": "direct", "theta": 1.0}, "in the limit of small steps", "holds under a condition"),
        ({"update": "direct"}, "with another loss than printed (θ = 0.5)", "holds under a condition"),
    ):
        (claim,) = judge_document(rates, _result("first-order", rows, **about))
        assert (claim.verdict, claim.condition) == (verdict, condition)


def test_other_parts_take_over_counts_and_no_single_seed(tmp_path: Path) -> None:
    assert read_rates(tmp_path / "higher-order", ("midpoint",)) is None
    (tmp_path / "rates").mkdir()
    document = {"format": "fluxforge-rates", "format_version": 1, **_result("midpoint", [_row()] * 5)}
    (tmp_path / "rates" / "rates.json").write_text(json.dumps(document), encoding="utf-8")
    tallies = read_rates(tmp_path / "higher-order", ("midpoint", "two-hop"))
    assert tallies is not None
    assert list(tallies) == ["midpoint"]
    assert not hasattr(tallies["midpoint"], "rows")
    assert tallies["midpoint"].rates["midpoint rule"] == Rate(reached=5, of=5)


def test_a_run_that_the_rates_have_finished_is_not_made_again(tmp_path: Path) -> None:
    own, spec = tmp_path / "higher-order", recipe.load("midpoint")
    other = tmp_path / "rates" / "midpoint-0"
    assert choose_run(spec, own) == own / "midpoint"
    with run_folder(other, spec, warn=pytest.fail) as held:
        # It is not finished yet.
        assert choose_run(spec, own) == own / "midpoint"
        held.finish("discovery", {"recovered": False})
    assert choose_run(spec, own) == other
    assert choose_run(recipe.load("midpoint", preset="paper"), own) == own / "midpoint"
    with run_folder(own / "midpoint", spec, warn=pytest.fail):
        pass
    assert choose_run(spec, own) == own / "midpoint"


@pytest.fixture
def whole() -> Mapping[str, Any]:
    names = {"midpoint": MIDPOINT, "two-hop": PATHS}
    rows = {name: [_row(seed=k, constants=own, far=TWICE) for k in range(9)] for name, own in names.items()}
    rows["two-hop"].append(_row("refused", seed=9, constants={}, explained=None, reason="NO: too far"))
    return {"recipes": {name: _recipe(name, seeds) for name, seeds in rows.items()}}


def test_the_table_has_a_row_per_recipe(whole: Mapping[str, Any]) -> None:
    table = PARTS["rates"].table(read_partial(whole, rates.Result))
    assert [len(row) for row in table.rows] == [len(table.columns)] * 2
    assert table.rows[1] == ("two-hop", "recovered", "9", "0", "1", "9 of 10", "0.9900 [0.9900, 0.9900]", "64")


def test_the_figure_has_a_bar_per_recipe_and_verdict(whole: Mapping[str, Any], tmp_path: Path) -> None:
    figure = rates_figure(read_partial(whole, rates.Result))
    counts: Any
    counts, explained = figure.axes
    assert sorted(bar.get_width() for bar in counts.patches) == [0, 0, 0, 1, 9, 9]
    assert [len(line.get_xdata()) for line in explained.lines] == [9, 9]
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    nothing = copy.deepcopy(whole)
    for tally in nothing["recipes"].values():
        tally["rows"] = [row | {"explained": None} for row in tally["rows"]]
    assert rates_figure(read_partial(nothing, rates.Result)).axes[1].get_title() == "not recorded by these runs"
