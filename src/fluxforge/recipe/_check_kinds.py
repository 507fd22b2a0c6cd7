"""Rules of one kind of network or data: what each may be combined with.

A rule takes a recipe and yields a Clash for every combination of fields that no run can carry out.
"""

from collections.abc import Iterator

from fluxforge.recipe._data import Experiment, Meshes, Rows, Skew
from fluxforge.recipe._equation import HEAT, equation_of
from fluxforge.recipe._recipe import Network, Recipe

# The fields that clash, and why.
Clash = tuple[tuple[str, ...], str]


def check_flux_form(recipe: Recipe) -> Iterator[Clash]:
    """A network in the form of a flux has no use for what describes the paper's, and the other way round."""
    network, usual = recipe.network, Network()
    if network.form == "free":
        if network.integrator != usual.integrator:
            yield ("network.integrator", "network.form"), "only networks of form 'flux' start as an integrator"
        if network.order != usual.order:
            yield ("network.order", "network.form"), "only networks of form 'flux' have an order by construction"
        if network.free_last:
            yield ("network.free_last", "network.form"), "only networks of form 'flux' have coefficients to free"
        if recipe.search is not None and recipe.search.route == "coefficients":
            yield ("search.route", "network.form"), "only networks of form 'flux' have coefficients of faces"
        return
    if network.free_last and network.order == 2:
        yield ("network.free_last", "network.order"), "a free last coefficient is of no order; set order = 1"
    own = {"layers", "depth", "width", "form", "integrator", "order", "free_last"}
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
    if recipe.equation == HEAT:
        return
    # Imported here, with SymPy: few recipes need it.
    from fluxforge.scheme._weighted import refuse_flux_form

    if (why := refuse_flux_form(equation_of(recipe))) is not None:
        yield ("equation", "network.form"), why


def check_resolved(recipe: Recipe) -> Iterator[Clash]:
    """Answers by brute force are compared with by a supervised loss, and are those of the equation."""
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


def check_rows(recipe: Recipe) -> Iterator[Clash]:
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
