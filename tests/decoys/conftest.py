"""Decoys at a size of seconds."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import asdict

from fluxforge.paper.studies import controls
from fluxforge.paper.studies._decoys import DECOYS, Decoy
from fluxforge.pipeline import _distillation, _judgement, _problems
from fluxforge.pipeline._problems import JUDGEMENT_KEY, draw_problems

PAIRS, MESHES = 128, 12
RunDecoy = Callable[..., dict[str, Any]]
SMALL = {
    "first-order": {
        "network.width": 2,
        "network.depth": 1,
        "search.restarts": 1,
        "search.samples": 400,
        "search.evaluations": 6_000,
    },
    "midpoint": {**controls.SIZES["quick"]["midpoint"], "data.meshes": 3},
}


@pytest.fixture(scope="module", autouse=True)
def _small() -> Iterator[None]:
    """Fewer problems for a reading and a fit, on smaller meshes; the judgement stays the same.

    As many for one as for the other, so that one program draws them all.
    """
    measure_loss = _distillation.measure_network_loss
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_problems, "MESHES", 4)
        patch.setattr(_problems, "CELLS", 40)
        patch.setattr(_distillation, "PROBLEMS", MESHES)
        patch.setattr(_judgement, "LOSS_PROBLEMS", (PAIRS, MESHES))
        patch.setattr(_distillation, "REFIT_PROBLEMS", PAIRS)
        patch.setattr(_distillation, "fresh_problems", lambda *asked: draw_problems(*asked, JUDGEMENT_KEY, PAIRS))
        # Formulas of stencils are not chosen by it.
        patch.setattr(
            _distillation,
            "measure_network_loss",
            lambda network, spec: 0.0 if spec.search.route == "stencil" else measure_loss(network, spec),
        )
        # The comparison of stencils is reported beside the verdict, decides nothing, and takes seconds.
        patch.setattr(_judgement, "compare_stencils", lambda *_: None)
        patch.setattr(controls, "SIZES", {"quick": SMALL})
        yield


@pytest.fixture
def run_decoy(tmp_path: Path) -> RunDecoy:
    """The row of a decoy, with fields of its recipe changed."""

    def run(name: str, **changes: Any) -> dict[str, Any]:
        decoy: Decoy = DECOYS[name]
        decoy = replace(decoy, changes={**decoy.changes, **changes.pop("changes", {})}, **changes)
        return asdict(controls.run_decoy(decoy, controls.Config(), tmp_path, lambda *_: None, pytest.fail))

    return run
