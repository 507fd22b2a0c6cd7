"""Recipes of documents, checked: combinations that no run can carry out are refused by the names of the fields."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from fluxforge.errors import RecipeError
from fluxforge.recipe._data import Experiment, Meshes, Pairs, Rows
from fluxforge.recipe._equation import (
    HEAT,
    diffusivity_of,
    digest,
    equation_of,
    equation_problem,
    law_problem,
    mesh_files,
)
from fluxforge.recipe._messages import Place, describe_value, escape_unprintable, join_words, shorten
from fluxforge.recipe._recipe import Network, Recipe, Residual
from fluxforge.recipe._schema import from_table, to_dict

# The fields that clash, and why.
Clash = tuple[tuple[str, ...], str]

_ARM = re.compile(r"[a-z0-9-]+")


def check(recipe: Recipe, where: str | None = None) -> None:
    """Refuse a recipe that is out of the schema's ranges, or whose fields contradict each other.

    `where` opens the message; by default it is the recipe's name. Recipes that were read have passed already.
    """
    where = f"recipe {describe_value(recipe.name)}" if where is None else where
    refuse_clashes(from_table(to_dict(recipe), where), where)


def refuse_clashes(recipe: Recipe, where: str) -> None:
    """Refuse a recipe whose fields contradict each other; the first clash is the message."""
    for rule in _RULES:
        for fields, why in rule(recipe):
            if len(fields) == 1:
                raise Place(where, fields[0]).refuse(why)
            raise RecipeError(f"{escape_unprintable(where)}: fields {join_words(fields, 'and')}: {why}")


def _loss(recipe: Recipe) -> Iterator[Clash]:
    terms = {"supervised": recipe.loss.supervised, "residual": recipe.loss.residual}
    weights = {name: term.weight for name, term in terms.items() if term is not None}
    if not weights:
        yield ("loss.supervised", "loss.residual"), "both are missing; the loss needs 'supervised' or 'residual'"
    elif not any(weights.values()):
        yield (
            tuple(f"loss.{name}.weight" for name in weights),
            "no term has a weight above 0, so that nothing would be learnt",
        )


def _hermite(recipe: Recipe) -> Iterator[Clash]:
    residual, usual = recipe.loss.residual, Residual().theta
    if residual is not None and residual.kind == "hermite" and residual.theta != usual:
        why = f"the hermite residual has no theta; leave it out, or choose kind 'theta' for theta = {residual.theta}"
        yield ("loss.residual.kind", "loss.residual.theta"), why


def _second_hop(recipe: Recipe) -> Iterator[Clash]:
    network, ring = recipe.network, recipe.network.two_hop == "ring"
    if not isinstance(recipe.data, Meshes) and (network.hops == 2 or ring):
        field = "network.hops" if network.hops == 2 else "network.two_hop"
        yield (field, "data.kind"), "graphs of two cells have no second hop; choose data of kind 'meshes'"
    elif ring and network.hops == 1:
        yield ("network.two_hop", "network.hops"), "a ring is read by two-hop messages only; set hops = 2"


def _simplified(recipe: Recipe) -> Iterator[Clash]:
    if recipe.network.features == "simplified" and recipe.network.hops == 2:
        why = "the simplified features hold one-hop fluxes only; choose features = 'primitive', or hops = 1"
        yield ("network.features", "network.hops"), why


def _invariants(recipe: Recipe) -> Iterator[Clash]:
    given = recipe.network.invariants
    if not given:
        return
    # Imported here, with SymPy: few recipes need it.
    from fluxforge.scheme import CORRECTION, INVARIANTS, invariant_names

    if CORRECTION in given and not isinstance(recipe.data, Meshes):
        why = "cells of a pair have too few neighbours for a gradient; choose data of kind 'meshes'"
        yield ("network.invariants", "data.kind"), why
    of_faces = set(given) - {*INVARIANTS, CORRECTION}
    if of_faces and recipe.network.hops == 2:
        yield ("network.invariants", "network.hops"), f"data have {min(of_faces)} over one hop only; set hops = 1"
    known = (*invariant_names(equation_of(recipe)), CORRECTION)
    for k, name in enumerate(given):
        if name not in known:
            yield (f"network.invariants[{k}]",), f"expected {join_words(known)}, got {describe_value(name)}"
        if name in given[:k]:
            yield (f"network.invariants[{k}]",), f"{describe_value(name)} is listed twice"


def _ranges(recipe: Recipe) -> Iterator[Clash]:
    data, ranges = recipe.data, {}
    if isinstance(data, Pairs):
        ranges = {"time_step": data.time_step, "size": data.size}
    elif isinstance(data, Meshes):
        ranges = {"cells": data.cells, "fourier": data.fourier}
    elif isinstance(data, Experiment):
        ranges = {"values": data.values, "distances": data.distances}
        ranges |= {} if data.states is None else {"states": data.states}
    for name, (low, high) in ranges.items():
        if low > high:
            yield (f"data.{name}[0]", f"data.{name}[1]"), f"the range runs from {low} down to {high}; swap them"


def _schedule(recipe: Recipe) -> Iterator[Clash]:
    training = recipe.training
    # A decay from 0 begins wherever the warm-up ends.
    if training.schedule != "constant" and 0 < training.decay_from < training.warm_up:
        why = f"the decay would begin at {training.decay_from}, before the warm-up ends at {training.warm_up}"
        yield ("training.decay_from", "training.warm_up"), why


def _arms(recipe: Recipe) -> Iterator[Clash]:
    for name in recipe.arms:
        if _ARM.fullmatch(name) is None:
            yield (f"arms.{shorten(name)}",), "an arm's name is made of the characters a-z, 0-9 and -"
    if recipe.arms and recipe.search is not None:
        yield ("arms", "search"), "formulas are looked for in one family of networks; remove one of the two"


def _components(recipe: Recipe) -> Iterator[Clash]:
    search = recipe.search
    if search is not None and search.route == "modules" and recipe.network.message_width > 1:
        why = "each component of a message would be a formula of its own; set message_width = 1, or route = 'stencil'"
        yield ("network.message_width", "search.route"), why


def _stencil_route(recipe: Recipe) -> Iterator[Clash]:
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


def _mesh_files(recipe: Recipe) -> Iterator[Clash]:
    data, generated = recipe.data, Meshes()
    if not isinstance(data, Meshes) or data.files is None:
        return
    if not data.files:
        yield ("data.files",), "is empty; name at least one mesh"
    for name in ("meshes", "cells", "kinds", "engine"):
        if getattr(data, name) != getattr(generated, name):
            yield ("data.files", f"data.{name}"), f"mesh files are taken as they are; remove '{name}' or 'files'"


def _flux_form(recipe: Recipe) -> Iterator[Clash]:
    """A network in the form of a flux has no use for what describes the paper's, and the other way round."""
    network, usual = recipe.network, Network()
    if network.form == "free":
        if network.integrator != usual.integrator:
            yield ("network.integrator", "network.form"), "only networks of form 'flux' start as an integrator"
        if recipe.search is not None and recipe.search.route == "coefficients":
            yield ("search.route", "network.form"), "only networks of form 'flux' have coefficients of faces"
        return
    own = {"layers", "depth", "width", "form", "integrator"}
    for name in (name for name in Network.__struct_fields__ if name not in own):
        if getattr(network, name) != getattr(usual, name):
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


def _resolved(recipe: Recipe) -> Iterator[Clash]:
    data = recipe.data
    if not isinstance(data, Meshes) or data.target == "step":
        return
    if recipe.loss.supervised is None or recipe.loss.residual is not None:
        yield ("data.target", "loss"), "resolved answers are for a supervised loss alone"
    if data.law is not None:
        yield ("data.target", "data.law"), "what is resolved is the equation itself; remove the law"


def _answers(recipe: Recipe) -> Iterator[Clash]:
    """The law and the noise are of the answers that a supervised loss compares with."""
    data, loss = recipe.data, recipe.loss
    if isinstance(data, Experiment | Rows):
        return  # fluxforge.experiment knows the symbols of its laws; rows have no laws
    given = [name for name, set_ in (("law", data.law is not None), ("noise", data.noise > 0)) if set_]
    for name in given:
        if loss.residual is not None:
            why = (
                f"a residual has the law of {_name(recipe)} built in"
                if name == "law"
                else "a residual compares with no answers"
            )
            yield (f"data.{name}", "loss.residual"), f"{why}; choose [loss.supervised] alone"
    if "law" in given and (problem := law_problem(recipe)) is not None:
        yield ("data.law",), problem


def _experiment(recipe: Recipe) -> Iterator[Clash]:
    """Experiments are answered by one network of a flux, whose formula is searched."""
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


def _rows(recipe: Recipe) -> Iterator[Clash]:
    """Rows of cells train a limiter of linear transport, whose closed forms are fitted."""
    families = recipe.search is not None and recipe.search.route == "families"
    if families != isinstance(recipe.data, Rows):
        yield ("search.route", "data.kind"), "families of limiters belong to rows of cells: choose both, or neither"
    if not isinstance(recipe.data, Rows):
        return
    if recipe.data.law is not None:
        yield ("data.law", "data.kind"), "rows are compared with exact averages; remove 'law'"
    if recipe.equation != "advection":
        yield ("equation", "data.kind"), "rows of cells are of linear transport; set equation = 'advection'"
    own = {"depth", "width"}
    for name in (name for name in Network.__struct_fields__ if name not in own):
        if getattr(recipe.network, name) != getattr(Network(), name):
            yield (f"network.{name}", "data.kind"), f"a limiter is one MLP and has no '{name}'; remove it"
    if recipe.arms or recipe.loss.residual is not None:
        field = "arms" if recipe.arms else "loss.residual"
        yield (field, "data.kind"), f"rows have exact averages to compare with; remove '{field}'"


def _equation(recipe: Recipe) -> Iterator[Clash]:
    """What an equation of one's own may not be combined with."""
    if isinstance(recipe.data, Experiment | Rows):
        return  # parameters are drawn, so that none need have a value
    if (problem := equation_problem(recipe)) is not None:
        yield (problem[0],), problem[1]
    if recipe.equation == HEAT:
        return
    if recipe.network.features == "simplified":
        why = "the simplified features hold the flux of heat; choose features = 'primitive'"
        yield ("equation", "network.features"), why
    if recipe.search is not None and recipe.search.route == "stencil" and not _only_diffuses(recipe):
        why = "a stencil is read as a linear flux repeated, without transport or reaction; choose route = 'modules'"
        yield ("equation", "search.route"), why


def _name(recipe: Recipe) -> str:
    return recipe.equation if isinstance(recipe.equation, str) else str(recipe.equation.get("name"))


def _only_diffuses(recipe: Recipe) -> bool:
    """Whether the equation is ∂u/∂t = ∇·(K∇u) + S with one number K."""
    equation = equation_of(recipe)
    plain = equation.two_point is None and equation.diffusion_tensor is None and equation.capacity == 1
    constant = all(p.where == "constant" for p in equation.parameters)
    return plain and constant and equation.only_diffuses and equation.linear


_RULES: tuple[Callable[[Recipe], Iterator[Clash]], ...] = (
    _equation,
    _loss,
    _hermite,
    _second_hop,
    _simplified,
    _invariants,
    _ranges,
    _schedule,
    _arms,
    _components,
    _stencil_route,
    _mesh_files,
    _flux_form,
    _resolved,
    _answers,
    _experiment,
    _rows,
)


_UNDECISIVE = ("summary", "evaluation", "search", "expect", "order", "textbook")


_LATER: dict[str, dict[str, Any]] = {
    "data": {"law": None, "noise": 0.0, "target": "step", "tolerance": 1e-6},
    "network": {"invariants": [], "form": "free", "integrator": "nested"},
    "loss.supervised": {"relative": False},
}


def from_dict(document: object, where: str) -> Recipe:
    """The recipe that `to_dict`, a TOML file or a JSON file holds; messages open with `where`."""
    recipe = from_table(document, where)
    refuse_clashes(recipe, where)
    return recipe


def fingerprint(recipe: Recipe) -> str:
    """Sixteen hexadecimal digits that stand for all that decides what is trained.

    The first of the SHA-256 of the recipe as JSON, without `summary`, `evaluation`, `search`, `expect`, `order`,
    `textbook` and `training.checkpoint_every`; a mesh file counts by its content, wherever it lies.
    """
    where = f"recipe {describe_value(recipe.name)}"
    # Once through the schema, so that 1 and 1.0 are the same number.
    plain = to_dict(from_dict(to_dict(recipe), where))
    for field in _UNDECISIVE:
        plain.pop(field, None)
    del plain["training"]["checkpoint_every"]
    # Recipes from before these fields existed keep their names.
    for section, fields in _LATER.items():
        table = plain
        for name in section.split("."):
            table = table.get(name) or {}
        for field, usual in fields.items():
            if field in table and table[field] == usual:
                del table[field]
    if recipe.equation == HEAT:
        # As recipes from before there were other equations, which have α as their diffusivity.
        plain["diffusivity"] = diffusivity_of(recipe)
        del plain["equation"], plain["parameters"]
    if files := mesh_files(recipe):
        plain["data"]["files"] = [digest(file, where) for file in files]
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
