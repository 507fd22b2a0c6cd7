"""Rules that refuse combinations of fields no run can use; rules that depend on the equation are in `_equation`.

A rule takes a recipe and yields a Clash, the names of the fields and the reason, for every such combination.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from fluxforge.recipe._equation import check_answers, check_equation, check_flux_equation, check_invariants
from fluxforge.recipe._messages import Clash, shorten
from fluxforge.recipe._recipe import HEAT, Experiment, Meshes, Network, Pairs, Recipe, Residual, Rows, Skew

_ARM = re.compile(r"[a-z0-9-]+")


def check_loss(recipe: Recipe) -> Iterator[Clash]:
    """A loss has at least one term with a weight above 0."""
    terms = {"supervised": recipe.loss.supervised, "residual": recipe.loss.residual}
    weights = {name: term.weight for name, term in terms.items() if term is not None}
    if not weights:
        yield ("loss.supervised", "loss.residual"), "both are missing; the loss needs 'supervised' or 'residual'"
    elif not any(weights.values()):
        yield (
            tuple(f"loss.{name}.weight" for name in weights),
            "no term has a weight above 0, so that nothing would be learnt",
        )


def check_hermite(recipe: Recipe) -> Iterator[Clash]:
    """The Hermite residual has no theta."""
    residual, usual = recipe.loss.residual, Residual().theta
    if residual is not None and residual.kind == "hermite" and residual.theta != usual:
        why = f"the hermite residual has no theta; leave it out, or choose kind 'theta' for theta = {residual.theta}"
        yield ("loss.residual.kind", "loss.residual.theta"), why


def check_second_hop(recipe: Recipe) -> Iterator[Clash]:
    """Two-hop messages need meshes, and rings need two-hop messages."""
    network, ring = recipe.network, recipe.network.two_hop == "ring"
    if not isinstance(recipe.data, Meshes) and (network.hops == 2 or ring):
        field = "network.hops" if network.hops == 2 else "network.two_hop"
        yield (field, "data.kind"), "graphs of two cells have no second hop; choose data of kind 'meshes'"
    elif ring and network.hops == 1:
        yield ("network.two_hop", "network.hops"), "a ring is read by two-hop messages only; set hops = 2"


def check_features(recipe: Recipe) -> Iterator[Clash]:
    """Only primitive features are defined over two hops."""
    if recipe.network.features != "primitive" and recipe.network.hops == 2:
        name = recipe.network.features
        why = f"the {name} features hold one-hop fluxes only; choose features = 'primitive', or hops = 1"
        yield ("network.features", "network.hops"), why


def check_ranges(recipe: Recipe) -> Iterator[Clash]:
    """The lower end of a range is not above its upper end."""
    data, ranges = recipe.data, {}
    if isinstance(data, Pairs):
        ranges = {"time_step": data.time_step, "size": data.size}
    elif isinstance(data, Meshes):
        ranges = {"cells": data.cells, "fourier": data.fourier, "cell_size": data.cell_size}
    elif isinstance(data, Experiment):
        ranges = {"values": data.values, "distances": data.distances}
        ranges |= {} if data.states is None else {"states": data.states}
    for name, (low, high) in ranges.items():
        if low > high:
            yield (f"data.{name}[0]", f"data.{name}[1]"), f"the range runs from {low} down to {high}; swap them"


def check_schedule(recipe: Recipe) -> Iterator[Clash]:
    """The decay of the learning rate does not begin before the end of its warm-up."""
    training = recipe.training
    # 0, the default, means that the decay begins where the warm-up ends.
    if training.schedule != "constant" and 0 < training.decay_from < training.warm_up:
        why = f"the decay would begin at {training.decay_from}, before the warm-up ends at {training.warm_up}"
        yield ("training.decay_from", "training.warm_up"), why


def check_arms(recipe: Recipe) -> Iterator[Clash]:
    """Names of arms are plain, and recipes with arms have no search."""
    for name in recipe.arms:
        if _ARM.fullmatch(name) is None:
            yield (f"arms.{shorten(name)}",), "an arm's name is made of the characters a-z, 0-9 and -"
    if recipe.arms and recipe.search is not None:
        yield ("arms", "search"), "formulas are looked for in one family of networks; remove one of the two"


def check_components(recipe: Recipe) -> Iterator[Clash]:
    """The search for formulas of MLPs needs messages of one component."""
    search = recipe.search
    if search is not None and search.route == "modules" and recipe.network.message_width > 1:
        why = "each component of a message would be a formula of its own; set message_width = 1, or route = 'stencil'"
        yield ("network.message_width", "search.route"), why


def check_stencil_route(recipe: Recipe) -> Iterator[Clash]:
    """The route `stencil` needs layers that reach two hops, trained on a residual alone, on meshes."""
    search, loss = recipe.search, recipe.loss
    if search is None or search.route != "stencil":
        return
    if loss.residual is None or loss.supervised is not None:
        yield (
            ("search.route", "loss"),
            "constants of a stencil are those of small steps of a residual; set its loss alone",
        )
    if not isinstance(recipe.data, Meshes):
        yield ("search.route", "data.kind"), "two cells have no second hop; choose data of kind 'meshes'"
    network = recipe.network
    if network.layers * network.hops == 1 or (network.hops == 2 and network.layers > 1):
        why = "a stencil is read of several layers of one hop, or of one layer of two; choose route = 'modules'"
        yield ("search.route", "network.layers", "network.hops"), why


def check_mesh_files(recipe: Recipe) -> Iterator[Clash]:
    """Recipes with mesh files have no settings for generated meshes."""
    data = recipe.data
    if not isinstance(data, Meshes) or data.files is None:
        return
    if not data.files:
        yield ("data.files",), "is empty; name at least one mesh"
    for name in _list_changed(data, ("meshes", "cells", "kinds", "engine")):
        yield ("data.files", f"data.{name}"), f"mesh files are taken as they are; remove '{name}' or 'files'"


def _list_changed(section: Struct, names: Iterable[str]) -> list[str]:
    """The fields among `names` that differ from their defaults."""
    usual = type(section)()
    return [name for name in names if getattr(section, name) != getattr(usual, name)]


# Fields that only networks in the form of a flux have, with the message for other networks.
_OF_FLUX_FORM = {
    "integrator": "only networks of form 'flux' start as an integrator",
    "order": "only networks of form 'flux' have an order by construction",
    "free_last": "only networks of form 'flux' have coefficients to free",
}
# All fields of networks in the form of a flux, and all fields of limiters.
_FLUX_FORM_FIELDS = {"layers", "depth", "width", "form", *_OF_FLUX_FORM}
_LIMITER_FIELDS = {"depth", "width"}


def check_flux_form(recipe: Recipe) -> Iterator[Clash]:
    """Fields of the paper's networks keep their defaults for a network in the form of a flux, and vice versa."""
    network = recipe.network
    if network.form == "free":
        for name in _list_changed(network, _OF_FLUX_FORM):
            yield (f"network.{name}", "network.form"), _OF_FLUX_FORM[name]
        if recipe.search is not None and recipe.search.route == "coefficients":
            yield ("search.route", "network.form"), "only networks of form 'flux' have coefficients of faces"
        return
    if network.free_last and network.order == 2:
        yield ("network.free_last", "network.order"), "a free last coefficient is of no order; set order = 1"
    for name in _list_changed(network, Network.__struct_fields__):
        if name not in _FLUX_FORM_FIELDS:
            yield (f"network.{name}", "network.form"), f"a network of form 'flux' has no '{name}'; remove it"
    if network.layers < 2:
        yield (
            ("network.layers", "network.form"),
            "the first stage has no coefficients to learn; set layers to 2 or more",
        )
    if network.depth < 2:
        yield ("network.depth", "network.form"), "coefficients are no linear function; set depth to 2 or more"
    if recipe.search is not None and recipe.search.route != "coefficients":
        yield (
            ("search.route", "network.form"),
            "what is learned are coefficients of faces; choose route = 'coefficients'",
        )
    if recipe.arms:
        yield ("arms", "network.form"), "arms compare the paper's networks; remove them"


def check_resolved(recipe: Recipe) -> Iterator[Clash]:
    """Resolved and refined answers need a supervised loss alone, and are those of the equation, not of a law."""
    data = recipe.data
    if not isinstance(data, Meshes) or data.target == "step":
        return
    if recipe.loss.supervised is None or recipe.loss.residual is not None:
        yield ("data.target", "loss"), "resolved answers are for a supervised loss alone"
    if data.target == "refined" and data.noise > 0:
        yield ("data.target", "data.noise"), "refined answers are computed once, without noise; remove it"
    if data.law is not None:
        yield ("data.target", "data.law"), "what is resolved is the equation itself; remove the law"


def check_experiment(recipe: Recipe) -> Iterator[Clash]:
    """Data of experiments train a network for one flux with a supervised loss, and end in a search for its formula."""
    if recipe.textbook is not None and not isinstance(recipe.data, Experiment):
        yield ("textbook", "data.kind"), "only fluxes are compared with a textbook; choose data of kind 'experiment'"
    if not isinstance(recipe.data, Experiment):
        return
    if recipe.loss.residual is not None:
        yield ("loss.residual", "data.kind"), "measured fluxes have no residual; choose [loss.supervised] alone"
    if recipe.arms or recipe.search is None:
        yield ("search", "data.kind"), "an experiment ends in a formula; add a section [search], without arms"
    if recipe.search is not None and recipe.search.route != "modules":
        yield ("search.route", "data.kind"), "an experiment has one flux and no stencil; choose route = 'modules'"


def check_rows(recipe: Recipe) -> Iterator[Clash]:
    """Rows of cells train a limiter of linear transport, and closed forms are fitted to it."""
    families = recipe.search is not None and recipe.search.route == "families"
    if families != isinstance(recipe.data, Rows):
        yield ("search.route", "data.kind"), "families of limiters belong to rows of cells: choose both, or neither"
    if not isinstance(recipe.data, Rows):
        return
    if recipe.data.law is not None:
        yield ("data.law", "data.kind"), "rows are compared with exact averages; remove 'law'"
    if recipe.equation != "advection":
        yield ("equation", "data.kind"), "rows of cells are of linear transport; set equation = 'advection'"
    for name in _list_changed(recipe.network, Network.__struct_fields__):
        if name not in _LIMITER_FIELDS:
            yield (f"network.{name}", "data.kind"), f"a limiter is one MLP and has no '{name}'; remove it"
    if recipe.arms or recipe.loss.residual is not None:
        field = "arms" if recipe.arms else "loss.residual"
        yield (field, "data.kind"), f"rows have exact averages to compare with; remove '{field}'"


def check_skew(recipe: Recipe) -> Iterator[Clash]:
    """Fluxes of skewed meshes are those of heat, and end in a choice of one coefficient."""
    if not isinstance(recipe.data, Skew):
        return
    if recipe.equation != HEAT or recipe.parameters or recipe.diffusivity is not None:
        yield ("equation", "data.kind"), "fluxes of skewed meshes are those of heat with α = 1; leave the equation out"
    if recipe.loss.supervised is None or recipe.loss.residual is not None:
        yield ("loss", "data.kind"), "exact fluxes have no residual; choose [loss.supervised] alone"
    if recipe.arms or recipe.search is None:
        yield ("search", "data.kind"), "the free coefficient is searched; add a section [search], without arms"
    if recipe.search is not None and recipe.search.route != "modules":
        yield ("search.route", "data.kind"), "coefficients of faces are no stencil; choose route = 'modules'"
    if recipe.seeds > 1:
        yield ("seeds", "data.kind"), "one network is trained on the fluxes; set seeds = 1"


# In the order in which they are checked; the first clash is reported.
RULES: tuple[Callable[[Recipe], Iterator[Clash]], ...] = (
    check_equation,
    check_loss,
    check_hermite,
    check_second_hop,
    check_features,
    check_invariants,
    check_ranges,
    check_schedule,
    check_arms,
    check_components,
    check_stencil_route,
    check_mesh_files,
    check_flux_form,
    check_flux_equation,
    check_resolved,
    check_answers,
    check_experiment,
    check_rows,
    check_skew,
)
