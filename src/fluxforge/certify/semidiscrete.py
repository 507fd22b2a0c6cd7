"""The system a scheme integrates: whether its operator G, boundary data r and source s are the equation's."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import eye_array

from fluxforge.certify._evidence import FALLS, Line, verdict_of
from fluxforge.certify._families import Levels
from fluxforge.certify._problems import Problem, capacity, functions, problems_of, times, varies, with_mixed_walls
from fluxforge.certify.effective import (
    EXTRAPOLATED,
    lattice_equation,
    own_equation,
    relative_to_own,
    smooth_equation,
)
from fluxforge.certify.flux import has_flux_of_equation
from fluxforge.certify.patch import PatchTest
from fluxforge.mesh._boundary import Dirichlet
from fluxforge.mesh._dual import DualGraph, dual
from fluxforge.mesh._families import squares
from fluxforge.mesh._parameters import Settings
from fluxforge.pde._equation import HEAT
from fluxforge.pde._words import Words
from fluxforge.scheme._document import find
from fluxforge.scheme._scheme import Scheme, check_scheme
from fluxforge.stepping._assemble import Operator, generator

# Relative differences of matrices and vectors below this are round-off.
SAME = 1e-10
# Of the equation of smooth fields: second moments, extrapolated in h, of entries of G some hundred times larger.
SMOOTH = 1e-8
# All parameters of the equation are multiplied by each of these: a missing factor is invisible only at 1.
FACTORS = (1.0, 0.37, 2.9)
# What L has no share of, as boundary data without a flux, is measured by this share of max|L|: r is a sum of entries of
# the size of L's, so that its round-off, 1e-16 of them, stays far below what counts as the same.
NO_DATA, TINY = 1e-3, 1e-300


@dataclass(frozen=True)
class SemiDiscrete:
    """How far dT/dt = G T + s S + r is from the plain flux's system, the worst of three sizes of the
    parameters and of two kinds of wall.

    `plain_flux`: max |G − L|/max|L|, L the equation's two-point flux; `walls`: the same of r, with
    Dirichlet walls and with Neumann walls of q ≠ 0; `source`: the same of s; `proportional`: how far G and r are from
    being multiplied with all parameters, 0 where L's own are not, as with a capacity or a reaction's constant.
    `diffusion`: the eigenvalue of K, relative to the equation's own, on squares that is farthest from 1; `drift` the
    first-order drift there; not a number where the equation has more than diffusion, and then only the two-point flux
    is right.
    The generator is right if G and r are L's, or those of another operator that keeps linear fields (a corrected flux),
    has the right diffusivity and no drift; if it is proportional to the parameters; and if the source enters as it is.

    Of other equations than diffusion, `smooth` is how far the equation that smooth fields obey on the `lattice` is from
    the right one. `varying`: where parameters may vary, whether what is left of a smooth field and the source that
    belongs to it falls with the size of the cells. `two_point`: the flux reads two cells and is one of the equation on
    every mesh on which the plain one is, by its formula.
    """

    plain_flux: float
    walls: float
    source: float
    proportional: float
    diffusion: float
    drift: float
    linear_exact: bool
    smooth: float | None = None
    varying: bool = True
    lattice: str = "squares"
    two_point: bool = False

    @property
    def plain(self) -> bool:
        """Whether the system is that of the plain flux."""
        return self.plain_flux <= SAME and self.walls <= SAME

    @property
    def holds(self) -> bool:
        """Whether all of it is as it should be."""
        # A two-point flux that its formula shows to be one of the equation need not be homogeneous in the geometry, as
        # that of Scharfetter and Gummel is not: K(h) is then not linear in h, and the extrapolation leaves something.
        most = EXTRAPOLATED if self.two_point else SMOOTH
        like = self.smooth <= most if self.smooth is not None else abs(self.diffusion - 1.0) <= SAME
        right = (self.linear_exact or self.two_point) and like and self.drift == 0
        return (self.plain or right) and self.proportional <= SAME and self.source <= SAME and self.varying


def semidiscrete(
    scheme: Scheme, graph: DualGraph, patch: PatchTest, *, parameters: Settings | None = None
) -> SemiDiscrete:
    """Compare with the plain flux on one mesh; `patch` is the patch test on an irregular one.

    The graph's walls are taken as they are, and once more with those to the right and below prescribing ∂T/∂n.
    """
    parameters = scheme.equation.example(graph.dimension) if parameters is None else parameters
    plain_flux = find("euler", scheme.equation)
    graphs = (graph, with_mixed_walls(graph, functions("1 + 2*x - 3*y + x*y", graph.dimension).gradient))
    plain = walls = source = proportional = 0.0
    for walled in graphs:
        first, plain_first = (generator(one, walled, parameters=parameters) for one in (scheme, plain_flux))
        for factor in FACTORS:
            values = {name: times(value, factor) for name, value in parameters.items()}
            system = generator(scheme, walled, parameters=values)
            wanted = generator(plain_flux, walled, parameters=values)
            size = max(abs(wanted.M).max(), TINY)
            plain = _worse(plain, abs(system.M - wanted.M).max() / size)
            walls = _worse(walls, np.abs(system.b - wanted.b).max() / max(np.abs(wanted.b).max(), NO_DATA * size))
            source = _worse(source, abs(system.N - wanted.N).max())
            if _off_proportion(plain_first, wanted, factor) <= SAME:
                proportional = _worse(proportional, _off_proportion(first, system, factor))
    lattice = "cubes" if graph.dimension == 3 else "squares"
    varying = falls_with_size(scheme, lattice) if varies(scheme.equation) else True
    if not scheme.equation.only_diffuses:
        found = smooth_equation(scheme, lattice, parameters=parameters)
        smooth = found.apart(own_equation(scheme.equation, graph.dimension, parameters))
        exact, two_point = patch.exact(1), has_flux_of_equation(scheme)
        return SemiDiscrete(
            plain, walls, source, proportional, float("nan"), 0.0, exact, smooth, varying, lattice, two_point
        )
    on_squares = lattice_equation(scheme, lattice, parameters=parameters)
    relative = relative_to_own(on_squares.K, scheme.equation, parameters)
    eigenvalues = np.linalg.eigvalsh(relative)
    # The eigenvalue farthest from 1 speaks for all.
    farthest = float(eigenvalues[np.abs(eigenvalues - 1.0).argmax()])
    drift = math.hypot(*on_squares.drift)
    exact = patch.exact(1)
    return SemiDiscrete(plain, walls, source, proportional, farthest, drift, exact, None, varying, lattice)


def falls_with_size(scheme: Scheme, lattice: str) -> bool:
    """Whether |G u + r + s S| of a smooth u, with smoothly varying parameters, falls with h away from the walls.

    S is the source that makes u steady. A flux that takes a parameter from one side alone leaves its gradient out: an
    error that does not fall. First order halves it from one size to the next.
    """
    sizes = (5, 10) if lattice == "cubes" else (10, 20)
    left = []
    for n in sizes:
        problem = _along_axes(problems_of(scheme.equation, 3 if lattice == "cubes" else 2)[-1])
        graph = problem.graph(Levels(lattice, (n,)).refine_to(n))
        system = generator(scheme, graph, parameters=problem.settings(graph.dimension))
        S = system.N @ problem.source(graph)
        off = np.abs(system.M @ problem.solution(graph) + system.b + S)
        inside = (np.abs(graph.x - 0.5) < 0.31).all(axis=1)
        left.append(float(off[inside].max() / np.abs(S).max()))
    return bool(left[1] <= max(FALLS * left[0], SAME))


def _along_axes(problem: Problem) -> Problem:
    """The problem with the diagonal of its tensor: n and K n are parallel on squares, as a two-point flux needs."""
    tensor = problem.equation.diffusion_tensor
    if tensor is None or problem.parameters is None:
        return problem
    rows: Any = problem.parameters[tensor.name]
    along = tuple(tuple(entry if i == j else 0.0 for j, entry in enumerate(row)) for i, row in enumerate(rows))
    return replace(problem, parameters={**problem.parameters, tensor.name: along})


def _worse(one: float, other: float) -> float:
    """The larger; not a number counts as infinite."""
    return max(one, float(other) if np.isfinite(other) else float("inf"))


def _off_proportion(first: Operator, system: Operator, factor: float) -> float:
    """How far G and r are from `factor` times the first ones."""
    scale = max(abs(system.M).max(), factor * abs(first.M).max(), TINY)
    of_walls = max(np.abs(system.b).max(), factor * np.abs(first.b).max(), TINY)
    return max(
        float(abs(system.M - factor * first.M).max() / scale),
        float(np.abs(system.b - factor * first.b).max() / of_walls),
    )


def other_equation(scheme: Scheme) -> str | None:
    """In words, how a linear scheme's equation differs from its own on squares; None where it does not.

    On squares every consistent flux is exact for quadratic fields, so a wrong diffusivity, drift, rate, source or
    factor shows there without any error of the mesh. A tensor is taken along the axes, where n and K n are parallel.
    """
    check_scheme(scheme)
    equation = scheme.equation
    parameters = equation.example(2, FACTORS[-1])
    tensor = equation.diffusion_tensor
    if tensor is not None:
        parameters[tensor.name] = np.diag(np.diag(np.asarray(parameters[tensor.name], float))).tolist()
    wrong = _other_diffusion(scheme, parameters) if equation.only_diffuses else _other_smooth(scheme, parameters)
    if wrong is not None:
        return wrong
    graph = dual(squares(3), Dirichlet("1 + x"))
    system = generator(scheme, graph, parameters=parameters)
    share = 1.0 / capacity(equation, parameters)
    off = float(abs(system.N - share * eye_array(graph.cells)).max()) / share
    return None if off <= SAME else f"the source enters with an error of {off:.2g}"


def _other_diffusion(scheme: Scheme, parameters: Settings) -> str | None:
    letter = scheme.equation.words.diffusion
    on_squares = lattice_equation(scheme, "squares", parameters=parameters)
    if on_squares.drift.any():
        return f"smooth fields drift with {np.hypot(*on_squares.drift):.3g} {letter}"
    K = relative_to_own(on_squares.K, scheme.equation, parameters)
    if np.abs(K - np.eye(2)).max() <= 1e-6:
        return None
    xx, xy, yy = (round(float(K[k]), 4) + 0.0 for k in ((0, 0), (0, 1), (1, 1)))
    return f"on squares its diffusivity is [[{xx:g}, {xy:g}], [{xy:g}, {yy:g}]] times {letter}"


def _other_smooth(scheme: Scheme, parameters: Settings) -> str | None:
    found = smooth_equation(scheme, "squares", parameters=parameters)
    own = own_equation(scheme.equation, 2, parameters)
    off = found.apart(own)
    if off <= SMOOTH:
        return None
    return f"on squares smooth fields obey {found}, and the equation is {own}"


def generator_line(found: SemiDiscrete, words: Words = HEAT.words) -> Line:
    """Whether the semi-discrete system is the right one."""
    letter = words.diffusion
    if found.plain:
        operator = "G and the boundary data are the plain flux's to round-off"
    else:
        operator = (
            f"G differs from the plain flux by {found.plain_flux:.1e}, the boundary data by {found.walls:.1e}; "
            + ("another flux of the equation; " if found.two_point else "")
            + f"it {'keeps' if found.linear_exact else 'does not keep'} linear fields"
        )
        if found.smooth is not None:
            operator += f", and smooth fields obey the equation to {found.smooth:.1e} on {found.lattice}"
        else:
            operator += f", K/{letter} = {found.diffusion:.4g} on {found.lattice}"
        operator += f", a drift of {found.drift:.1e} {letter}" if found.drift else ""
    if found.proportional > 1e-10:
        operator += f"; G is not proportional to {words.parameters}: off by {found.proportional:.1e}"
    source = "S enters as it is" if found.source <= 1e-10 else f"S enters wrongly: |∂N/∂Δt − I| = {found.source:.2g}"
    tried = words.parameters if words == HEAT.words else "sizes of the parameters"
    method = f"complex-step ∂/∂Δt at Δt = 0, three {tried}, Dirichlet and Neumann walls"
    return Line("generator is L, source is S", verdict_of(found.holds), f"{operator}; {source}", method)
