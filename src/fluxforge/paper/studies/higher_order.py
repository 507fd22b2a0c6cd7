"""The paper's section 5: the schemes that two layers, two hops and four layers learn from the residual alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import jax
from msgspec import convert, structs, to_builtins

from fluxforge import recipe
from fluxforge.certify._families import study_graph
from fluxforge.certify.effective import lattice_diffusion
from fluxforge.certify.order import measure_time_order
from fluxforge.data._problem import Problem
from fluxforge.data._source import source
from fluxforge.distil._constants import small_steps
from fluxforge.distil._stencil import layer_stages
from fluxforge.expression._symbols import symbol
from fluxforge.gnn._network import Network
from fluxforge.mesh._parameters import fourier_step
from fluxforge.paper.studies._higher_order_result import Certified, Direct, NetworkRow, NetworkStep, Result, judge
from fluxforge.paper.studies._networks import (
    NAMES,
    choose_run,
    discover_in,
    make_constants_rows,
    measure_constants,
    measure_residuals,
)
from fluxforge.paper.studies._records import StudyConfig, read_rates
from fluxforge.pipeline._folder import run_folder
from fluxforge.pipeline._problems import ladder, problems_by_step
from fluxforge.run._progress import Progress, Warn, prefix_progress, silent
from fluxforge.run.result import Discovery
from fluxforge.scheme._document import find
from fluxforge.scheme._scheme import Scheme
from fluxforge.stepping._limit import step_limit
from fluxforge.train._train import train

__all__ = ["Config", "Result", "judge", "run"]

NAME = "higher-order"
# Further networks by name: the recipe and the changes of it.
VARIANTS: Mapping[str, tuple[str, recipe.Changes]] = {
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
# Time steps, in Fourier steps, at which residuals and constants are measured.
STEPS = (0.0625, 0.125, 0.25, 0.5)
FLUX = symbol("alpha") * symbol("A") / symbol("delta")


@dataclass(frozen=True)
class Config(StudyConfig):
    """The further networks to train, their number of training steps, and the number of problems for minimisation."""

    variants: tuple[str, ...] = tuple(VARIANTS)
    variant_steps: int | None = None
    problems: int = 24


def run(config: Config, folder: Path, tell: Progress = silent, warn: Warn = lambda _: None) -> Result:
    """Run both discoveries, train the further networks, and minimise the residual without a network."""
    tell("constants of least residual", 0, 1)
    two, four = minimise_residuals(config)
    networks, discovered = {}, {}
    for name in NAMES:
        spec = config.load_recipe(name, config.preset, {})
        network, discovered[name] = _discover(spec, folder, prefix_progress(tell, name), warn)
        networks[name] = _measure(network, spec)
    for name in config.variants:
        base, changes = VARIANTS[name]
        more = {**choose_steps(config), **lower_rate(config, changes)}
        spec = config.load_recipe(base, config.preset, {**changes, **more})
        networks[name] = _train_variant(spec, folder / name_folder(name), prefix_progress(tell, name))
    return Result(
        experiment=NAME,
        preset=config.preset,
        direct=two,
        direct_four=four,
        printed_diffusivity={
            family: lattice_diffusion(find("two-hop-printed"), family).tolist() for family in ("squares", "equilateral")
        },
        networks=networks,
        discovered=discovered,
        # Only one network of each is trained here; claims about them are judged by the seeds of `rates`.
        rates=read_rates(folder, NAMES),
    )


def choose_steps(config: Config) -> recipe.Changes:
    """The change of the number of training steps of further networks: VARIANT_STEPS, unless a number is given.

    They are only compared, and need fewer steps than those from which formulas are distilled.
    """
    is_given = config.variant_steps is None and "training.steps" in config.changes
    return {} if is_given else {"training.steps": config.variant_steps or VARIANT_STEPS}


def lower_rate(config: Config, changes: recipe.Changes) -> recipe.Changes:
    """Changes that lower the learning rate of four layers at the preset `quick`.

    Its small networks have ten times the learning rate of the paper's, at which four layers diverge.
    """
    if config.preset != "quick" or changes.get("network.layers", 0) <= 2:
        return {}
    slower = {"training.learning_rate": recipe.load("midpoint").training.learning_rate / 2, "training.warm_up": 0.05}
    return {name: value for name, value in slower.items() if name not in config.changes}


def name_folder(variant: str) -> str:
    """The name of the run folder of a variant: `theta` for θ, hyphens for spaces, no commas."""
    plain = variant.replace("θ = ½", "theta-half").replace("θ = ", "theta-").replace(",", "")
    return plain.replace(" ", "-")


def _discover(spec: recipe.Recipe, folder: Path, tell: Progress, warn: Warn) -> tuple[Network, Discovery]:
    """The network and the result of the discovery of a recipe, in a run folder of its own."""
    own = choose_run(spec, folder)
    discovery = discover_in(spec, own, tell, warn)
    with run_folder(own, spec, warn=warn) as held:
        network = train(spec, source(spec), folder=held).member(0)
    return network, structs.replace(discovery, certificate=None, environment=None)


def _train_variant(spec: recipe.Recipe, folder: Path, tell: Progress) -> NetworkRow:
    """Train one of the further networks and measure it; a row stored in the folder is read."""
    with run_folder(folder, spec, warn=lambda _: None) as held:
        done = held.read_stage("measured")
        if done is None:
            trained = train(spec, source(spec), folder=held, tell=lambda step, steps, _: tell("training", step, steps))
            done = to_builtins(_measure(trained.member(0), spec, skipped=trained.skipped[0]))
            held.finish("measured", done)
    return convert(done, NetworkRow)


def _measure(network: Network, spec: recipe.Recipe, *, skipped: int = 0) -> NetworkRow:
    """Residuals of a network and of schemes, over the trained range of Δt and at single Δt, and its constants."""
    assert isinstance(spec.data, recipe.Meshes)
    low, high = spec.data.fourier
    with jax.enable_x64(True):
        return NetworkRow(
            steps=spec.training.steps,
            width=spec.network.width,
            loss=spec.loss.residual.kind if spec.loss.residual else "",
            theta=spec.loss.residual.theta if spec.loss.residual else None,
            fourier=[low, high],
            skipped=skipped,
            residual=measure_residuals(network, spec, (low, high)),
            by_step=[
                NetworkStep(
                    fourier=step,
                    **structs.asdict(measure_residuals(network, spec, (step, step))),
                    constants=measure_constants(network, spec, step),
                )
                for step in (*STEPS, 0.75, 1.0)
                if low <= step <= high
            ],
        )


def minimise_residuals(config: Config) -> tuple[dict[str, Direct], dict[str, Direct]]:
    """The constants of least residual of two and of four layers of the flux, for Δt → 0, without a network.

    The meshes are those of the quick recipe at every preset, since more cells give the same constants.
    """
    base = config.load_recipe("midpoint", "quick", {})
    with jax.enable_x64(True):
        problems = problems_by_step(base, (1.0, 0.75, *ladder(base)), config.problems)
        two = {f"θ = {theta:g}": minimise(base, {"loss.residual.theta": theta}, 2, problems) for theta in THETAS}
        four = {
            "θ = ½": minimise(base, {}, 4, problems),
            "hermite": minimise(base, {"loss.residual.kind": "hermite"}, 4, problems),
        }
    return two, four


def minimise(base: recipe.Recipe, changes: recipe.Changes, layers: int, problems: Mapping[float, Problem]) -> Direct:
    """The constants with which `layers` layers of the flux have least residual on `problems`, given by Δt."""
    spec = recipe.override(base, changes)
    start = {f"{letter}{k}": 1.0 / (layers + 1 - k) for k in range(1, layers + 1) for letter in "ac"}
    free = layer_stages(FLUX, start, layers)
    limit = small_steps(free, spec.loss, problems)
    return Direct(
        rows=make_constants_rows(limit),
        limit=dict(limit.fitted.values),
        uncertainty=dict(limit.fitted.uncertainty),
        rational={name: str(value) for name, value in limit.fitted.rational.items()},
        certified=_certify(Scheme(f"layers-{layers}", free.fill_constants(limit.fitted.chosen))),
    )


def _certify(scheme: Scheme) -> Certified:
    """Measure the orders in time without source and with one, and the longest stable Δt in Fourier steps."""
    graph = study_graph()
    study = measure_time_order(scheme, graph)
    limit = step_limit(scheme, graph)
    return Certified(
        order=study.free.order,
        order_with_source=study.driven.order,
        stable=None if limit is None else limit.certain / fourier_step(graph),
    )
