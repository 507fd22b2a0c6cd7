"""Fisher's equation as a user writes it, to a formula with a verdict, without touching the package."""

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from jaxtyping import Array, Float

import fluxforge as ff
from fluxforge import recipe
from fluxforge.gnn import AbstractMLP, Network, build
from fluxforge.mesh import squares
from fluxforge.paper.studies._decoys import FluxMessage
from fluxforge.pipeline import _outcome, _problems, discover, explain, resume
from fluxforge.scheme import find, load
from fluxforge.scheme.emit import emit
from own_equations import CUBIC, FISHER, written

R = 1.5
SMALL: dict[str, Any] = {
    "diffusivity": None,
    "order": None,
    "parameters": {"D": 1.0, "r": R},
    "network.width": 8,
    "network.depth": 1,
    "search.restarts": 1,
    "search.evaluations": 6000,
    "search.samples": 200,
    "evaluation.meshes": 0,
}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Fewer and smaller meshes to judge by; one family in the certificate, which is no part of the verdict here.

    Slow tests judge as users do.
    """
    if request.node.get_closest_marker("slow"):
        return
    monkeypatch.setattr(_problems, "MESHES", 4)
    monkeypatch.setattr(_problems, "CELLS", 40)
    monkeypatch.setattr(_outcome, "FAMILIES", ("squares",))


class ReactingUpdate(AbstractMLP):
    """z/g + V (S + r T (1 − T^p)), the f of T' = T + Δt/V f: a network that computes its scheme."""

    gauge: Float[Array, ""]
    power: int = eqx.field(static=True)

    def __call__(self, x: Float[Array, "rows inputs"]) -> Float[Array, "rows outputs"]:
        """Of T, S, Δt, V and z."""
        T, S, _, V, z = x.T
        return (z / self.gauge + V * (S + R * T * (1 - T**self.power)))[:, None]


def reacting(spec: recipe.Recipe, power: int) -> Network:
    """A network of the recipe that computes u' = u + Δt (L u + r u (1 − u^p) + S)."""
    g, none = jnp.asarray(-0.4, "float32"), jnp.asarray(0.0, "float32")
    return eqx.tree_at(
        lambda n: (n.layers[0].messages[0].f, n.layers[0].update.f),
        build(spec.network, jax.random.key(0)),
        (FluxMessage(g, none, none), ReactingUpdate(g, power)),
        is_leaf=lambda leaf: isinstance(leaf, AbstractMLP),
    )


def spec_of(equation: str, folder: Path, **changes: Any) -> recipe.Recipe:
    base = recipe.load("first-order")
    return recipe.override(base, SMALL | {"equation": str(written(equation, folder)), **changes})


def test_a_network_that_computes_fishers_scheme_is_recovered_with_its_parameters(tmp_path: Path) -> None:
    spec = spec_of(FISHER, tmp_path)
    (tmp_path / "own.toml").unlink()  # the run does not need it any more
    discovery = explain(reacting(spec, 1), spec, tmp_path / "run")
    assert discovery.verdict == "recovered"
    assert discovery.scheme == "euler"
    assert discovery.as_expected
    scheme = load(tmp_path / "run" / "scheme.json")
    assert scheme.equation == recipe.equation_of(spec)
    assert {str(each) for each in scheme.stages[0].outputs["T_new"].expression.free_symbols} >= {"r", "T", "S", "dt"}
    assert "dt*T[P]*r" in emit(find(tmp_path / "run"), "c")
    how = {"parameters": {"D": 0.01, "r": 2.0}, "initial": "x*y", "boundary": ff.Neumann(), "dt": 0.1, "steps": 5}
    ours, euler = (ff.simulate(each, squares(4), **how).fields[-1] for each in (scheme, find("euler", scheme.equation)))
    assert ours == pytest.approx(euler, abs=1e-14)
    assert not any("heat" in text or "α" in text for text in (*(discovery.findings or ()), *discovery.reasons))


@pytest.mark.slow
def test_a_network_of_another_exponent_is_not_taken_for_fishers(tmp_path: Path) -> None:
    spec = spec_of(FISHER, tmp_path)
    discovery = explain(reacting(spec, 2), spec, tmp_path / "run")
    assert discovery.verdict != "recovered"
    assert not discovery.as_expected
    assert any("the law of the data is a different one" in text for text in discovery.reasons)


def test_a_short_run_ends_in_a_report_and_is_resumed_without_the_files_of_its_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the recipe's file to the report; no formula describes so short a training to a millionth."""
    few = {"training.steps": 4, "training.chunk": 2, "training.batch": 8, "search.evaluations": 200}
    spec = spec_of(FISHER, tmp_path, **few, **{"search.threshold": 1e-6, "search.samples": 100, "network.width": 4})
    monkeypatch.chdir(tmp_path)
    content = recipe.text("first-order", changes=_flat(spec))
    document = discover(written(content, tmp_path, "recipe.toml"), tmp_path / "run").document
    assert document["equation"] == "fisher"
    assert document["parameters"] == {"D": 1.0, "r": R}
    assert "diffusivity" not in document
    assert document["verdict"] == "refused"
    page = (tmp_path / "run" / "report.html").read_text()
    assert "fisher" in page
    assert not any(word in page for word in ("heat", "temperature", "diffusivity α"))
    (tmp_path / "own.toml").unlink()
    assert resume(tmp_path / "run").document == document


def _flat(spec: recipe.Recipe) -> dict[str, Any]:
    """The changes that make the recipe of the shipped one, its equation as a file again."""
    names = {name: value for name, value in recipe.to_dict(spec).items() if name not in ("equation", "name")}
    return {**names, "equation": "own.toml"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("equation", "law", "scheme"),
    [(FISHER, None, "euler"), (FISHER, "D*A*(T_N - T_P)", None)],
    ids=["fisher", "another-flux"],
)
def test_trained_networks_are_recovered_as_the_law_of_their_data_and_no_other(
    tmp_path: Path, equation: str, law: str | None, scheme: str | None
) -> None:
    """At the size of the shipped recipe. Another flux is recovered as itself, and is no scheme of Fisher's equation."""
    full = {"diffusivity": None, "order": None, "parameters": {"D": 1.0, "r": R}, "evaluation.engine": "builtin"}
    spec = recipe.override(
        recipe.load("first-order"), full | {"equation": str(written(equation, tmp_path)), "data.law": law}
    )
    document = discover(spec, tmp_path / "run").document
    assert document["verdict"] == "recovered"
    assert document["scheme"] == scheme
    assert document["as_expected"]


@pytest.mark.slow
def test_a_cubic_reaction_is_not_taken_for_another_one(tmp_path: Path) -> None:
    """At the size of the shipped recipe the search may miss the term in T³: then nothing is recovered."""
    full = {"diffusivity": None, "order": None, "parameters": {"D": 1.0, "r": R}, "evaluation.engine": "builtin"}
    spec = recipe.override(recipe.load("first-order"), full | {"equation": str(written(CUBIC, tmp_path))})
    document = discover(spec, tmp_path / "run").document
    if document["verdict"] == "recovered":
        assert document["scheme"] == "euler"
    else:
        assert document["verdict"] == "approximation"
        assert any("the law of the data is a different one" in reason for reason in document["reasons"])
