"""From a network to an accepted formula, with networks whose functions are known: a gauge, a wrong sign, noise."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from jaxtyping import Array, Float

from fluxforge import recipe
from fluxforge.errors import TrainingError
from fluxforge.gnn import AbstractMLP, Network, build
from fluxforge.pipeline import _distillation, _problems, discover, resume
from fluxforge.scheme import find
from fluxforge.train import Trained

ALPHA = 0.3


class Message(AbstractMLP):
    """−0.4 (1 + 0.04 T_P) A/δ (T_N − T_P): the flux, in a gauge that depends on the receiving cell."""

    scale: Float[Array, ""]
    bend: float = eqx.field(static=True)

    def __call__(self, x: Float[Array, "rows inputs"]) -> Float[Array, "rows outputs"]:
        T_N, T_P, A, delta = x.T
        return (self.scale * (1.0 + self.bend * T_P) * A / delta * (T_N - T_P))[:, None]


class Update(AbstractMLP):
    """z/(−0.4 (1 + 0.04 T)) · α + V S: undoes the gauge, and knows α; times `factor`, which spoils it."""

    scale: Float[Array, ""]
    bend: float = eqx.field(static=True)
    factor: float = eqx.field(static=True)

    def __call__(self, x: Float[Array, "rows inputs"]) -> Float[Array, "rows outputs"]:
        T, S, _, V, z = x.T
        return (self.factor * ALPHA * z / (self.scale * (1.0 + self.bend * T)) + V * S)[:, None]


def spec(**changes: Any) -> recipe.Recipe:
    base = {
        "diffusivity": ALPHA,
        "network.width": 2,
        "network.depth": 1,
        "search.restarts": 1,
        "search.samples": 400,
        "evaluation.meshes": 2,
        "evaluation.cells": 40,
        "evaluation.engine": "builtin",
        "evaluation.rollout": 5,
    }
    return recipe.override(recipe.load("first-order"), {**base, **changes})


def trained(own: recipe.Recipe, *, bend: float = 0.04, factor: float = 1.0) -> Trained:
    network = build(own.network, jax.random.key(0))
    scale = jnp.asarray(-0.4, "float32")
    network = eqx.tree_at(
        lambda n: (n.layers[0].messages[0].f, n.layers[0].update.f),
        network,
        (Message(scale, bend), Update(scale, bend, factor)),
        is_leaf=lambda leaf: isinstance(leaf, AbstractMLP),
    )
    stacked: Network = jax.tree.map(lambda leaf: leaf[None] if eqx.is_array(leaf) else leaf, network)
    return Trained(stacked, (own.name,), 1, 1, (0,), (False,), stopped_early=False)


@pytest.fixture
def explain_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def run(name: str = "run", **how: float) -> dict[str, Any]:
        own = spec()
        monkeypatch.setattr(_distillation, "train", lambda *_, **__: trained(own, **how))
        return dict(discover(own, tmp_path / name).document)

    return run


@pytest.mark.slow
def test_a_network_with_a_gauge_is_recovered_as_the_first_order_scheme(explain_network: Any, tmp_path: Path) -> None:
    document = explain_network()
    assert document["recovered"], document["reasons"]
    assert document["constants"]["c1"] == pytest.approx(1.0, abs=1e-9)
    scheme, euler = find(tmp_path / "run" / "scheme.json"), find("euler")
    (stage,), (wanted,) = scheme.stages, euler.stages
    assert next(iter(stage.messages.values())).expression.equals(wanted.messages["z"].expression)
    z, mine = (next(iter(wanted.messages)), next(iter(stage.messages)))
    renamed = stage.outputs["T_new"].expression.subs({mine: z})
    assert str(renamed).replace(mine, z) == str(wanted.outputs["T_new"].expression)
    assert document["stencil"]["network"]["exponents"]["delta"] == pytest.approx(-1.0, abs=0.02)
    assert document["evaluation"]["formula"]["one_step_worst"] < 1e-12
    assert {path.name for path in (tmp_path / "run").iterdir()} >= {"report.html", "certificate.json", "scheme.json"}
    again = resume(tmp_path / "run").document
    assert again == json.loads(json.dumps(document))


@pytest.mark.slow
def test_a_network_that_diffuses_twice_too_fast_is_not_believed(explain_network: Any, tmp_path: Path) -> None:
    document = explain_network(factor=2.0)
    assert not document["recovered"]
    assert any(reason.startswith("NO") for reason in document["reasons"])
    assert not (tmp_path / "run" / "scheme.json").exists()
    assert (tmp_path / "run" / "report.html").exists()


@pytest.mark.parametrize(
    ("losses", "best"),
    [
        ([3.0, 1.0, 2.0], 1),
        ([math.nan, 1.0, 2.0], 1),
        ([3.0, math.nan, 2.0], 2),
        ([math.inf, math.nan, 7.0], 2),
        ([math.nan, math.nan], None),
        ([math.inf, math.nan], None),
    ],
)
def test_the_least_loss_is_a_number(losses: list[float], best: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy's argmin chooses the first NaN, and with it a network that gives no numbers."""
    own = spec()
    one = trained(own)
    count = len(losses)
    several = jax.tree.map(lambda leaf: jnp.repeat(leaf, count, axis=0) if eqx.is_array(leaf) else leaf, one.network)
    ensemble = replace(one, network=several, seeds=count, failed=(False,) * count)
    monkeypatch.setattr(_problems, "fresh_problems", lambda *_: None)
    left = iter(losses)
    monkeypatch.setattr(_problems, "loss_on", lambda *_: next(left))
    if best is None:
        with pytest.raises(TrainingError, match=r"none of the 2 trained networks has a finite loss .*\(0 of them"):
            _problems.choose_member(ensemble, own)
    else:
        assert _problems.choose_member(ensemble, own) == best
