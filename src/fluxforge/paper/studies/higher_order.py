"""The paper's section 5: what two layers, two hops and four layers learn from the residual alone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jax

from fluxforge import recipe
from fluxforge.certify.effective import lattice_diffusion
from fluxforge.certify.time_order import study_graph, time_order
from fluxforge.data import Problem, source
from fluxforge.distil import layered, small_steps
from fluxforge.gnn import Network
from fluxforge.mesh import fourier_step
from fluxforge.paper.studies._higher_order_claims import check as check_claims
from fluxforge.paper.studies._networks import NAMES, constants, rates_before, residuals, run_of
from fluxforge.paper.studies._records import Claim
from fluxforge.pipeline import Progress, discover, environment, ladder, problems_by_step, run_folder, silent
from fluxforge.pipeline import resume as go_on
from fluxforge.scheme import Scheme, find, symbol
from fluxforge.stepping import step_limit
from fluxforge.train import train

NAME = "higher-order"
Warn = Callable[[str], None]
# Other networks, each by the recipe it starts from and what it changes there.
VARIANTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "two layers, θ = 0": ("midpoint", {"loss.residual.theta": 0.0}),
    "two layers, θ = 1": ("midpoint", {"loss.residual.theta": 1.0}),
    "two layers, as printed": ("midpoint", {"loss.residual.theta": 1.0, "data.fourier": (0.5, 1.0)}),
    "two hops, as printed": (
        "two-hop",
        {"loss.residual.theta": 1.0, "data.fourier": (0.5, 1.0), "network.two_hop": "ring"},
    ),
    "four layers, θ = ½": ("midpoint", {"network.layers": 4}),
    "four layers, hermite": ("midpoint", {"network.layers": 4, "loss.residual.kind": "hermite"}),
}
VARIANT_STEPS = 5000
THETAS = (0.0, 0.5, 1.0)
# Steps, in units of the Fourier step, at which residuals and constants are shown.
STEPS = (0.0625, 0.125, 0.25, 0.5)
FLUX = symbol("alpha") * symbol("A") / symbol("delta")


@dataclass(frozen=True)
class Config:
    """What to train: both recipes, the other networks, and for how many steps those."""

    preset: str = "quick"
    changes: Mapping[str, Any] = field(default_factory=dict)
    variants: tuple[str, ...] = tuple(VARIANTS)
    variant_steps: int | None = None
    problems: int = 24


def run(
    config: Config, folder: Path | None = None, tell: Progress = silent, warn: Warn = lambda _: None
) -> dict[str, Any]:
    """Both discoveries, the other networks, and the constants of least residual without any network."""
    result: dict[str, Any] = {"experiment": NAME, "preset": config.preset}
    tell("constants of least residual", 0, 1)
    result |= _direct_all(config)
    result["printed_diffusivity"] = {
        family: lattice_diffusion(find("two-hop-printed"), family).tolist() for family in ("squares", "equilateral")
    }
    result["networks"], result["discovered"] = {}, {}
    for name in NAMES:
        own = _spec(config, name, {})
        network, document = _discovered(own, folder, _named(tell, name), warn)
        result["networks"][name] = _measured(network, own)
        result["discovered"][name] = document
    for name in config.variants:
        base, changes = VARIANTS[name]
        own = _spec(config, base, {**changes, **_quicker(config), **_gentler(config, changes)})
        result["networks"][name] = _variant(own, None if folder is None else folder / _plain(name), _named(tell, name))
    # One network of each is trained here: what is said of them is judged on the seeds of `rates`.
    result["rates"] = rates_before(folder, NAMES)
    result["environment"] = environment()
    return result | {"claims": [claim.document() for claim in check(result)]}


def check(result: Mapping[str, Any]) -> list[Claim]:
    """The sentences of section 5, judged by the numbers."""
    return check_claims(result)


def _quicker(config: Config) -> dict[str, Any]:
    """The other networks are there for a comparison: they are trained for less, unless a number is asked for."""
    asked = config.variant_steps is None and "training.steps" in config.changes
    return {} if asked else {"training.steps": config.variant_steps or VARIANT_STEPS}


def _gentler(config: Config, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Small networks learn at ten times the rate of the paper's; four layers of them explode at that."""
    if config.preset != "quick" or changes.get("network.layers", 0) <= 2:
        return {}
    own = {"training.learning_rate": recipe.load("midpoint").training.learning_rate / 2, "training.warm_up": 0.05}
    return {name: value for name, value in own.items() if name not in config.changes}


def _spec(config: Config, name: str, changes: Mapping[str, Any]) -> recipe.Recipe:
    own = {key: value for key, value in config.changes.items() if key != "seeds"}
    return recipe.override(recipe.load(name, preset=config.preset), {**own, **changes})


def _named(tell: Progress, name: str) -> Progress:
    return lambda what, done, total: tell(f"{name}: {what}", done, total)


def _plain(name: str) -> str:
    """A variant's name as that of a folder."""
    kept = name.replace("θ = ½", "theta-half").replace("θ = ", "theta-").replace(",", "")
    return kept.replace(" ", "-")


def _discovered(spec: recipe.Recipe, folder: Path | None, tell: Progress, warn: Warn) -> tuple[Network, dict[str, Any]]:
    """The whole pipeline, in a folder of its own if there is one."""
    if folder is None:
        with TemporaryDirectory() as scratch:
            return _discovered(spec, Path(scratch) / NAME, tell, warn)
    own = run_of(spec, folder)
    if (own / "run.json").exists():
        # Refused where the run is of another recipe, before it is gone on with.
        with run_folder(own, spec, warn=warn):
            pass
        document = go_on(own, tell=tell, warn=warn).document
    else:
        document = discover(spec, own, tell=tell, warn=warn).document
    with run_folder(own, spec, warn=warn) as held:
        network = train(spec, source(spec), folder=held).member(0)
    return network, {key: value for key, value in document.items() if key not in ("certificate", "environment")}


def _variant(spec: recipe.Recipe, folder: Path | None, tell: Progress) -> dict[str, Any]:
    def told(step: int, steps: int, _: Mapping[str, float]) -> None:
        tell("training", step, steps)

    if folder is None:
        trained = train(spec, source(spec), tell=told)
        return _measured(trained.member(0), spec, skipped=trained.skipped[0])
    with run_folder(folder, spec, warn=lambda _: None) as held:
        done = held.finished("measured")
        if done is None:
            trained = train(spec, source(spec), folder=held, tell=told)
            done = _measured(trained.member(0), spec, skipped=trained.skipped[0])
            held.finish("measured", done)
    return done


def _measured(network: Network, spec: recipe.Recipe, *, skipped: int = 0) -> dict[str, Any]:
    """Residuals beside those of schemes, over the steps trained with and one by one, and the constants found."""
    assert isinstance(spec.data, recipe.Meshes)
    low, high = spec.data.fourier
    with jax.enable_x64(True):
        shown = [step for step in (*STEPS, 0.75, 1.0) if low <= step <= high]
        return {
            "steps": spec.training.steps,
            "width": spec.network.width,
            "loss": spec.loss.residual.kind if spec.loss.residual else "",
            "theta": spec.loss.residual.theta if spec.loss.residual else None,
            "fourier": [low, high],
            "skipped": skipped,
            "residual": residuals(network, spec, (low, high)),
            "by_step": [
                {"fourier": step, **residuals(network, spec, (step, step)), "constants": constants(network, spec, step)}
                for step in shown
            ],
        }


def _direct_all(config: Config) -> dict[str, Any]:
    """The constants of least residual of so many layers of the flux, at shorter and shorter steps, without a network.

    On the meshes of the quick recipe at every preset: what a few hundred cells say, more say again.
    """
    base = _spec(replace(config, preset="quick"), "midpoint", {})
    with jax.enable_x64(True):
        problems = problems_by_step(base, (1.0, 0.75, *ladder(base)), config.problems)
        two = {f"θ = {theta:g}": _direct(base, {"loss.residual.theta": theta}, 2, problems) for theta in THETAS}
        four = {
            "θ = ½": _direct(base, {}, 4, problems),
            "hermite": _direct(base, {"loss.residual.kind": "hermite"}, 4, problems),
        }
    return {"direct": two, "direct_four": four}


def _direct(
    base: recipe.Recipe, changes: Mapping[str, Any], layers: int, problems: Mapping[float, Problem]
) -> dict[str, Any]:
    spec = recipe.override(base, changes)
    start = {f"{letter}{k}": 1.0 / (layers + 1 - k) for k in range(1, layers + 1) for letter in "ac"}
    free = layered(FLUX, start, layers)
    found = small_steps(free, spec.loss, problems)
    return {
        "rows": found.rows(),
        "limit": dict(found.fitted.values),
        "uncertainty": dict(found.fitted.uncertainty),
        "rational": {name: str(value) for name, value in found.fitted.rational.items()},
        "certified": _certified(Scheme(f"layers-{layers}", free.filled(found.fitted.chosen))),
    }


def _certified(scheme: Scheme) -> dict[str, Any]:
    """Orders in time without a source and with one, and the longest stable step in Fourier steps."""
    graph = study_graph()
    study = time_order(scheme, graph)
    limit = step_limit(scheme, graph)
    return {
        "order": study.free.order,
        "order_with_source": study.driven.order,
        "stable": None if limit is None else limit.certain / fourier_step(graph),
    }
