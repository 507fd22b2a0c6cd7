"""The generalisation experiment at toy size, and verdicts that follow the numbers."""

import copy
from pathlib import Path
from typing import Any

import pytest

from fluxforge.paper.studies import generalisation
from fluxforge.report import extrapolation_figure, generalisation_figure
from study_documents import judge_document, read_partial, run_document

TOY = {
    "seeds": 2,
    "training.steps": 200,
    "training.learning_rate": 5e-3,
    # As networks are reduced: programs in one precision are compiled once.
    "training.precision": "float64",
    "network.width": 4,
    "data.graphs": 8,
    "evaluation.meshes": 2,
    "evaluation.cells": 40,
    "evaluation.engine": "builtin",
    "evaluation.rollout": 5,
}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("reproduction")
    config = generalisation.Config(changes=TOY, variants=("default",))
    first = run_document(generalisation, config, folder)
    again = run_document(generalisation, config, folder)
    assert all(again[name] == first[name] for name in ("sparse", "dense", "summary", "reduced", "extrapolation"))
    # Every variant goes the same way: a second one is only there to be doctored.
    return first | {"summary": {**first["summary"], "with faces": copy.deepcopy(first["summary"]["default"])}}


def test_every_arm_has_a_number_per_seed(result: dict[str, Any]) -> None:
    for arm in ("sparse", "dense"):
        assert all(len(result[arm][name]) == 2 for name in ("train_mae", "ood_mse", "rollout_mse", "nonzeros"))
        assert all(0 <= value < 10 for value in result[arm]["ood_mse"])
    beyond = result["extrapolation"]
    assert "stability limit" in beyond["fourier"]
    assert set(beyond["boundary"]) == {"random values", "insulated", "slope 1"}
    assert len(result["reduced"]["nonzeros"]) == 2
    assert result["reduced"]["lemma_nonzeros"] == 16


def test_the_figures_draw(result: dict[str, Any], tmp_path: Path) -> None:
    study = read_partial(result, generalisation.Result)
    arms = {"sparse": study.sparse, "dense": study.dense}
    for figure in (generalisation_figure(arms, study.seeds), extrapolation_figure(study.extrapolation)):
        figure.savefig(tmp_path / "figure.png")
        assert (tmp_path / "figure.png").stat().st_size > 10_000


def _doctored(result: dict[str, Any], **medians: dict[str, tuple[float, float]]) -> dict[str, Any]:
    """Every variant's medians of sparse and dense set to these."""
    changed = copy.deepcopy(result)
    for variant in changed["summary"].values():
        for name, (sparse, dense) in medians.items():
            variant["sparse"][name]["median"], variant["dense"][name]["median"] = sparse, dense
    return changed


def _verdict(result: dict[str, Any], name: str) -> str:
    return next(claim.verdict for claim in judge_document(generalisation, result) if claim.name == name)


def test_the_verdict_on_sparsity_follows_the_rollouts(result: dict[str, Any]) -> None:
    name = "only the sparse model generalises"
    assert _verdict(_doctored(result, rollout_mse=(1e-6, 1.0)), name) == "holds"
    assert _verdict(_doctored(result, rollout_mse=(1e-6, 1e-6)), name) == "does not hold"
    assert _verdict(_doctored(result, rollout_mse=(1.0, 1.0)), name) == "does not hold"
    mixed = _doctored(result, rollout_mse=(1e-6, 1.0))
    mixed["summary"]["with faces"]["dense"]["rollout_mse"]["median"] = 1e-4
    assert _verdict(mixed, name) == "holds under a condition"


def test_two_cells_suffice_if_sparse_networks_stay_close_everywhere_and_none_is_stuck(result: dict[str, Any]) -> None:
    good = _doctored(result, rollout_mse=(1e-6, 1.0))
    for variant in good["summary"].values():
        variant["sparse"]["stuck"] = 0
    assert _verdict(good, "two cells suffice") == "holds"
    good["summary"]["default"]["sparse"]["stuck"] = 1
    assert _verdict(good, "two cells suffice") == "holds under a condition"
    good["summary"]["default"]["sparse"]["rollout_mse"]["median"] = 0.1
    assert _verdict(good, "two cells suffice") == "holds under a condition"
    assert _verdict(_doctored(result, rollout_mse=(0.1, 1e-6)), "two cells suffice") == "does not hold"


def test_the_verdict_on_the_fit_follows_the_training_error_and_stuck_seeds(result: dict[str, Any]) -> None:
    good = _doctored(result, train_mae=(1e-5, 1e-5))
    for variant in good["summary"].values():
        variant["sparse"]["stuck"] = 0
    assert _verdict(good, "both fit") == "holds"
    good["summary"]["with faces"]["sparse"]["stuck"] = 1
    assert _verdict(good, "both fit") == "holds under a condition"
    assert _verdict(_doctored(result, train_mae=(0.1, 1e-5)), "both fit") == "does not hold"


def test_the_verdicts_on_weights_follow_the_weights(result: dict[str, Any]) -> None:
    changed = copy.deepcopy(result)
    changed["sparse"]["last_layer"], changed["dense"]["last_layer"] = [0.0, 0.0, 1.0], [0.5, 0.4, 1.0]
    changed["sparse"]["nonzeros"] = [16, 16]
    assert _verdict(changed, "weights cluster at zero") == _verdict(changed, "sparse count") == "holds"
    changed["sparse"]["last_layer"], changed["sparse"]["nonzeros"] = [0.5, 0.5, 1.0], [16, 17]
    assert _verdict(changed, "weights cluster at zero") == _verdict(changed, "sparse count") == "does not hold"
