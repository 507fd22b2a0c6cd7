"""Which equation the schemes solve: numbers known from theory come out, and verdicts follow the numbers."""

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxforge.certify._families import SEEDS, Levels
from fluxforge.certify.order import measure_space_order
from fluxforge.paper.studies import consistency
from fluxforge.scheme.reference import BUILT_IN
from study_documents import judge_document, run_document

pytestmark = pytest.mark.usefixtures("mesh_cache")

FAMILIES = {
    "squares": (4, 8, 16, 32),
    "equilateral": (3, 6, 12, 24),
    "right": (3, 6, 12, 24),
    "irregular": (5, 9),
}
CONFIG = consistency.Config(sizes=FAMILIES, seeds=SEEDS[:2])
NAMES = ("consistency-first-order", "consistency-two-hop", "consistency-crank-nicolson")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("consistency")


@pytest.fixture(scope="module")
def told() -> list[tuple[str, int, int]]:
    return []


@pytest.fixture(scope="module")
def result(folder: Path, told: list[tuple[str, int, int]]) -> dict[str, Any]:
    return run_document(consistency, CONFIG, folder, lambda *words: told.append(words))


def _verdict(result: Mapping[str, Any], name: str) -> str:
    return next(claim.verdict for claim in judge_document(consistency, result) if claim.name == name)


def test_the_document_is_plain_and_nothing_is_measured_twice(
    result: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    for name in ("measure_steady_errors", "measure_time_order", "measure_stability"):
        monkeypatch.setattr(consistency, name, lambda *_: pytest.fail("measured again"))
    assert run_document(consistency, CONFIG, folder) == result


def test_progress_is_told_to_the_end(result: dict[str, Any], told: list[tuple[str, int, int]]) -> None:
    total = sum(len(sizes) for sizes in FAMILIES.values()) + 1
    assert [done for _, done, _ in told] == list(range(total + 1))
    assert {of for *_, of in told} == {total}


def test_verdicts_of_the_formulas_as_printed(result: dict[str, Any]) -> None:
    assert [claim["name"] for claim in result["claims"]] == list(NAMES)
    verdicts = [claim["verdict"] for claim in result["claims"]]
    assert verdicts == ["does not hold", "does not hold", "does not hold"]


def test_lattices_conduct_as_theory_says(result: dict[str, Any]) -> None:
    lattices = {name: family["lattice"] for name, family in result["families"].items()}
    assert lattices["irregular"] is None
    assert lattices["squares"]["two-hop-printed"]["principal"] == pytest.approx([4, 4])
    assert lattices["equilateral"]["two-hop-printed"]["principal"] == pytest.approx([1 + 3**0.5] * 2)
    assert lattices["right"]["euler"]["principal"] == pytest.approx([0.7082, 3 / 5**0.5], abs=1e-4)
    assert lattices["right"]["euler"] == lattices["right"]["two-hop"]
    assert lattices["squares"]["euler"]["off"] == pytest.approx(0, abs=1e-9)


def test_measured_diffusivities_go_to_those_of_the_lattice_and_not_to_one(result: dict[str, Any]) -> None:
    for name in ("squares", "right"):
        family = result["families"][name]
        exact = np.array(family["lattice"]["two-hop-printed"]["K"])
        away = [np.abs(np.array(level["K"]) - exact).max() for level in family["diffusivity"]["two-hop-printed"]]
        assert away[-1] < 0.2 * away[0]
        assert family["diffusivity"]["two-hop-printed"][-1]["off"] > 2
    assert result["families"]["equilateral"]["diffusivity"]["euler"] == [None] * 4
    irregular = result["families"]["irregular"]["diffusivity"]
    assert irregular["two-hop-printed"][-1]["mean"] > 2 > irregular["euler"][-1]["mean"]


def test_the_plain_flux_converges_on_squares_and_stays_on_right_triangles(result: dict[str, Any]) -> None:
    squares, right = (result["families"][name]["steady"] for name in ("squares", "right"))
    assert squares["euler"]["order"] == pytest.approx(2, abs=0.02)
    assert right["euler"]["order"] is None
    assert right["euler"]["errors"][-1] == pytest.approx(0.0598, abs=2e-4)
    assert right["corrected"]["errors"][-1] < 2e-3
    assert right["two-hop-printed"]["errors"][-1] > 0.5


def test_errors_are_those_of_the_certificate(result: dict[str, Any]) -> None:
    study = measure_space_order(BUILT_IN["euler"], Levels("right", FAMILIES["right"]))
    family = result["families"]["right"]
    assert family["steady"]["euler"]["errors"] == pytest.approx(list(study.l2.errors))
    assert family["steady"]["euler"]["rates"] == pytest.approx(list(study.l2.rates))
    assert family["cells"] == list(study.cells)
    assert family["h"] == pytest.approx(list(study.l2.sizes))


def test_random_families_take_the_root_mean_square_over_their_seeds(result: dict[str, Any]) -> None:
    alone = [
        consistency.measure_steady_errors(BUILT_IN["euler"], consistency.make_mesh("irregular", 5, seed))[0]
        for seed in CONFIG.seeds
    ]
    error = result["families"]["irregular"]["steady"]["euler"]["errors"][0]
    assert error == pytest.approx(np.sqrt(np.mean(np.square(alone))))


def test_crank_nicolson_as_printed_grows_at_every_step(result: dict[str, Any]) -> None:
    right, printed = (result["crank_nicolson"][name] for name in ("crank-nicolson", "crank-nicolson-printed"))
    assert right["stable"] == "at every step"
    assert printed["stable"] == "at no step"
    # (2 + x)/|2 − x| against its inverse.
    assert printed["growth"] == pytest.approx([(2 + x) / abs(2 - x) for x in printed["steps"]])
    assert right["growth"] == pytest.approx([1 / value for value in printed["growth"]])
    assert min(printed["growth"]) > 1
    assert printed["diffusivity"]["principal"] == pytest.approx([-1, -1])
    assert (printed["source"], right["source"]) == pytest.approx((0, 1))
    assert result["equations"]["crank-nicolson-printed"].startswith("T_t = -alpha*T_xx")


def test_the_verdict_on_first_order_changes_with_the_orders(result: dict[str, Any]) -> None:
    changed = copy.deepcopy(result)
    for family in changed["families"].values():
        family["steady"]["euler"]["order"] = 0.9
    assert _verdict(changed, NAMES[0]) == "holds"
    # Second order is not first order.
    for order in (0.8, 2.0):
        changed["families"]["squares"]["steady"]["euler"]["order"] = order
        assert _verdict(changed, NAMES[0]) == "holds under a condition"
    for order in (0.5, 2.0):
        changed["time_order"]["euler"] = order
        assert _verdict(changed, NAMES[0]) == "does not hold"
    changed["time_order"]["euler"] = None
    assert _verdict(changed, NAMES[0]) == "does not hold"


def test_no_family_has_the_order_that_the_paper_says(result: dict[str, Any]) -> None:
    claim = judge_document(consistency, result)[0]
    assert claim.verdict == "does not hold"
    assert claim.evidence.startswith("order 1.00 in time; in space no family has order 1.")


def test_the_evidence_tells_a_plateau_from_an_order_and_from_neither(result: dict[str, Any]) -> None:
    changed = copy.deepcopy(result)
    steady = changed["families"]["irregular"]["steady"]["euler"]
    steady |= {"order": None, "rates": [1.0, 0.4, 0.9]}
    evidence = judge_document(consistency, changed)[0].evidence
    assert "squares order 2.00" in evidence
    assert "right stays at 0.06" in evidence
    assert "irregular no settled order" in evidence
    steady["rates"][-1] = 0.1
    assert "irregular stays at" in judge_document(consistency, changed)[0].evidence


def test_the_verdict_on_two_hops_changes_with_diffusivity_and_error(result: dict[str, Any]) -> None:
    changed = copy.deepcopy(result)
    for family in changed["families"].values():
        right = {"K": np.eye(2).tolist(), "principal": [1.0, 1.0], "mean": 1.0, "off": 0.01}
        family["diffusivity"]["two-hop-printed"][-1] = right
        if family["lattice"] is not None:
            family["lattice"]["two-hop-printed"] = right
        family["steady"]["two-hop-printed"] = copy.deepcopy(family["steady"]["euler"])
    assert _verdict(changed, NAMES[1]) == "holds"
    changed["families"]["right"]["steady"]["two-hop-printed"]["errors"][-1] *= 1.1
    assert _verdict(changed, NAMES[1]) == "holds under a condition"
    for family in changed["families"].values():
        family["diffusivity"]["two-hop-printed"][-1]["off"] = 0.1
    assert _verdict(changed, NAMES[1]) == "does not hold"


def test_the_verdict_on_crank_nicolson_changes_with_sign_and_source(result: dict[str, Any]) -> None:
    changed = copy.deepcopy(result)
    both = changed["crank_nicolson"]
    both["crank-nicolson-printed"] = copy.deepcopy(both["crank-nicolson"])
    assert _verdict(changed, NAMES[2]) == "holds"
    both["crank-nicolson-printed"]["source"] = 0.0
    assert _verdict(changed, NAMES[2]) == "holds under a condition"
    both["crank-nicolson-printed"]["stable"] = "at short steps"
    assert _verdict(changed, NAMES[2]) == "does not hold"


def test_without_gmsh_its_meshes_are_left_out(
    result: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consistency, "gmsh_problem", lambda: "libGLU.so.1 is missing")
    told: list[str] = []
    config = consistency.Config(sizes={"squares": (2, 3), consistency.GMSH: (4,)})
    document = run_document(consistency, config, folder, warn=told.append)
    assert list(document["families"]) == ["squares"]
    assert "libGLU" in told[0]


def test_every_family_of_a_preset_has_four_levels_at_least() -> None:
    for preset, largest in (("quick", 4_000), ("paper", 39_000)):
        families = consistency.Config(preset=preset).families
        assert set(families) == {"squares", "equilateral", "right", "jittered", "irregular", consistency.GMSH}
        assert all(len(sizes) >= 4 and list(sizes) == sorted(set(sizes)) for sizes in families.values())
        assert all(
            largest < sizes[-1] ** 2 * (1 if name == "squares" else 2) <= 1.03 * largest
            for name, sizes in families.items()
        )
