"""Boundary conditions as text: `0`, `left=sin(pi*y)`, `right=insulated`, `top=flux:2*x`, `insulated`."""

import difflib
from collections.abc import Callable, Iterable, Sequence

from fluxforge.errors import InputError
from fluxforge.mesh import Condition, Conditions, Dirichlet, Neumann

FLUX = "flux:"
INSULATED = "insulated"


def parse_boundary(specs: Sequence[str], tags: Callable[[], Iterable[str]]) -> Conditions:
    """One condition for all faces, one per tag, or both: then the faces of every other tag follow the former.

    `tags` yields the mesh's tags; it is asked only where both are given.
    """
    named: dict[str, Condition] = {}
    others: list[Condition] = []
    for spec in specs:
        tag, equals, text = spec.rpartition("=") if spec.count("=") == 1 else ("", "", spec)
        tag = tag.strip()
        if "=" in text or (equals and not tag):
            raise InputError(f"--boundary {spec!r:.80}: write TAG=CONDITION, or CONDITION for the whole boundary")
        if tag in named or (not tag and others):
            raise InputError(f"--boundary {spec!r:.80}: {tag or 'the whole boundary'} has a condition already")
        condition = _condition(text.strip(), spec)
        if tag:
            named[tag] = condition
        else:
            others.append(condition)
    if not others:
        return named or None
    return dict.fromkeys(tags(), others[0]) | named if named else others[0]


def _condition(text: str, spec: str) -> Condition:
    if text == INSULATED:
        return Neumann(0.0)
    if difflib.get_close_matches(text, [INSULATED], cutoff=0.8):
        raise InputError(f"--boundary {spec!r:.80}: did you mean {INSULATED}?")
    formula = text.removeprefix(FLUX).strip()
    if not formula:
        raise InputError(f"--boundary {spec!r:.80}: a formula is missing; write a temperature, flux:… or {INSULATED}")
    return Neumann(formula) if text.startswith(FLUX) else Dirichlet(formula)
