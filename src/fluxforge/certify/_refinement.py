"""The questions of a certificate that are answered by refining meshes: families, and the user's own sequence."""

from functools import partial

import numpy as np

from fluxforge.certify._certificate import FamilyResult, Request
from fluxforge.certify._equations import EffectiveEquation
from fluxforge.certify._evidence import NOT_LINEAR, Line, Recorder, verdict_of
from fluxforge.certify._families import LATTICES, Levels, enlarge_levels
from fluxforge.certify._problems import PROBLEMS
from fluxforge.certify._studies import PatchTest, SpaceStudy
from fluxforge.certify.effective import effective_diffusion, effective_equation
from fluxforge.certify.order import LARGEST_ERROR, describe_study, mesh_line, study_family, study_marched, study_meshes
from fluxforge.certify.patch import choose_worse, residuals_line, run_patch_tests
from fluxforge.pde._equation import HEAT
from fluxforge.pde._words import Words

# K is measured with parameters of this size, not 1, so that a scheme that omits a factor α is detected.
SCALE = PROBLEMS[-1].scale


def refine_family(request: Request, recorder: Recorder, levels: Levels, patch: PatchTest | None) -> FamilyResult:
    """Refine one family and add its line.

    `patch` is the patch test on an irregular mesh. If linear fields are exact there, they are exact on every mesh: a
    quick certificate then needs no patch test of the family.
    """
    if not recorder.linear:
        return _march_family(request, recorder, levels)
    scheme, equation = request.scheme, request.scheme.equation
    studies = study_space(request, recorder, levels)
    if request.quick:
        patch = patch if patch is not None and patch.exact(1) else None
    else:
        patch = recorder.attempt(
            f"patch tests, {levels.family}",
            lambda: choose_worse(*run_patch_tests(scheme, levels.graph(levels.sizes[0]))),
        )
    result = FamilyResult(
        studies=studies or (),
        patch=patch,
        diffusion=_measure_diffusion(request, recorder, levels),
        only_diffuses=equation.only_diffuses,
        effective=_measure_effective(request, recorder, levels),
    )
    if studies is not None:
        recorder.lines.append(space_line(levels.family, result, equation.words))
    if patch is not None and not request.quick:
        recorder.lines.append(residuals_line((patch,), f"on {levels.family}, n = {levels.sizes[0]}", equation.words))
    return result


def study_space(request: Request, recorder: Recorder, levels: Levels) -> tuple[SpaceStudy, ...] | None:
    """One study per problem; None, with a line, if a measurement fails.

    Errors on the small random meshes of a quick certificate scatter. If they neither show nor refute an order that the
    scheme claims, the sizes of a full certificate are used.
    """
    scheme = request.scheme
    studies = recorder.attempt(levels.family, lambda: study_family(scheme, levels, progress=recorder.announce))
    larger = enlarge_levels(levels) if request.quick and scheme.claims.space.get(levels.family) else None
    if studies is None or larger is None or all(each.l2.convergent or each.l2.stalled for each in studies):
        return studies
    recorder.expect_more(len(larger.sizes))
    return recorder.attempt(levels.family, lambda: study_family(scheme, larger, progress=recorder.announce))


def _measure_diffusion(request: Request, recorder: Recorder, levels: Levels) -> np.ndarray | None:
    """The ratio of K to the equation's own; None for an equation with transport or a reaction."""
    scheme, equation = request.scheme, request.scheme.equation
    if not equation.only_diffuses:
        return None
    scaled = equation.example(request.dimension, SCALE)
    measure = partial(effective_diffusion, scheme, levels, parameters=scaled)
    return recorder.attempt(f"diffusivity, {levels.family}", measure)


def _measure_effective(request: Request, recorder: Recorder, levels: Levels) -> EffectiveEquation | None:
    """The equation of smooth fields on a lattice; None for heat, where K is as informative, and for other meshes."""
    scheme, equation = request.scheme, request.scheme.equation
    if equation == HEAT or levels.family not in LATTICES:
        return None
    scaled = equation.example(request.dimension, SCALE)
    measure = partial(effective_equation, scheme, levels.family, parameters=scaled)
    return recorder.attempt(f"effective equation, {levels.family}", measure)


def _march_family(request: Request, recorder: Recorder, levels: Levels) -> FamilyResult:
    """The errors of solutions marched in time, for nonlinear schemes of equations with transport."""
    scheme = request.scheme
    if scheme.equation.velocity is None:
        recorder.add_unknown(levels.family, NOT_LINEAR)
        return FamilyResult()
    study = recorder.attempt(levels.family, lambda: study_marched(scheme, levels, progress=recorder.announce))
    if study is None:
        return FamilyResult()
    result = FamilyResult((study,), only_diffuses=False)
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
    studies = recorder.attempt(name, lambda: study_meshes(scheme, meshes, exact=exact, progress=recorder.announce))
    recorder.lines += [mesh_line(study) for study in studies or ()]
    return studies or ()


def space_line(family: str, result: FamilyResult, words: Words) -> Line:
    """The line on consistency and order on one family."""
    parts = [describe_study(study) for study in result.studies]
    if result.effective is not None:
        same = "as the equation" if result.effective.holds else f"the equation is {result.effective.own}"
        parts.append(f"smooth fields: {result.effective.found}, {same}")
    elif result.diffusion is not None:
        parts.append(f"K/{words.diffusion} = {_describe_tensor(result.diffusion)}")
    elif result.only_diffuses:
        parts.append(f"K/{words.diffusion} not established")
    method = (
        f"steady states of manufactured solutions, solved directly; an order needs a last error below "
        f"{LARGEST_ERROR:.0%} of the solution, rates that settle, and no plateau"
    )
    name = f"{family}: {_describe_outcome(result, words)}"
    return Line(name, verdict_of(result.consistent), "; ".join(parts), method)


def _describe_outcome(result: FamilyResult, words: Words) -> str:
    """The convergence of the worst problem in words, and doubts about the equation whose solution is approached."""
    if result.study is None:
        return "not measured"
    rates = result.study.l2
    if result.fails and not rates.convergent:
        return "does not converge"
    if rates.order is None or result.consistent:
        return rates.outcome
    if result.effective is not None and not result.effective.holds:
        return f"{rates.outcome}, but smooth fields obey another equation"
    return (
        f"{rates.outcome}, but its diffusivity is not {'established' if result.diffusion is None else words.diffusion}"
    )


def _describe_tensor(K: np.ndarray) -> str:
    # Rounded first, so that −1e-17 is written as 0; numbers from 1e10 on, for which that may overflow, are not rounded.
    with np.errstate(over="ignore", invalid="ignore"):
        K = np.where(np.abs(K) < 1e10, K.round(10), K) + 0.0
    return "[" + ", ".join("[" + ", ".join(f"{value:.4f}" for value in row) + "]" for row in K) + "]"
