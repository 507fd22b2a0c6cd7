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
        yield ("loss.supervised", "loss.residual"), "the loss has no term; add 'supervised', 'residual' or both"
    elif not any(weights.values()):
        yield (
            tuple(f"loss.{name}.weight" for name in weights),
            "no term has a weight above 0, so that nothing would be learned; give one a positive weight",
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
        yield ("network.two_hop", "network.hops"), "only messages over two hops use the ring; set hops = 2"


def check_features(recipe: Recipe) -> Iterator[Clash]:
    """Only primitive features are defined over two hops."""
    if recipe.network.features != "primitive" and recipe.network.hops == 2:
        name = recipe.network.features
        why = f"the {name} features are defined for one hop only; choose features = 'primitive', or hops = 1"
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
            yield (f"data.{name}[0]", f"data.{name}[1]"), f"the range runs from {low} down to {high}; swap its ends"


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
            yield (f"arms.{shorten(name)}",), "the name of an arm should consist of the characters a-z, 0-9 and -"
    if recipe.arms and recipe.search is not None:
        yield ("arms", "search"), "a recipe that compares arms cannot search for formulas; remove 'arms' or 'search'"


def check_components(recipe: Recipe) -> Iterator[Clash]:
    """The search for formulas of MLPs needs messages of one component."""
    search = recipe.search
    if search is not None and search.route == "modules" and recipe.network.message_width > 1:
        why = "a search for formulas needs messages of one component; set message_width = 1, or route = 'stencil'"
        yield ("network.message_width", "search.route"), why


def check_stencil_route(recipe: Recipe) -> Iterator[Clash]:
    """The route `stencil` needs layers that reach two hops, trained on a residual alone, on meshes."""
    search, loss = recipe.search, recipe.loss
    if search is None or search.route != "stencil":
        return
    if loss.residual is None or loss.supervised is not None:
        yield (
            ("search.route", "loss"),
            "the route 'stencil' needs networks trained on a residual alone; set [loss.residual], without "
            "[loss.supervised]",
        )
    if not isinstance(recipe.data, Meshes):
        yield ("search.route", "data.kind"), "graphs of two cells have no second hop; choose data of kind 'meshes'"
    network = recipe.network
    if network.layers * network.hops == 1 or (network.hops == 2 and network.layers > 1):
        why = "the route 'stencil' needs several layers of one hop, or one layer of two hops; choose route = 'modules'"
        yield ("search.route", "network.layers", "network.hops"), why


def check_mesh_files(recipe: Recipe) -> Iterator[Clash]:
    """Recipes with mesh files have no settings for generated meshes."""
    data = recipe.data
    if not isinstance(data, Meshes) or data.files is None:
        return
    if not data.files:
        yield ("data.files",), "is empty; name at least one mesh"
    for name in _list_changed(data, ("meshes", "cells", "kinds", "engine")):
        yield (
            ("data.files", f"data.{name}"),
            f"'{name}' applies to generated meshes, not to mesh files; remove '{name}' or 'files'",
        )


def _list_changed(section: Struct, names: Iterable[str]) -> list[str]:
    """The fields among `names` that differ from their defaults."""
    usual = type(section)()
    return [name for name in names if getattr(section, name) != getattr(usual, name)]


# Fields that only networks in the form of a flux have, with the message for other networks.
_OF_FLUX_FORM = {
    "integrator": "only networks of form 'flux' start as an integrator",
    "order": "only networks of form 'flux' have an order by construction",
    "free_last": "only networks of form 'flux' have a last coefficient that can be left free",
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
            yield (
                ("search.route", "network.form"),
                "only networks of form 'flux' have coefficients of faces; choose another route, or form = 'flux'",
            )
        return
    if network.free_last and network.order == 2:
        yield (
            ("network.free_last", "network.order"),
            "with a free coefficient of the last stage, order 2 cannot be ensured; set order = 1",
        )
    for name in _list_changed(network, Network.__struct_fields__):
        if name not in _FLUX_FORM_FIELDS:
            yield (f"network.{name}", "network.form"), f"a network of form 'flux' has no '{name}'; remove it"
    if network.layers < 2:
        yield (
            ("network.layers", "network.form"),
            "the first stage has no coefficients to learn, so that one layer learns nothing; set layers to 2 or more",
        )
    if network.depth < 2:
        yield (
            ("network.depth", "network.form"),
            "an MLP of depth 1 is linear, and the coefficients need a nonlinear one; set depth to 2 or more",
        )
    if recipe.search is not None and recipe.search.route != "coefficients":
        yield (
            ("search.route", "network.form"),
            "a network of form 'flux' learns coefficients of faces; choose route = 'coefficients'",
        )
    if recipe.arms:
        yield ("arms", "network.form"), "arms are for networks of form 'free' only; remove them"


def check_resolved(recipe: Recipe) -> Iterator[Clash]:
    """Resolved and refined answers need a supervised loss alone, and are those of the equation, not of a law."""
    data = recipe.data
    if not isinstance(data, Meshes) or data.target == "step":
        return
    if recipe.loss.supervised is None or recipe.loss.residual is not None:
        yield (
            ("data.target", "loss"),
            f"data with target '{data.target}' need a supervised loss alone; remove [loss.residual], and set "
            "[loss.supervised]",
        )
    if data.target == "refined" and data.noise > 0:
        yield ("data.target", "data.noise"), "data with target 'refined' have no noise; remove 'noise'"
    if data.law is not None:
        yield (
            ("data.target", "data.law"),
            f"data with target '{data.target}' solve the equation itself, without a law; remove 'law'",
        )


def check_experiment(recipe: Recipe) -> Iterator[Clash]:
    """Data of experiments train a network for one flux with a supervised loss, and end in a search for its formula."""
    if recipe.textbook is not None and not isinstance(recipe.data, Experiment):
        yield (
            ("textbook", "data.kind"),
            "only fluxes of experiments are compared with a textbook's; choose data of kind 'experiment'",
        )
    if not isinstance(recipe.data, Experiment):
        return
    if recipe.loss.residual is not None:
        yield (
            ("loss.residual", "data.kind"),
            "experiments give measured fluxes and no residual; choose [loss.supervised] alone",
        )
    if recipe.arms or recipe.search is None:
        yield (
            ("search", "data.kind"),
            "an experiment ends with a search for a formula; add a section [search], and no arms",
        )
    if recipe.search is not None and recipe.search.route != "modules":
        yield (
            ("search.route", "data.kind"),
            "a flux from experiments is searched with the route 'modules' only; choose route = 'modules'",
        )


def check_rows(recipe: Recipe) -> Iterator[Clash]:
    """Rows of cells train a limiter of linear transport, and closed forms are fitted to it."""
    families = recipe.search is not None and recipe.search.route == "families"
    if families != isinstance(recipe.data, Rows):
        yield (
            ("search.route", "data.kind"),
            "the route 'families' is for data of kind 'rows', and such data need it; choose both, or neither",
        )
    if not isinstance(recipe.data, Rows):
        return
    if recipe.data.law is not None:
        yield ("data.law", "data.kind"), "data of kind 'rows' are exact averages of cells, without a law; remove 'law'"
    if recipe.equation != "advection":
        yield ("equation", "data.kind"), "data of kind 'rows' are for linear transport; set equation = 'advection'"
    for name in _list_changed(recipe.network, Network.__struct_fields__):
        if name not in _LIMITER_FIELDS:
            yield (f"network.{name}", "data.kind"), f"a limiter is one MLP and has no '{name}'; remove it"
    if recipe.arms or recipe.loss.residual is not None:
        field = "arms" if recipe.arms else "loss.residual"
        yield (field, "data.kind"), f"a limiter is trained on exact averages of cells, without '{field}'; remove it"


def check_skew(recipe: Recipe) -> Iterator[Clash]:
    """Fluxes of skewed meshes are those of heat, and end in a choice of one coefficient."""
    if not isinstance(recipe.data, Skew):
        return
    if recipe.equation != HEAT or recipe.parameters or recipe.diffusivity is not None:
        yield (
            ("equation", "data.kind"),
            "data of kind 'skew' are for heat with α = 1; remove 'equation', 'parameters' and 'diffusivity'",
        )
    if recipe.loss.supervised is None or recipe.loss.residual is not None:
        yield (
            ("loss", "data.kind"),
            "data of kind 'skew' are exact fluxes and have no residual; choose [loss.supervised] alone",
        )
    if recipe.arms or recipe.search is None:
        yield (
            ("search", "data.kind"),
            "data of kind 'skew' need a search for the free coefficient; add a section [search], and no arms",
        )
    if recipe.search is not None and recipe.search.route != "modules":
        yield (
            ("search.route", "data.kind"),
            "data of kind 'skew' are searched with the route 'modules' only; choose route = 'modules'",
        )
    if recipe.seeds > 1:
        yield ("seeds", "data.kind"), "with data of kind 'skew' one network is trained; set seeds = 1"


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
