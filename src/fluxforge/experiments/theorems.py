"""The paper's lemmas and theorems as code: what they promise, on which conditions, and networks that break them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from fluxforge import recipe
from fluxforge.data import Problem, meshes, source
from fluxforge.discover import Progress, environment, silent
from fluxforge.experiments._claim import Claim, Verdict
from fluxforge.gnn import Network, cast
from fluxforge.gnn.exact import biased_network, memorising_network, needed_bound, nonzeros, sparse_count, sparse_network
from fluxforge.mesh import FAMILIES, Mesh, dual
from fluxforge.train import train
from fluxforge.verify import bounds

NAME = "theorems"
DT = 0.1
SHAPES = tuple((layers, depth) for layers in (1, 2, 3) for depth in (2, 3, 4))
EXACT = 1e-11
FAMILY_SIZE = 8
# Relative noise on the lemma's weights: networks near the sparse solution, which the second theorem speaks of.
NOISE = (1e-4, 1e-3, 1e-2)


@dataclass(frozen=True)
class Config:
    """How many networks are trained, for how long, and on how many meshes the bounds are tried."""

    preset: str = "quick"
    changes: Mapping[str, Any] = field(default_factory=dict)
    meshes: int = 200
    cells: int = 150
    steps: int = 20_000
    seeds: int = 16


def run(
    config: Config, folder: Path | None = None, tell: Progress = silent, warn: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """Everything the appendix claims, measured; seconds, but for the training of two families of networks."""
    with jax.enable_x64(True):
        tell("meshes", 0, 5)
        wanted = recipe.Meshes(meshes=config.meshes, cells=(config.cells, config.cells))
        found = {f"{mesh.origin} ({k})": mesh for k, mesh in enumerate(meshes(wanted, 7))}
        problems = _together(bounds.roomy_problems(found, jax.random.key(3), count=2, dt=DT))
        training = bounds.readings(jax.random.key(1), dt=DT)
        tell("the lemma", 1, 5)
        result = {
            "experiment": NAME,
            "dt": DT,
            "lemma": _lemma(problems),
            "minimality": _minimality(problems, training),
        }
        tell("counterexamples", 2, 5)
        result["counterexamples"] = _counterexamples(problems, training)
        tell("bounds on trained networks", 3, 5)
        result["linear"] = _linear(config, problems)
        result["deep"] = _deep(config, problems, training)
        tell("Fourier's condition", 4, 5)
        result["fourier"] = _fourier()
    result |= {"meshes": config.meshes, "environment": environment()}
    return result | {"claims": [claim.document() for claim in check(result)]}


def _together(problems: Mapping[str, Problem]) -> dict[str, Problem]:
    """All meshes in one batch: they are padded to one size already."""
    joined = jax.tree.map(lambda *leaves: jnp.concatenate([jnp.asarray(leaf) for leaf in leaves]), *problems.values())
    return {f"{len(problems)} unstructured meshes": joined}


def _lemma(problems: Mapping[str, Problem]) -> list[dict[str, Any]]:
    """Count and largest error of the lemma's network for several L and m."""
    return [
        {
            "layers": layers,
            "depth": depth,
            "nonzeros": nonzeros(network := sparse_network(layers, depth, 4)),
            "printed": sparse_count(layers, depth),
            "worst_error": max(bounds.largest_error(network, each) for each in problems.values()),
        }
        for layers, depth in SHAPES
    ]


def _minimality(problems: Mapping[str, Problem], training: Mapping[str, Problem]) -> dict[str, Any]:
    """Fewer non-zeros than the lemma allows, for L = m = 2: one exact on bounded data, one on two cells only."""
    everywhere = needed_bound(1.0, DT, weight=100.0, fourier=1.0)
    two_cells = needed_bound(1.0, DT, weight=3.0**0.5, fourier=DT)
    networks = {
        "exact on bounded data": biased_network(2, 2, 8, everywhere),
        "exact on two cells only": memorising_network(2, 2, 8, bound=two_cells, ratio=DT / 3.0**0.5),
    }
    return {
        name: {
            "nonzeros": nonzeros(network),
            "printed_minimum": sparse_count(2, 2),
            "training_error": bounds.largest_error(network, training["signed"]),
            "worst_error": max(bounds.largest_error(network, each) for each in problems.values()),
        }
        for name, network in networks.items()
    }


def _counterexamples(problems: Mapping[str, Problem], training: Mapping[str, Problem]) -> list[dict[str, Any]]:
    makers = (
        bounds.offset_counterexample,
        bounds.memorised_counterexample,
        bounds.saturated_counterexample,
        bounds.one_sided_counterexample,
        bounds.late_counterexample,
    )
    found = [make(problems, training) for make in makers]
    return [
        {
            "name": each.name,
            "claim": each.claim,
            "nonzeros": each.nonzeros,
            "fits": each.fits,
            "training_error": each.training,
            **_checked(each.check),
        }
        for each in found
    ]


def _checked(check: bounds.BoundCheck) -> dict[str, Any]:
    return {
        "eps": check.bound.eps,
        "bound": check.bound.value,
        "worst_error": check.worst_error,
        "ratio": check.ratio,
        "where": str(check.where),
        "corrected_bound": check.corrected,
        "hypotheses": [asdict(each) for each in check.hypotheses],
    }


def _trained(config: Config, changes: Mapping[str, Any]) -> tuple[list[Network], Problem]:
    """Networks of a recipe like the paper's, and the graphs they were trained on, in float64."""
    base = recipe.override(recipe.load("generalisation"), {"seeds": config.seeds, "training.steps": config.steps})
    spec = recipe.override(base, {"data.negated": True, "data.time_step": DT, **changes, **config.changes})
    done = train(spec, source(spec))
    taught = source(spec, dtype="float64").problems  # type: ignore[attr-defined]
    return [cast(done.member(k), "float64") for k in done.of_arm("sparse")], taught


def _linear(config: Config, problems: Mapping[str, Problem]) -> dict[str, Any]:
    """The first bound on linear networks, trained; one record per seed."""
    shape = {"network.layers": 1, "network.depth": 1, "arms": {"sparse": 1e-3}}
    networks, taught = _trained(config, shape)
    return _summed([bounds.check_linear_bound(each, taught, problems) for each in networks])


def _deep(config: Config, problems: Mapping[str, Problem], training: Mapping[str, Problem]) -> dict[str, Any]:
    """The second bound on trained networks, which lack the structure it needs, and on the lemma's with noise."""
    networks, taught = _trained(config, {"arms": {"sparse": 1e-3}, "training.learning_rate": 3e-3})
    trained = [bounds.check_deep_bound(each, taught, problems) for each in networks]
    near = [
        bounds.check_deep_bound(_shaken(sparse_network(2, 2, 2), size, seed), training["signed"], problems)
        for size in NOISE
        for seed in range(config.seeds)
    ]
    return {"trained": _summed(trained), "near the lemma's network": _summed(near)}


def _shaken(network: Network, size: float, seed: int) -> Network:
    """Every non-zero parameter times 1 + size · uniform(−1, 1)."""
    rng = np.random.default_rng([seed, round(1 / size)])
    return jax.tree.map(
        lambda leaf: leaf * (1 + size * rng.uniform(-1, 1, leaf.shape)) if eqx.is_inexact_array(leaf) else leaf, network
    )


def _summed(checks: Sequence[bounds.BoundCheck]) -> dict[str, Any]:
    """All ratios, which hypotheses fail how often, and the worst network in full."""
    names = [each.name for each in checks[0].hypotheses]
    missing = {name: sum(not h.holds for check in checks for h in check.hypotheses if h.name == name) for name in names}
    worst = max(checks, key=lambda check: check.ratio)
    return {
        "networks": len(checks),
        "ratios": [check.ratio for check in checks],
        "eps": [check.bound.eps for check in checks],
        "hypotheses_failing": {name: count for name, count in missing.items() if count},
        "violations": sum(not check.holds for check in checks),
        "violations_with_all_hypotheses": sum(check.bound.applies and not check.holds for check in checks),
        "worst": _checked(worst),
    }


def _fourier() -> list[dict[str, Any]]:
    found = [bounds.fourier_is_sufficient(dual(_family(name))) for name in FAMILIES]
    return [asdict(each) | {"family": name} for name, each in zip(FAMILIES, found, strict=True)]


def _family(name: str) -> Mesh:
    return FAMILIES[name](FAMILY_SIZE, 1)


def check(result: Mapping[str, Any]) -> list[Claim]:
    """The appendix, sentence by sentence, judged from the numbers alone."""
    return [_existence(result), _minimal(result), _first_bound(result), _second_bound(result), _stability(result)]


def _existence(result: Mapping[str, Any]) -> Claim:
    rows = result["lemma"]
    worst = max(row["worst_error"] for row in rows)
    right = all(row["nonzeros"] == row["printed"] for row in rows) and worst <= EXACT
    evidence = f"counts agree for {len(rows)} shapes, largest error on {result['meshes']} meshes {worst:.1e}"
    text = "an L-layer GNN with m-layer ReLU MLPs reproduces F on any graph with exactly 2m(L+1)+4 non-zero parameters"
    return Claim("lemma, existence", text, "holds" if right else "does not hold", evidence)


def _minimal(result: Mapping[str, Any]) -> Claim:
    rows = result["minimality"]
    fewer = {
        name: row
        for name, row in rows.items()
        if row["nonzeros"] < row["printed_minimum"] and row["training_error"] <= EXACT
    }
    evidence = "; ".join(
        f"{row['nonzeros']} non-zeros fit two-cell data to {row['training_error']:.0e} and err by up to "
        f"{row['worst_error']:.1e} on {result['meshes']} meshes ({name})"
        for name, row in fewer.items()
    )
    text = "fewer than 2m(L+1)+4 non-zero parameters cannot give a zero error on the training set"
    verdict: Verdict = "does not hold" if fewer else "holds"
    return Claim("lemma, minimality", text, verdict, evidence or "no smaller network fits")


def _first_bound(result: Mapping[str, Any]) -> Claim:
    broken = [each for each in result["counterexamples"] if each["name"] == "opposite biases" and each["ratio"] > 1]
    return _bound_claim(
        "first bound",
        "a one-layer GNN with training error ε errs by less than ε (4 + 4/Δt + N) on any graph",
        [result["linear"]],
        broken,
    )


def _second_bound(result: Mapping[str, Any]) -> Claim:
    broken = [each for each in result["counterexamples"] if each["name"] != "opposite biases" and each["ratio"] > 1]
    text = "a deep GNN with loss below ε < η errs by less than 2ε (1 + 2/Δt) on any graph"
    return _bound_claim("second bound", text, list(result["deep"].values()), broken)


def _bound_claim(name: str, text: str, groups: list[Mapping[str, Any]], broken: list[Mapping[str, Any]]) -> Claim:
    """Does not hold if broken with every hypothesis met; under a condition if broken only without one of them."""
    met = sum(group["violations_with_all_hypotheses"] for group in groups)
    verdict: Verdict = "does not hold" if met else "holds under a condition" if broken else "holds"
    worst = max(max(group["ratios"]) for group in groups)
    evidence = f"error/bound at most {worst:.2g} over {sum(group['networks'] for group in groups)} networks"
    if broken:
        evidence += "; counterexamples: " + ", ".join(f"{each['name']} (×{each['ratio']:.1e})" for each in broken)
    return Claim(name, text, verdict, evidence)


def _stability(result: Mapping[str, Any]) -> Claim:
    ratios = {row["family"]: row["ratio"] for row in result["fourier"]}
    least, most = min(ratios.values()), max(ratios.values())
    verdict: Verdict = "holds" if most <= 1.0 + 1e-3 else "does not hold"
    evidence = f"largest stable step / Fourier step is {least:.3f} to {most:.3f}: sufficient, not necessary"
    return Claim(
        "Fourier condition", "to be stable, the time step must satisfy the Fourier condition", verdict, evidence
    )
