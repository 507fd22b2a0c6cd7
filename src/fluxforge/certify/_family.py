"""The result of refining one mesh family: orders, patch test, effective diffusivity."""

import math
from dataclasses import dataclass

import numpy as np

from fluxforge.certify._evidence import Line, verdict_of
from fluxforge.certify._families import LATTICES
from fluxforge.certify.effective import EffectiveEquation
from fluxforge.certify.order import LARGEST_ERROR, SpaceStudy, study_in_words
from fluxforge.certify.patch import PatchTest
from fluxforge.pde._equation import HEAT
from fluxforge.pde._words import Words

# How far K over the equation's own may be from 1 where it is exact (lattices), and where it is fitted to steady states.
EXACT_DIFFUSION = 1e-6
FITTED_DIFFUSION = 0.02
# The larger tolerance where the errors converge: the diffusivity is fitted on one size of mesh only.
NEAR_DIFFUSION = 0.05


@dataclass(frozen=True)
class FamilyResult:
    """The results on one mesh family.

    `diffusion` is K over the equation's own; `effective` the equation of smooth fields on a lattice, of other equations
    than heat.

    `studies` has a study per manufactured problem, and `study` is the worst of them: without an order if one has none,
    otherwise of the lowest order.
    """

    study: SpaceStudy | None
    patch: PatchTest | None
    diffusion: np.ndarray | None
    studies: tuple[SpaceStudy, ...] = ()
    only_diffuses: bool = True
    effective: EffectiveEquation | None = None

    @property
    def convergent(self) -> bool:
        """Whether the steady error of every problem demonstrably goes to zero."""
        return self.study is not None and self.study.l2.convergent

    @property
    def consistent(self) -> bool:
        """Whether the steady errors go to zero, or linear fields are exact; and the diffusivity is the equation's."""
        if self.effective is not None and not self.effective.holds:
            return False
        if not self.only_diffuses:
            return self.convergent
        if self.diffusion is None:
            return False
        off = float(np.abs(self.diffusion - np.eye(len(self.diffusion))).max())
        fitted = self.study is not None and self.study.family not in LATTICES
        exact = self.patch is not None and self.patch.exact(1)
        return (self.convergent and off <= NEAR_DIFFUSION) or (
            exact and off <= (FITTED_DIFFUSION if fitted else EXACT_DIFFUSION)
        )

    @property
    def fails(self) -> bool:
        """Whether the errors demonstrably do not go to zero: they have stalled on one problem at least."""
        return any(study.l2.stalled for study in self.studies or ((self.study,) if self.study is not None else ()))


def worst_study(studies: tuple[SpaceStudy, ...]) -> SpaceStudy:
    """The study without an order, or else of the lowest; of several without one, that of the largest last error."""
    without = [study for study in studies if not study.l2.convergent]
    if without:
        return max(without, key=lambda study: study.l2.errors[-1])
    return min(studies, key=lambda study: math.inf if study.l2.order is None else study.l2.order)


def space_line(family: str, found: FamilyResult, words: Words = HEAT.words) -> Line:
    """Consistency and order on one family."""
    parts = [study_in_words(study) for study in found.studies]
    if found.effective is not None:
        same = "as the equation" if found.effective.holds else f"the equation is {found.effective.own}"
        parts.append(f"smooth fields: {found.effective.found}, {same}")
    elif found.diffusion is not None:
        parts.append(f"K/{words.diffusion} = {_tensor(found.diffusion)}")
    elif found.only_diffuses:
        parts.append(f"K/{words.diffusion} not established")
    method = (
        f"steady states of manufactured solutions, solved directly; an order needs a last error below "
        f"{LARGEST_ERROR:.0%} of the solution, rates that settle, and no plateau"
    )
    return Line(f"{family}: {convergence(found, words)}", verdict_of(found.consistent), "; ".join(parts), method)


def convergence(found: FamilyResult, words: Words = HEAT.words) -> str:
    """The convergence in words; a plateau is distinguished from rates that do not settle."""
    if found.study is None:
        return "not measured"
    rates = found.study.l2
    if not rates.convergent:
        return "does not converge" if found.fails else "no order established"
    if rates.exact:
        return "exact"
    doubt = ", but its diffusivity is not " + ("established" if found.diffusion is None else words.diffusion)
    if found.effective is not None and not found.effective.holds:
        doubt = ", but smooth fields obey another equation"
    return f"converges, order {rates.order:.2f}" + ("" if found.consistent else doubt)


def _tensor(K: np.ndarray) -> str:
    return (
        "[" + ", ".join("[" + ", ".join(f"{value + 0.0:.4f}" for value in row) + "]" for row in _round_numbers(K)) + "]"
    )


def _round_numbers(K: np.ndarray) -> np.ndarray:
    """Rounded to ten decimals; numbers from 1e10 on, for which that may overflow, are left as they are."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(np.abs(K) < 1e10, K.round(10), K)
