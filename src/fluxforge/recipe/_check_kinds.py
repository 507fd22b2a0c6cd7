"""What recipes of limiters and of fluxes for skewed meshes may be combined with."""

from collections.abc import Iterator

from fluxforge.recipe._check_flux import Clash
from fluxforge.recipe._data import Rows, Skew
from fluxforge.recipe._equation import HEAT
from fluxforge.recipe._recipe import Network, Recipe


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
