"""The theorems' experiment at toy size, and verdicts that follow the numbers."""

import copy
from pathlib import Path
from typing import Any

import pytest

from fluxforge.paper import PARTS
from fluxforge.paper.studies import theorems
from study_documents import judge_document, read_partial, run_document

theorems_figure = PARTS["theorems"].draw["theorems"]


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(theorems, "SHAPES", ((1, 2), (2, 3)))
        patch.setattr(theorems, "NOISE", (1e-3,))
        # Trained networks have the width and precision of the counterexamples: their errors are compiled once.
        changes = {"network.width": 8, "training.precision": "float64"}
        return run_document(theorems, theorems.Config(meshes=4, cells=40, steps=300, seeds=2, changes=changes))


def _verdict(result: dict[str, Any], name: str) -> str:
    return next(claim.verdict for claim in judge_document(theorems, result) if claim.name == name)


def test_the_lemma_holds_and_its_minimality_does_not(result: dict[str, Any]) -> None:
    assert _verdict(result, "lemma, existence") == "holds"
    assert _verdict(result, "lemma, minimality") == "does not hold"
    smaller = result["minimality"]
    assert smaller["exact on bounded data"]["nonzeros"] == 12
    assert smaller["exact on bounded data"]["worst_error"] < 1e-11
    assert smaller["exact on two cells only"]["nonzeros"] <= 11
    assert smaller["exact on two cells only"]["worst_error"] > 1.0


def test_the_bounds_hold_only_with_their_hypotheses(result: dict[str, Any]) -> None:
    assert _verdict(result, "first bound") == _verdict(result, "second bound") == "holds under a condition"
    assert result["linear"]["violations_with_all_hypotheses"] == 0
    assert all(each["ratio"] > 1e3 for each in result["counterexamples"])


def test_fourier_s_condition_is_sufficient_and_not_necessary(result: dict[str, Any]) -> None:
    assert _verdict(result, "Fourier condition") == "holds under a condition"
    assert all(row["ratio"] >= 1.0 - 1e-9 for row in result["fourier"])
    # Summed over cells alone it is sharp on lattices whose walls are held: the checkerboard is a mode there.
    sharp = {row["family"]: row["ratio_cells"] for row in result["fourier"]}
    assert sharp["squares"] == pytest.approx(1.0, abs=1e-9)
    assert sharp["jittered"] > 1.05


def test_verdicts_change_with_the_numbers(result: dict[str, Any]) -> None:
    changed = copy.deepcopy(result)
    changed["lemma"][0]["worst_error"] = 1e-3
    assert _verdict(changed, "lemma, existence") == "does not hold"
    for row in changed["minimality"].values():
        row["training_error"] = 0.1
    assert _verdict(changed, "lemma, minimality") == "holds"
    changed["linear"]["violations_with_all_hypotheses"] = 1
    assert _verdict(changed, "first bound") == "does not hold"
    changed["counterexamples"] = []
    assert _verdict(changed, "second bound") == "holds"
    for row in changed["fourier"]:
        row["ratio_cells"] = 1.0
    assert _verdict(changed, "Fourier condition") == "holds"
    for row in changed["fourier"]:
        row["ratio_cells"] = 1.01
    assert _verdict(changed, "Fourier condition") == "does not hold"
    assert _verdict(result, "optimality") == "does not hold"
    assert _verdict(changed, "optimality") == "holds"
    assert _verdict(result, "change of a step") == "holds"
    changed["largest_change"] = 2.01
    assert _verdict(changed, "change of a step") == "does not hold"


def test_the_weights_of_an_exact_linear_network_are_determined(result: dict[str, Any]) -> None:
    weights = result["simple_weights"]
    assert weights["solution"] == pytest.approx([1.0, 1.0, 1.0, 0.0], abs=1e-11)
    assert weights["smallest_singular_value"] > 1e-2
    assert _verdict(result, "lemma, simple weights") == "holds"
    changed = copy.deepcopy(result)
    changed["simple_weights"]["rank"] = 3
    assert _verdict(changed, "lemma, simple weights") == "does not hold"
    changed["simple_weights"] = {**weights, "solution": [1.0, 0.9, 1.0, 0.0]}
    assert _verdict(changed, "lemma, simple weights") == "does not hold"


def test_the_verdict_on_biases_counts_the_networks_that_kept_one(result: dict[str, Any]) -> None:
    changed = copy.deepcopy(result)
    ones = {"temperature": 1.0, "source": 1.0, "flux": 1.0, "message": 1.0}
    kept, lost = ones | {"message_bias": 0.4, "bias": 1e-5}, ones | {"message_bias": -1e-5, "bias": 0.0}
    for rows, verdict in (
        ([lost, lost], "holds"),
        ([lost, kept], "holds under a condition"),
        ([kept, kept], "does not hold"),
    ):
        changed["linear"]["weights"] = rows
        assert _verdict(changed, "biases vanish") == verdict


def test_the_verdict_on_weights_is_on_the_minimiser_and_not_on_the_optimiser(result: dict[str, Any]) -> None:
    minimum = result["least_l1"]
    assert minimum == {"least": 2.0, "minimisers": [[1.0, 1.0], [-1.0, -1.0]]}
    claim = next(claim for claim in judge_document(theorems, result) if claim.name == "weights become one")
    assert (claim.verdict, claim.condition) == ("holds under a condition", "up to a common sign")
    changed = copy.deepcopy(result)
    far = {"temperature": 1.0, "source": 1.0, "flux": 2.0, "message": 0.5, "message_bias": 0.0, "bias": 0.0}
    changed["linear"]["weights"] = [far, far]
    assert _verdict(changed, "weights become one") == "holds under a condition"
    changed["least_l1"]["minimisers"] = [[1.0, 1.0]]
    assert _verdict(changed, "weights become one") == "holds"
    changed["least_l1"]["minimisers"] = [[2.0, 0.5]]
    assert _verdict(changed, "weights become one") == "does not hold"


def test_the_printed_count_of_the_update_is_half_of_what_it_has(result: dict[str, Any]) -> None:
    claim = next(claim for claim in judge_document(theorems, result) if claim.name == "lemma, update count")
    assert claim.verdict == "does not hold"
    assert "with m = 2 the update has 8 non-zeros, printed 4" in claim.evidence
    assert "a misprint" in claim.evidence
    changed = copy.deepcopy(result)
    for row in changed["lemma"]:
        row["nonzeros"] = 2 * row["depth"] * row["layers"] + 3 + row["depth"] - 1
    assert _verdict(changed, "lemma, update count") == "holds"


def test_the_training_set_has_fewer_neighbours_than_a_mesh(result: dict[str, Any]) -> None:
    assert result["neighbours"] == {"training": 1, "meshes": 3}
    assert _verdict(result, "N of the training set") == "does not hold"
    changed = copy.deepcopy(result)
    changed["neighbours"]["training"] = 3
    assert _verdict(changed, "N of the training set") == "holds"


def test_the_figure_draws(result: dict[str, Any], tmp_path: Path) -> None:
    theorems_figure(read_partial(result, theorems.Result)).savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
