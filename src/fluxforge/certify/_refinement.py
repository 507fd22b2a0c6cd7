"""The questions of a certificate that are answered by refining meshes: families, and the user's own sequence."""

import numpy as np

from fluxforge.certify._claims import Request
from fluxforge.certify._families import LATTICES, Levels, enlarge_levels
from fluxforge.certify._family import FamilyResult, space_line, worst_study
from fluxforge.certify._problems import PROBLEMS
from fluxforge.certify._recorder import NOT_LINEAR, Recorder
from fluxforge.certify.effective import EffectiveEquation, effective_diffusion, effective_equation
from fluxforge.certify.march import marched_studies
from fluxforge.certify.order import SpaceStudy, mesh_line, mesh_studies, space_studies
from fluxforge.certify.patch import PatchTest, patch_tests, residuals_line, worse
from fluxforge.pde._equation import HEAT

# K is measured with parameters of this size, so that a scheme which omits a factor α is seen to.
SCALE = PROBLEMS[-1].scale


def refine_family(request: Request, recorder: Recorder, levels: Levels, patch: PatchTest | None) -> FamilyResult:
    """Refine one family and add its line.

    `patch` is the patch test on an irregular mesh. If linear fields are exact there, they are exact on every mesh: a
    quick certificate then needs no patch test of the family.
    """
    if not recorder.linear:
        return _march_family(request, recorder, levels)
    scheme, equation = request.scheme, request.scheme.equation
    studies = _study_space(request, recorder, levels)
    if request.quick:
        patch = patch if patch is not None and patch.exact(1) else None
    else:
        patch = recorder.attempt(
            f"patch tests, {levels.family}", lambda: worse(*patch_tests(scheme, levels.refine_to(levels.sizes[0])))
        )
    result = FamilyResult(
        study=None if studies is None else worst_study(studies),
        patch=patch,
        diffusion=_measure_diffusion(request, recorder, levels),
        studies=studies or (),
        only_diffuses=equation.only_diffuses,
        effective=_measure_effective(request, recorder, levels),
    )
    if studies is not None:
        recorder.lines.append(space_line(levels.family, result, equation.words))
    if patch is not None and not request.quick:
        recorder.lines.append(residuals_line((patch,), f"on {levels.family}, n = {levels.sizes[0]}", equation.words))
    return result


def _study_space(request: Request, recorder: Recorder, levels: Levels) -> tuple[SpaceStudy, ...] | None:
    """A study per problem.

    The small random meshes of a quick run scatter. Where the scheme claims an order that they neither show nor refute,
    the sizes of a full certificate decide.
    """
    scheme = request.scheme
    studies = recorder.attempt(levels.family, lambda: space_studies(scheme, levels, progress=recorder.announce))
    larger = enlarge_levels(levels) if request.quick and scheme.claims.space.get(levels.family) else None
    if studies is None or larger is None or all(each.l2.convergent or each.l2.stalled for each in studies):
        return studies
    recorder.expect_more(len(larger.sizes))
    return recorder.attempt(levels.family, lambda: space_studies(scheme, larger, progress=recorder.announce))


def _measure_diffusion(request: Request, recorder: Recorder, levels: Levels) -> np.ndarray | None:
    """K over the equation's own; None for an equation that does not only diffuse."""
    scheme, equation = request.scheme, request.scheme.equation
    if not equation.only_diffuses:
        return None
    scaled = equation.example(request.dimension, SCALE)
    return recorder.attempt(
        f"diffusivity, {levels.family}", lambda: effective_diffusion(scheme, levels, parameters=scaled)
    )


def _measure_effective(request: Request, recorder: Recorder, levels: Levels) -> EffectiveEquation | None:
    """The equation of smooth fields on a lattice; None for heat, where K says the same, and for other meshes."""
    scheme, equation = request.scheme, request.scheme.equation
    if equation == HEAT or levels.family not in LATTICES:
        return None
    scaled = equation.example(request.dimension, SCALE)
    return recorder.attempt(
        f"effective equation, {levels.family}", lambda: effective_equation(scheme, levels.family, parameters=scaled)
    )


def _march_family(request: Request, recorder: Recorder, levels: Levels) -> FamilyResult:
    """The errors of solutions marched in time: for schemes that are not linear, of equations with transport."""
    scheme, nothing = request.scheme, FamilyResult(None, None, None)
    if scheme.equation.velocity is None:
        recorder.add_unknown(levels.family, NOT_LINEAR)
        return nothing
    studies = recorder.attempt(levels.family, lambda: marched_studies(scheme, levels, progress=recorder.announce))
    if studies is None:
        return nothing
    result = FamilyResult(studies[0], None, None, studies, only_diffuses=False)
    recorder.lines.append(space_line(levels.family, result, scheme.equation.words))
    return result


def refine_own_meshes(request: Request, recorder: Recorder) -> tuple[SpaceStudy, ...]:
    """A study per problem on the user's own sequence of meshes, and their lines."""
    if not request.meshes:
        return ()
    name = "your meshes"
    if not recorder.linear:
        recorder.add_unknown(name, NOT_LINEAR)
        return ()
    scheme, meshes, exact = request.scheme, request.meshes, request.exact
    studies = recorder.attempt(name, lambda: mesh_studies(scheme, meshes, exact=exact, progress=recorder.announce))
    recorder.lines += [mesh_line(study) for study in studies or ()]
    return studies or ()
