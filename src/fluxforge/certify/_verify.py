"""`verify`: measure what a scheme is."""

import os
from collections.abc import Sequence

import jax

from fluxforge._arguments import check_flag, check_function, check_text
from fluxforge.certify._certificate import Certificate
from fluxforge.certify._families import choose
from fluxforge.certify._problems import functions
from fluxforge.certify._request import Request
from fluxforge.certify._verification import Progress, Verification
from fluxforge.certify.order import check_sequence
from fluxforge.errors import ExpressionError, InputError
from fluxforge.mesh import Mesh, as_mesh
from fluxforge.pde import Equation
from fluxforge.scheme import Scheme, find

MOST_CELLS = 20_000
MOST_MESHES = 8


def verify(
    scheme: str | os.PathLike[str] | Scheme,
    *,
    equation: str | os.PathLike[str] | Equation | None = None,
    families: tuple[str, ...] | None = None,
    levels: int | None = None,
    quick: bool = False,
    mesh: Mesh | str | os.PathLike[str] | None = None,
    meshes: Sequence[str | os.PathLike[str] | Mesh] = (),
    exact: str | None = None,
    progress: Progress | None = None,
) -> Certificate:
    """Certify a scheme: a built-in name, a `scheme.json` or a Scheme; of a built-in method, for an `equation`.

    `families` and `levels` limit the refinement studies, `quick` makes them smaller. With `mesh`, the lines that need
    no refinement (stencil, conservation, patch tests, largest stable step, maximum principle) are established on it,
    and the refinement studies are left out. With `meshes`, paths or meshes from coarse to fine, the errors, rates and
    order of steady states on them take the place of the families; `exact` is then the solution, a formula of x and y.

    Claims that were left out this way do not count; a claim that was asked for and could not be measured makes the
    certificate's verdict "not established". Raises InputError for options that exclude each other.
    """
    scheme = find(scheme, equation)
    check_flag(quick, "quick"), check_function(progress, "progress")
    mesh = None if mesh is None else as_mesh(mesh)
    if mesh is not None and meshes:
        raise InputError("give one mesh or a sequence of meshes, not both")
    if meshes and (families is not None or levels is not None):
        raise InputError("a sequence of meshes takes the place of families and levels: give one or the other")
    if exact is not None:
        check_text(exact, "exact")
        if not meshes:
            raise InputError("an exact solution belongs to a sequence of meshes: give meshes too")
        try:
            functions(exact)
        except ExpressionError as error:
            raise ExpressionError(f"exact: {error}") from error
    own = _load(meshes)
    chosen = () if mesh is not None or own else choose(families, levels, quick=quick, dimension=scheme.dimension)
    for one in (*own, *([mesh] if mesh is not None else [])):
        if len(one.cells) > MOST_CELLS:
            raise InputError(f"{one.origin}: has {len(one.cells)} cells; a certificate takes up to {MOST_CELLS}")
    if own:
        check_sequence(own, exact, scheme.equation)
    request = Request(scheme, mesh, chosen, own, exact, quick)
    with jax.enable_x64(True):
        return Verification(request, progress).run()


def _load(meshes: Sequence[str | os.PathLike[str] | Mesh]) -> tuple[Mesh, ...]:
    """The meshes, read where they are paths."""
    if isinstance(meshes, str | os.PathLike | Mesh) or not isinstance(meshes, Sequence):
        raise InputError("meshes should be a sequence of at least two meshes or paths, from coarse to fine")
    if meshes and not 2 <= len(meshes) <= MOST_MESHES:
        raise InputError(f"a sequence of meshes has 2 to {MOST_MESHES} of them, from coarse to fine; got {len(meshes)}")
    return tuple(as_mesh(one, f"meshes[{k}]") for k, one in enumerate(meshes))
