"""The route through the stencil: what a step does to its neighbours, read as powers of geometry, and repeated.

∂T'_P/∂T_N ≈ c A^a δ^b V^v Δt^t over one hop says what the flux is. If the coefficient over two hops is the product of
two such factors, the step is a series in ΔtL; its constants are those of least residual, in the limit of small steps.
"""

import math

import jax
import sympy as sp

from fluxforge import recipe
from fluxforge.data._ensemble import unseen_meshes, unseen_problems
from fluxforge.data._model import model_of
from fluxforge.data._problem import Problem
from fluxforge.data._source import hops_of
from fluxforge.distil._constants import small_steps
from fluxforge.distil._stencil import PowerLaw, far_stencil, geometry, layer_stages, power_law, series, stencil, two_hop
from fluxforge.errors import DiscoveryError
from fluxforge.expression._symbols import symbol
from fluxforge.gnn._network import Network, cast
from fluxforge.loss._loss import step_of
from fluxforge.pde._equation import Equation
from fluxforge.pipeline._formula import Formula, law_record, limit_rows
from fluxforge.pipeline._problems import ladder, problems_by_step, with_shortest_steps
from fluxforge.run._progress import Progress
from fluxforge.run.result import Evidence, Laws
from fluxforge.scheme._scheme import Hop

# A power that is this near to a whole number is that number.
WHOLE = 0.25
# Meshes on which stencils are read: small, because a Jacobian has a row and a column per cell.
MESHES, CELLS = 24, 64
PROBLEMS = 24


def formula(network: Network, *, spec: recipe.Recipe, tell: Progress) -> Formula:
    """The stencil's structure with the constants of small steps."""
    with jax.enable_x64(True):
        tell("reading the stencil", 0, 2)
        near, far = read_laws(network, spec)
        flux = _flux_of_law(near, recipe.equation_of(spec))
        whole = _is_whole(far)
        # Over two hops the network's own error may blur the powers; whether the flux repeated is what it does is then
        # judged by how much that explains. Powers that are whole and others than twice the flux's are no such case.
        if whole and not _is_repeated(near, far):
            raise DiscoveryError(
                f"stage distil: the stencil over two hops, {describe_law(far)}, is not the flux repeated"
            )
        tell("fitting its constants at small steps", 1, 2)
        order = spec.network.layers * spec.network.hops
        problems = problems_by_step(spec, ladder(spec), PROBLEMS)
        start = series(step_of(cast(network, "float64")), problems[ladder(spec)[1]], order).nested
        free = two_hop(flux, start) if spec.network.hops == 2 else layer_stages(flux, start, spec.network.layers)
        found = small_steps(free, spec.loss, problems)
    evidence = Evidence(
        against_step=limit_rows(found), laws=Laws(near=law_record(near), far=law_record(far, whole)), order=order
    )
    return Formula(free, found.fitted, evidence)


def read_laws(network: Network, spec: recipe.Recipe) -> tuple[PowerLaw, PowerLaw]:
    """Of one hop and of two, at the shortest steps trained with: at longer ones further terms bend both."""
    step = step_of(cast(network, "float64"))
    low = with_shortest_steps(spec).data
    assert isinstance(spec.data, recipe.Meshes)
    assert isinstance(low, recipe.Meshes)
    close = draw_on_meshes(spec, low.fourier)
    near = power_law(stencil(step, close), geometry(close))
    values, columns = far_stencil(step, close)
    return near, power_law(values, columns)


def draw_on_meshes(spec: recipe.Recipe, fourier: tuple[float, float]) -> Problem:
    """Problems on small unseen meshes, with steps in this range."""
    wanted = recipe.Evaluation(meshes=MESHES, cells=CELLS, engine=spec.evaluation.engine)
    meshes = unseen_meshes(wanted, spec.seed, hops={*hops_of(spec.network), Hop.PATH})
    steps = jax.random.uniform(jax.random.key(spec.seed), (MESHES,), "float64", *fourier)
    return unseen_problems(meshes, spec.seed, fourier=steps, model=model_of(spec), field="mixed")


def _flux_of_law(law: PowerLaw, equation: Equation) -> sp.Expr:
    """K A^a δ^b with the equation's K, α of heat, if the stencil is that over V times Δt."""
    powers = _whole_powers(law, "over one hop")
    if powers["V"] != -1 or powers["dt"] != 1:
        raise DiscoveryError(f"stage distil: the stencil over one hop, {describe_law(law)}, is no flux times Δt/V")
    return equation.diffusion * symbol("A") ** powers["A"] * symbol("delta") ** powers["delta"]


def _is_repeated(near: PowerLaw, far: PowerLaw) -> bool:
    """Whether two hops are one hop twice: A_PN^a δ_PN^b /V_P · A_NQ^a δ_NQ^b /V_N · Δt²."""
    one, two = _whole_powers(near, "over one hop"), _whole_powers(far, "over two hops")
    legs = all(two[f"{name}_{leg}"] == one[name] for name in ("A", "delta") for leg in ("PN", "NQ"))
    return legs and two["V_P"] == two["V_N"] == one["V"] and two["dt"] == 2 * one["dt"]


def _is_whole(law: PowerLaw) -> bool:
    """Whether every power is near a whole number."""
    return all(math.isfinite(power) and abs(power - round(power)) <= WHOLE for power in law.exponents.values())


def _whole_powers(law: PowerLaw, where: str) -> dict[str, int]:
    if not _is_whole(law):
        raise DiscoveryError(
            f"stage distil: the stencil {where}, {describe_law(law)}, is no product of whole powers; train longer"
        )
    return {name: round(power) for name, power in law.exponents.items()}


def describe_law(law: PowerLaw) -> str:
    """A power law as text."""
    return f"{law.factor:.3f} " + " ".join(f"{name}^{power:.2f}" for name, power in law.exponents.items())
