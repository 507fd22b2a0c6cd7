"""The system a scheme integrates: whether its operator G, boundary data r and source s are what they should be."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import eye_array

from fluxforge.mesh import Dirichlet, DualGraph, Settings, dual, squares
from fluxforge.scheme import Scheme, check_scheme, find
from fluxforge.simulate import Operator, generator
from fluxforge.verify._problems import capacity, functions, times, with_mixed_walls
from fluxforge.verify.diffusivity import lattice_equation
from fluxforge.verify.patch import PatchTest

SAME = 1e-10
# All parameters of the equation are multiplied by each: a factor forgotten shows at any but one.
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
    `diffusivity`: the eigenvalue of K/α on squares farthest from 1, `drift` the first-order drift there; not a
    number where the equation has more than diffusion, and then only the two-point flux is right.
    The generator is right if G and r are L's, or those of another operator that keeps linear fields (a corrected flux),
    has the right diffusivity and no drift; if it is proportional to α; and if the source enters as it is.
    """

    plain_flux: float
    walls: float
    source: float
    proportional: float
    diffusivity: float
    drift: float
    linear_exact: bool

    @property
    def plain(self) -> bool:
        """Whether the system is that of the plain flux."""
        return self.plain_flux <= SAME and self.walls <= SAME

    @property
    def holds(self) -> bool:
        """Whether all of it is as it should be."""
        right = self.linear_exact and abs(self.diffusivity - 1.0) <= SAME and self.drift == 0
        return (self.plain or right) and self.proportional <= SAME and self.source <= SAME


def semidiscrete(
    scheme: Scheme, graph: DualGraph, patch: PatchTest, *, parameters: Settings | None = None
) -> SemiDiscrete:
    """Compare with the plain flux on one mesh; `patch` is the patch test on an irregular one.

    The graph's walls are taken as they are, and once more with those to the right and below prescribing ∂T/∂n.
    """
    parameters = scheme.equation.example(graph.dimension) if parameters is None else parameters
    plain_flux = find("euler", scheme.equation)
    graphs = (graph, with_mixed_walls(graph, functions("1 + 2*x - 3*y + x*y").gradient))
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
    if not scheme.equation.only_diffuses:
        return SemiDiscrete(plain, walls, source, proportional, float("nan"), 0.0, patch.exact(1))
    on_squares = lattice_equation(scheme, "squares", parameters=parameters)
    eigenvalues = np.linalg.eigvalsh(on_squares.K)
    # The eigenvalue farthest from 1 speaks for all.
    farthest = float(eigenvalues[np.abs(eigenvalues - 1.0).argmax()])
    drift = float(np.hypot(*on_squares.drift))
    return SemiDiscrete(plain, walls, source, proportional, farthest, drift, patch.exact(1))


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
    """In words, how a linear scheme's equation differs from c T_t = K∇²T + S on squares; None where it does not.

    On squares every consistent flux is exact for quadratic fields, so a wrong diffusivity, drift, source or factor α
    shows there without any error of the mesh.
    """
    check_scheme(scheme)
    parameters = scheme.equation.example(2, FACTORS[-1])
    on_squares = lattice_equation(scheme, "squares", parameters=parameters)
    if on_squares.drift.any():
        return f"smooth fields drift with {np.hypot(*on_squares.drift):.3g} α"
    if np.abs(on_squares.K - np.eye(2)).max() > 1e-6:
        xx, xy, yy = (round(float(on_squares.K[k]), 4) + 0.0 for k in ((0, 0), (0, 1), (1, 1)))
        return f"on squares its diffusivity is [[{xx:g}, {xy:g}], [{xy:g}, {yy:g}]] times α"
    graph = dual(squares(3), Dirichlet("1 + x"))
    system = generator(scheme, graph, parameters=parameters)
    share = 1.0 / capacity(scheme.equation, parameters)
    off = float(abs(system.N - share * eye_array(graph.cells)).max()) / share
    return None if off <= SAME else f"the source enters with an error of {off:.2g}"
