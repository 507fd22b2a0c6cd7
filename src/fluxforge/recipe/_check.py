"""Recipes of documents, checked: combinations that no run can carry out are refused by the names of the fields."""

import re
from collections.abc import Callable, Iterator

from fluxforge.errors import RecipeError
from fluxforge.recipe._check_kinds import (
    Clash,
    check_experiment,
    check_flux_form,
    check_resolved,
    check_rows,
    check_skew,
)
from fluxforge.recipe._data import Experiment, Meshes, Pairs, Rows, Skew
from fluxforge.recipe._equation import HEAT, equation_of, equation_problem, law_problem
from fluxforge.recipe._messages import Place, describe_value, escape_unprintable, join_words, shorten
from fluxforge.recipe._recipe import Recipe, Residual
from fluxforge.recipe._schema import from_table, to_dict

_ARM = re.compile(r"[a-z0-9-]+")


def check(recipe: Recipe, where: str | None = None) -> None:
    """Refuse a recipe that is out of the schema's ranges, or whose fields contradict each other.

    `where` opens the message; by default it is the recipe's name. Recipes that were read have passed already.
    """
    where = f"recipe {describe_value(recipe.name)}" if where is None else where
    refuse_clashes(from_table(to_dict(recipe), where), where)


def from_dict(document: object, where: str) -> Recipe:
    """The recipe that `to_dict`, a TOML file or a JSON file holds; messages open with `where`."""
    recipe = from_table(document, where)
    refuse_clashes(recipe, where)
    return recipe


def refuse_clashes(recipe: Recipe, where: str) -> None:
    """Refuse a recipe whose fields contradict each other; the first clash is the message."""
    for rule in _RULES:
        for fields, why in rule(recipe):
            if len(fields) == 1:
                raise Place(where, fields[0]).refuse(why)
            raise RecipeError(f"{escape_unprintable(where)}: fields {join_words(fields, 'and')}: {why}")


def _check_loss(recipe: Recipe) -> Iterator[Clash]:
    terms = {"supervised": recipe.loss.supervised, "residual": recipe.loss.residual}
    weights = {name: term.weight for name, term in terms.items() if term is not None}
    if not weights:
        yield ("loss.supervised", "loss.residual"), "both are missing; the loss needs 'supervised' or 'residual'"
    elif not any(weights.values()):
        yield (
            tuple(f"loss.{name}.weight" for name in weights),
            "no term has a weight above 0, so that nothing would be learnt",
        )


def _check_hermite(recipe: Recipe) -> Iterator[Clash]:
    residual, usual = recipe.loss.residual, Residual().theta
    if residual is not None and residual.kind == "hermite" and residual.theta != usual:
        why = f"the hermite residual has no theta; leave it out, or choose kind 'theta' for theta = {residual.theta}"
        yield ("loss.residual.kind", "loss.residual.theta"), why


def _check_second_hop(recipe: Recipe) -> Iterator[Clash]:
    network, ring = recipe.network, recipe.network.two_hop == "ring"
    if not isinstance(recipe.data, Meshes) and (network.hops == 2 or ring):
        field = "network.hops" if network.hops == 2 else "network.two_hop"
        yield (field, "data.kind"), "graphs of two cells have no second hop; choose data of kind 'meshes'"
    elif ring and network.hops == 1:
        yield ("network.two_hop", "network.hops"), "a ring is read by two-hop messages only; set hops = 2"


def _check_features(recipe: Recipe) -> Iterator[Clash]:
    if recipe.network.features != "primitive" and recipe.network.hops == 2:
        name = recipe.network.features
        why = f"the {name} features hold one-hop fluxes only; choose features = 'primitive', or hops = 1"
        yield ("network.features", "network.hops"), why


def _check_invariants(recipe: Recipe) -> Iterator[Clash]:
    given = recipe.network.invariants
    if not given:
        return
    # Imported here, with SymPy: few recipes need it.
    from fluxforge.scheme._scheme import INVARIANTS, invariant_names
    from fluxforge.scheme.reference import CORRECTION

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


def _check_ranges(recipe: Recipe) -> Iterator[Clash]:
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


def _check_schedule(recipe: Recipe) -> Iterator[Clash]:
    training = recipe.training
    # A decay from 0 begins wherever the warm-up ends.
    if training.schedule != "constant" and 0 < training.decay_from < training.warm_up:
        why = f"the decay would begin at {training.decay_from}, before the warm-up ends at {training.warm_up}"
        yield ("training.decay_from", "training.warm_up"), why


def _check_arms(recipe: Recipe) -> Iterator[Clash]:
    for name in recipe.arms:
        if _ARM.fullmatch(name) is None:
            yield (f"arms.{shorten(name)}",), "an arm's name is made of the characters a-z, 0-9 and -"
    if recipe.arms and recipe.search is not None:
        yield ("arms", "search"), "formulas are looked for in one family of networks; remove one of the two"


def _check_components(recipe: Recipe) -> Iterator[Clash]:
    search = recipe.search
    if search is not None and search.route == "modules" and recipe.network.message_width > 1:
        why = "each component of a message would be a formula of its own; set message_width = 1, or route = 'stencil'"
        yield ("network.message_width", "search.route"), why


def _check_stencil_route(recipe: Recipe) -> Iterator[Clash]:
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


def _check_mesh_files(recipe: Recipe) -> Iterator[Clash]:
    data, generated = recipe.data, Meshes()
    if not isinstance(data, Meshes) or data.files is None:
        return
    if not data.files:
        yield ("data.files",), "is empty; name at least one mesh"
    for name in ("meshes", "cells", "kinds", "engine"):
        if getattr(data, name) != getattr(generated, name):
            yield ("data.files", f"data.{name}"), f"mesh files are taken as they are; remove '{name}' or 'files'"


def _check_answers(recipe: Recipe) -> Iterator[Clash]:
    """The law and the noise are of the answers that a supervised loss compares with."""
    data, loss = recipe.data, recipe.loss
    if isinstance(data, Experiment | Rows | Skew):
        return  # fluxforge.experiment and fluxforge.skew know the symbols of their laws; rows have no laws
    given = [name for name, set_ in (("law", data.law is not None), ("noise", data.noise > 0)) if set_]
    for name in given:
        if loss.residual is not None:
            why = (
                f"a residual has the law of {_equation_name(recipe)} built in"
                if name == "law"
                else "a residual compares with no answers"
            )
            yield (f"data.{name}", "loss.residual"), f"{why}; choose [loss.supervised] alone"
    if "law" in given and (problem := law_problem(recipe)) is not None:
        yield ("data.law",), problem


def _check_equation(recipe: Recipe) -> Iterator[Clash]:
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
    if recipe.network.features == "dimensionless":
        # Imported here, with SymPy: few recipes need it.
        from fluxforge.scheme._weighted import refuse_flux_form

        if (refusal := refuse_flux_form(equation_of(recipe))) is not None:
            yield ("equation", "network.features"), refusal.replace("the form 'flux' is", "dimensionless features need")
    if recipe.search is not None and recipe.search.route == "stencil" and not _only_diffuses(recipe):
        why = "a stencil is read as a linear flux repeated, without transport or reaction; choose route = 'modules'"
        yield ("equation", "search.route"), why


def _equation_name(recipe: Recipe) -> str:
    return recipe.equation if isinstance(recipe.equation, str) else str(recipe.equation.get("name"))


def _only_diffuses(recipe: Recipe) -> bool:
    """Whether the equation is ∂u/∂t = ∇·(K∇u) + S with one number K."""
    equation = equation_of(recipe)
    plain = equation.two_point is None and equation.diffusion_tensor is None and equation.capacity == 1
    constant = all(p.where == "constant" for p in equation.parameters)
    return plain and constant and equation.only_diffuses and equation.linear


_RULES: tuple[Callable[[Recipe], Iterator[Clash]], ...] = (
    _check_equation,
    _check_loss,
    _check_hermite,
    _check_second_hop,
    _check_features,
    _check_invariants,
    _check_ranges,
    _check_schedule,
    _check_arms,
    _check_components,
    _check_stencil_route,
    _check_mesh_files,
    check_flux_form,
    check_resolved,
    _check_answers,
    check_experiment,
    check_rows,
    check_skew,
)
