"""`verify`: measure what a scheme is."""

import os
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import jax
import numpy as np

from fluxforge.errors import FluxforgeError, InputError
from fluxforge.mesh import DualGraph, Mesh, dual
from fluxforge.scheme import Scheme, find, linear_stages
from fluxforge.verify import _lines
from fluxforge.verify._certificate import Certificate, FamilyResult
from fluxforge.verify._claims import Measured, check_claims
from fluxforge.verify._evidence import Line, unknown
from fluxforge.verify._families import Levels, choose
from fluxforge.verify.conservation import conservation
from fluxforge.verify.cost import cost, error_against_cost
from fluxforge.verify.diffusivity import effective_diffusivity
from fluxforge.verify.linearity import linearity
from fluxforge.verify.maximum import maximum_principle
from fluxforge.verify.modified import ModifiedEquation, square_equation, triangle_equation
from fluxforge.verify.order import space_order
from fluxforge.verify.patch import PatchTest, patch_test
from fluxforge.verify.semidiscrete import semidiscrete
from fluxforge.verify.stability import default_graph, stability
from fluxforge.verify.time_order import study_graph, time_order

T = TypeVar("T")
# Told which question is asked now, its number, and how many there are.
Progress = Callable[[str, int, int], None]

NOT_LINEAR = "the scheme is not linear in T, so it has no matrix to ask"
MOST_CELLS = 20_000


def verify(
    scheme: str | os.PathLike[str] | Scheme,
    *,
    families: tuple[str, ...] | None = None,
    levels: int | None = None,
    quick: bool = False,
    mesh: Mesh | None = None,
    progress: Progress | None = None,
) -> Certificate:
    """Certify a scheme: a built-in name, a `scheme.json` or a Scheme.

    `families` and `levels` limit the refinement studies, `quick` makes them smaller. With `mesh`, the lines that need
    no refinement (stencil, conservation, patch tests, largest stable step, maximum principle) are established on it,
    and the refinement studies are left out.
    """
    scheme = find(scheme)
    chosen = () if mesh is not None else choose(families, levels, quick=quick)
    if mesh is not None and len(mesh.cells) > MOST_CELLS:
        raise InputError(f"{mesh.origin}: has {len(mesh.cells)} cells; a certificate takes up to {MOST_CELLS}")
    with jax.enable_x64(True):
        return _Verification(scheme, mesh, quick=quick, progress=progress).run(chosen)


class _Verification:
    """Collects results and lines; what cannot be established becomes a line that says why."""

    def __init__(self, scheme: Scheme, mesh: Mesh | None, *, quick: bool, progress: Progress | None) -> None:
        self.scheme = scheme
        self.mesh = mesh
        self.quick = quick
        self.progress = progress
        self.asked = 0
        self.questions = 0
        self.lines: list[Line] = []
        self.linear = linear_stages(scheme) is not None
        self.graph: DualGraph = default_graph() if mesh is None else dual(mesh)
        self.where = "on an irregular mesh" if mesh is None else f"on {mesh.origin}"

    def tell(self, question: str) -> None:
        """Count a question and pass it on."""
        self.asked += 1
        if self.progress is not None:
            self.progress(question, self.asked, max(self.questions, self.asked))

    def run(self, chosen: tuple[Levels, ...]) -> Certificate:
        """Ask every question in turn."""
        self.questions = (7 if self.mesh is not None else 10) + sum(len(levels.sizes) for levels in chosen)
        s, g, where = self.scheme, self.graph, self.where
        reach = self._ask("linearity", lambda: linearity(s, g), lambda f: _lines.linearity_line(f, where), always=True)
        kept = self._ask(
            "conservation",
            lambda: conservation(s, self.mesh),
            lambda f: _lines.conservation_line(f, where),
            always=True,
        )
        patch = self._ask(
            "patch tests", lambda: patch_test(s, self._patch_mesh()), lambda f: _lines.patch_line(f, where)
        )
        system = None
        if patch is not None:
            system = self._ask("generator", lambda: semidiscrete(s, study_graph(), patch), _lines.generator_line)
        time = self._ask("order in time", lambda: time_order(s), _lines.time_line) if self.mesh is None else None
        steady = self._ask("stability", lambda: stability(s, g), lambda f: _lines.stability_line(f, where))
        maximum = self._ask(
            "maximum principle", lambda: maximum_principle(s, g), lambda f: _lines.maximum_line(f, where)
        )
        modified = self._modified() if self.mesh is None else {}
        space = {levels.family: self._family(levels, patch) for levels in chosen} if self.linear else {}
        curves = error_against_cost(s) if self.linear and self.mesh is None and not self.quick else ()
        price = self._ask("cost of a step", lambda: cost(s, g), lambda f: _lines.cost_line(f, curves, s.name))
        checks = check_claims(
            s.claims,
            Measured(
                conservative=None if kept is None else kept.holds,
                linear_exact=None if patch is None else patch.exact(1),
                time_order=None if time is None else time.order,
                time_measured=time is not None,
                generator=None if system is None else system.holds,
                stable_to=None if steady is None else steady.interval,
                space={family: _measured(found) for family, found in space.items() if found.study is not None},
            ),
        )
        self.lines += [_lines.claim_line(check) for check in checks]
        return Certificate(
            scheme=s.name,
            quick=self.quick,
            lines=tuple(self.lines),
            claims=checks,
            linearity=reach,
            conservation=kept,
            time=time,
            semidiscrete=system,
            space=space,
            modified=modified,
            stability=steady,
            maximum=maximum,
            cost=price,
            curves=curves,
            mesh=None if self.mesh is None else self.mesh.origin,
        )

    def _ask(self, name: str, measure: Callable[[], T], line: Callable[[T], Line], *, always: bool = False) -> T | None:
        """Measure and write the line; a scheme that gives no answer gets a line with the reason, never a traceback."""
        self.tell(name)
        if not (self.linear or always):
            self.lines.append(unknown(name, NOT_LINEAR))
            return None
        found = self._try(name, measure)
        if found is not None:
            self.lines.append(line(found))
        return found

    def _try(self, name: str, measure: Callable[[], T]) -> T | None:
        try:
            with np.errstate(all="ignore"):
                return measure()
        except (FluxforgeError, ArithmeticError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            self.lines.append(unknown(name, reason))
            return None

    def _patch_mesh(self) -> Mesh:
        return Levels("irregular", (9,)).mesh(9) if self.mesh is None else self.mesh

    def _modified(self) -> dict[str, ModifiedEquation]:
        found = {}
        for name, ask in (("squares", square_equation), ("equilateral", triangle_equation)):
            self.tell(f"modified equation, {name}")
            equation = self._try(f"modified equation, {name}", partial(ask, self.scheme)) if self.linear else None
            if equation is not None:
                found[name] = equation
                self.lines.append(_lines.modified_line(name, equation))
        return found

    def _family(self, levels: Levels, patch: PatchTest | None) -> FamilyResult:
        """Refine one family. Linear fields kept on an irregular mesh are kept on all: a quick run asks no further."""
        if patch is not None and not patch.exact(1):
            patch = None
        study = self._try(levels.family, lambda: space_order(self.scheme, levels, progress=self.tell))
        if not self.quick:
            patch = self._try(
                f"patch tests, {levels.family}", lambda: patch_test(self.scheme, levels.mesh(levels.sizes[0]))
            )
        tensor = self._try(f"diffusivity, {levels.family}", lambda: effective_diffusivity(self.scheme, levels))
        found = FamilyResult(study, patch, tensor)
        if study is not None:
            self.lines.append(_lines.space_line(levels.family, found))
        return found


def _measured(found: FamilyResult) -> tuple[bool, float | None]:
    return found.convergent, None if found.study is None else found.study.l2.order
