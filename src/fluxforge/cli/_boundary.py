"""The option --boundary: conditions from text."""

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from fluxforge.errors import InputError

if TYPE_CHECKING:
    from fluxforge.mesh._boundary import Condition, Conditions


REST = "rest"
INSULATED = "insulated"
# Of each word, how many formulas follow it, separated by colons.
WALLS = {"flux": 1, "neumann": 1, "robin": 2, "periodic": 1, "inflow": 1}
_FORMS = f"a value, neumann:Q, robin:H:T, periodic:TAG, inflow:VALUE or {INSULATED}"
# The sign of TAG=CONDITION, not that of a comparison in a formula.
_EQUALS = re.compile(r"(?<![<>=!])=(?!=)")


def parse_boundary(specs: Sequence[str], tags: Callable[[], Iterable[str]]) -> "Conditions":
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
    return _for_the_rest(others[0], named, tags) if named else others[0]


def _for_the_rest(
    condition: "Condition", named: "dict[str, Condition]", tags: Callable[[], Iterable[str]]
) -> "dict[str, Condition]":
    """The condition on all tags that are neither named nor the partner of a periodic tag."""
    from fluxforge.mesh._boundary import Periodic

    partners = {each.partner for each in named.values() if isinstance(each, Periodic)}
    return {tag: condition for tag in tags() if tag not in partners} | named


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


def _parse_condition(text: str, spec: str) -> "Condition":
    # A shell that completes a word cannot wait for the library.
    from fluxforge.mesh._boundary import Dirichlet, Inflow, Neumann, Periodic, Robin

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
    if len(formulas) != WALLS.get(word):
        raise InputError(f"{where}: is no condition; write {_FORMS}")
    kinds: dict[str, Callable[..., Condition]] = {"robin": Robin, "periodic": Periodic, "inflow": Inflow}
    return kinds.get(word, Neumann)(*formulas)
