"""Boundary conditions and parameters of an equation from the text of --boundary and --set."""

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np

from fluxforge.errors import InputError
from fluxforge.mesh._boundary import Condition, Conditions, Dirichlet, Inflow, Neumann, Periodic, Robin
from fluxforge.mesh._build import dual
from fluxforge.mesh._mesh import Mesh
from fluxforge.pde._document import find
from fluxforge.pde._equation import Equation
from fluxforge.stepping._field import read_array

REST = "rest"
INSULATED = "insulated"
# Of each word, the condition, and how many formulas follow it, separated by colons.
WALLS: dict[str, tuple[Callable[..., Condition], int]] = {
    "flux": (Neumann, 1),
    "neumann": (Neumann, 1),
    "robin": (Robin, 2),
    "periodic": (Periodic, 1),
    "inflow": (Inflow, 1),
}
_FORMS = f"a value, neumann:Q, robin:H:T, periodic:TAG, inflow:VALUE or {INSULATED}"
# The sign of TAG=CONDITION, not that of a comparison in a formula.
_EQUALS = re.compile(r"(?<![<>=!])=(?!=)")


def parse_boundary(specs: Sequence[str], tags: Callable[[], Iterable[str]]) -> Conditions:
    """Parse boundary conditions: comma-separated lists of TAG=CONDITION, or CONDITION for all faces.

    With both, the latter holds on all tags that are not named, as `rest=CONDITION` does. Commas and colons inside
    brackets belong to formulas. `tags` returns the mesh's tags; it is called only if both are given. Raises InputError
    for anything else.
    """
    named: dict[str, Condition] = {}
    others: list[Condition] = []
    for spec in (part for text in specs for part in _split_outside(text, ",")):
        tag, *texts = (part.strip() for part in _EQUALS.split(spec)) if _EQUALS.search(spec) else ("", spec)
        if len(texts) != 1 or (_EQUALS.search(spec) and not tag):
            raise InputError(f"--boundary {spec!r:.80}: write TAG=CONDITION, or CONDITION for the whole boundary")
        if tag in named or (tag in ("", REST) and others):
            what = tag if tag in named else "the whole boundary"
            raise InputError(f"--boundary {spec!r:.80}: {what} already has a condition")
        condition = _parse_condition(texts[0].strip(), spec)
        if tag in ("", REST):
            others.append(condition)
        else:
            named[tag] = condition
    if not others:
        return named or None
    if not named:
        return others[0]
    # The partner of a periodic tag has its condition from that tag.
    partners = {each.partner for each in named.values() if isinstance(each, Periodic)}
    return {tag: others[0] for tag in tags() if tag not in partners} | named


def _split_outside(text: str, separator: str) -> list[str]:
    """The parts between separators that are not inside brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _parse_condition(text: str, spec: str) -> Condition:
    where = f"--boundary {spec.strip()!r:.80}"
    if text == INSULATED:
        return Neumann(0.0)
    if difflib.get_close_matches(text, [INSULATED], cutoff=0.8):
        raise InputError(f"{where}: did you mean {INSULATED}?")
    word, *formulas = (part.strip() for part in _split_outside(text, ":"))
    if not word or not all(formulas):
        raise InputError(f"{where}: the formula is missing; write {_FORMS}")
    if not formulas:
        if word == "inflow":
            return Inflow()
        if word in WALLS:
            raise InputError(f"{where}: the formula is missing after {word}; write {_FORMS}")
        return Dirichlet(word)
    if word not in WALLS or len(formulas) != WALLS[word][1]:
        raise InputError(f"{where}: is no condition; write {_FORMS}")
    return WALLS[word][0](*formulas)


Given: TypeAlias = str | np.ndarray
REACTION = "reaction"


def read_settings(
    texts: Sequence[str], equation: str | None, mesh: Mesh
) -> tuple[str | Equation | None, dict[str, Given]]:
    """Read `NAME=VALUE`, `NAME=@file` and `reaction=FORMULA`, which replaces the reaction of the equation.

    Returns the equation, or None for that of the scheme, and the values of its parameters.

    Raises InputError, naming the parameter, for a text that is no setting, a name given twice, and a file that cannot
    be read or has neither a value per cell nor one per face.
    """
    settings: dict[str, Given] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (equals and name and value):
            raise InputError(f"--set {text!r:.60} should be NAME=VALUE")
        if name in settings:
            raise InputError(f"--set {name} is given twice")
        settings[name] = _read_file(value[1:], name, mesh) if value.startswith("@") else value
    own = equation is not None and any(p.name == REACTION for p in find(equation).parameters)
    if REACTION not in settings or own:
        return equation, settings
    reaction = settings.pop(REACTION)
    if equation is None or not isinstance(reaction, str):
        raise InputError(f"--set {REACTION} should be a formula of the unknown, with --equation NAME")
    return find(equation, reaction=reaction), settings


def _read_file(spec: str, name: str, mesh: Mesh) -> np.ndarray:
    try:
        values = read_array(spec, name)
    except InputError as error:
        raise InputError(f"--set {name}: {error}") from error
    cells, faces = len(mesh.cells), len(dual(mesh).A)
    if values.shape[:1] not in ((cells,), (faces,)):
        sizes = f"the mesh has {cells} cells and {faces} faces"
        raise InputError(f"--set {name}: {spec}: holds values of shape {values.shape}, and {sizes}")
    return values
