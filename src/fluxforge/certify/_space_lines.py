"""Results on space in words: families, patch tests, and a user's own sequence of meshes."""

import numpy as np

from fluxforge.certify._alignment import Alignment
from fluxforge.certify._evidence import Line, Verdict, judged
from fluxforge.certify._family import FamilyResult
from fluxforge.certify._rates import Rates
from fluxforge.certify.order import LARGEST_ERROR, SpaceStudy
from fluxforge.certify.patch import PatchTest
from fluxforge.pde import HEAT, Words


def space_line(family: str, found: FamilyResult, words: Words = HEAT.words) -> Line:
    """Consistency and order on one family."""
    parts = [_study_in_words(study) for study in found.studies]
    if found.effective is not None:
        same = "as the equation" if found.effective.holds else f"the equation is {found.effective.own}"
        parts.append(f"smooth fields: {found.effective.found}, {same}")
    elif found.diffusivity is not None:
        parts.append(f"K/{words.diffusion} = {_tensor(found.diffusivity)}")
    elif found.only_diffuses:
        parts.append(f"K/{words.diffusion} not established")
    method = (
        f"steady states of manufactured solutions, solved directly; an order needs a last error below "
        f"{LARGEST_ERROR:.0%} of the solution, rates that settle, and no plateau"
    )
    return Line(f"{family}: {convergence(found, words)}", judged(found.consistent), "; ".join(parts), method)


def convergence(found: FamilyResult, words: Words = HEAT.words) -> str:
    """What can be said of the error: a plateau is not the same as rates that do not settle."""
    if found.study is None:
        return "not measured"
    rates = found.study.l2
    if not rates.convergent:
        return "does not converge" if found.fails else "no order established"
    if rates.exact:
        return "exact"
    doubt = ", but its diffusivity is not " + ("established" if found.diffusivity is None else words.diffusion)
    if found.effective is not None and not found.effective.holds:
        doubt = ", but smooth fields obey another equation"
    return f"converges, order {rates.order:.2f}" + ("" if found.consistent else doubt)


def mesh_line(study: SpaceStudy) -> Line:
    """Errors and rates of one problem on the user's own meshes."""
    rates = study.l2
    if rates.exact:
        outcome = "exact"
    elif rates.order is not None:
        outcome = f"converges, order {rates.order:.2f}"
    else:
        outcome = "does not converge" if rates.stalled else "no order established"
    method = f"steady states on each mesh; an order needs three meshes and a last error below {LARGEST_ERROR:.0%}"
    verdict = Verdict.MEASURED if rates.convergent else Verdict.FAILS if rates.stalled else Verdict.UNKNOWN
    return Line(f"your meshes, {study.problem}: {outcome}", verdict, _study_in_words(study, named=False), method)


def _study_in_words(study: SpaceStudy, *, named: bool = True) -> str:
    errors = " ".join(f"{error:.3e}" for error in study.l2.errors)
    cells = f"{study.cells[0]}–{study.cells[-1]} cells"
    text = f"L2 {errors} ({cells}), {rates_in_words(study.l2)}"
    if not study.l2.errors[-1] <= study.l2.below:
        text += f", above {study.l2.below:.0%} of the solution"
    text += f", L∞ {study.linf.errors[-1]:.3e} at the finest, order {number(study.linf.order)}"
    return f"{study.problem}: {text}" if named else text


def patch_line(tests: tuple[PatchTest, ...], where: str) -> Line:
    """Linear fields on one mesh, whatever its walls prescribe."""
    exact = all(test.exact(1) for test in tests)
    evidence = "; ".join(f"{test.walls} walls: {test.residual[1]:.1e}" for test in tests)
    evidence = f"scaled residuals of degree 1, {evidence}; {where}"
    worst = max(tests, key=lambda test: test.residual[1])
    if not worst.residual[1] <= 1e-10:
        evidence += f"; the field {worst.polynomial} is not kept at cell {worst.cell}"
    elif not exact:
        evidence += "; constants are not kept"
    return Line("linear fields are exact", judged(exact), evidence, "patch tests with boundary data")


def alignment_line(found: Alignment, where: str) -> Line:
    """Whether the two-point flux of a tensor can be consistent on a mesh."""
    return Line(
        "the two-point flux suits the tensor", judged(found.holds), f"{found}; {where}", "angles on faces between cells"
    )


def residuals_line(tests: tuple[PatchTest, ...], where: str, words: Words = HEAT.words) -> Line:
    """The residuals of every degree, on a line of their own."""
    parts = (
        f"{test.walls} walls: " + ", ".join(f"degree {k} {value:.1e}" for k, value in test.residual.items())
        for test in tests
    )
    method = "max |G p + r + s S_p|·h²/(K max|p|) over cells and polynomials p, S_p their source"
    if words == HEAT.words:
        method = "max |G p + r − α∇²p|·h²/(α max|p|) over cells and polynomials p"
    return Line("patch residuals", Verdict.MEASURED, "; ".join(parts) + f"; {where}", method)


def rates_in_words(rates: Rates) -> str:
    """`rates 1.97 1.99`, or that there is nothing to measure."""
    if rates.exact:
        return "exact to round-off"
    return "rates " + " ".join(f"{rate:.2f}" for rate in rates.rates)


def number(value: float | None) -> str:
    """Two digits, or `none`."""
    return "none" if value is None else f"{value:.2f}"


def _tensor(K: np.ndarray) -> str:
    return "[" + ", ".join("[" + ", ".join(f"{value + 0.0:.4f}" for value in row) + "]" for row in _rounded(K)) + "]"


def _rounded(K: np.ndarray) -> np.ndarray:
    """To ten decimals; numbers that overflow by it have no decimals to round."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(np.abs(K) < 1e10, K.round(10), K)
