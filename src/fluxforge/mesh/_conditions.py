"""The boundary condition of each tag of a mesh, from conditions, numbers, functions and text."""

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias

from fluxforge._arguments import check_number, describe_value
from fluxforge.errors import InputError
from fluxforge.expression._tokens import split_outside_brackets
from fluxforge.mesh._boundary import REST, Condition, Dirichlet, Inflow, Neumann, Periodic, Robin, Value
from fluxforge.pde._equation import Equation

Conditions: TypeAlias = Condition | str | float | Mapping[str, Condition | Value] | None
"""One condition, or one per tag, as objects or as text: see `read_conditions`; a number is a Dirichlet value.

In a mapping, a number and a function are Dirichlet values, a text is a condition (a formula, or "neumann:0"), and the
key "rest" stands for all tags that are not named.
"""

ZERO_VALUE = Dirichlet()
"""u = 0: the condition of tags that are not named, unless the equation has another."""

INSULATED = "insulated"
KINDS = (Dirichlet, Neumann, Robin, Periodic, Inflow)
# For each word, its condition, and the number of formulas that follow the word, separated by colons.
WALLS: dict[str, tuple[Callable[..., Condition], int]] = {
    "flux": (Neumann, 1),
    "neumann": (Neumann, 1),
    "robin": (Robin, 2),
    "periodic": (Periodic, 1),
    "inflow": (Inflow, 1),
}
_INFLOW_USAGE = "give a value, which holds where the flow enters (inflow:VALUE), or periodic:TAG"
_CONDITION_KINDS = "Dirichlet(...), Neumann(...), Robin(...), Periodic(...) or Inflow(...)"
_FORMS = f"a value, neumann:Q, robin:H:T, periodic:TAG, inflow:VALUE or {INSULATED}"
# The sign of TAG=CONDITION, not that of a comparison in a formula.
_EQUALS = re.compile(r"(?<![<>=!])=(?!=)")


def read_conditions(texts: Sequence[str], name: str = "boundary") -> Condition | dict[str, Condition] | None:
    """Read comma-separated lists of TAG=CONDITION, or CONDITION for all faces; None if there are none.

    With both, the latter applies to all tags that are not named, as `rest=CONDITION` does. Commas and colons inside
    brackets belong to formulas. Raises InputError, which begins with the `name` of the argument, for anything else.
    """
    if isinstance(texts, str) or not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        wanted = "a list of texts, such as ['left=1', 'rest=insulated']"
        raise InputError(f"{name} should be {wanted}, got {describe_value(texts)}")
    per_tag: dict[str, Condition] = {}
    for spec in (part for text in texts for part in split_outside_brackets(text, ",")):
        where = f"{name} {spec.strip()!r:.80}"
        tag, *parts = (part.strip() for part in _EQUALS.split(spec)) if _EQUALS.search(spec) else (REST, spec.strip())
        if len(parts) != 1 or not tag:
            raise InputError(f"{where}: write TAG=CONDITION, or CONDITION for the whole boundary")
        if tag in per_tag:
            raise InputError(f"{where}: {'the whole boundary' if tag == REST else tag} already has a condition")
        per_tag[tag] = _read_condition(parts[0], where)
    return per_tag[REST] if set(per_tag) == {REST} else per_tag or None


def _read_condition(text: str, where: str) -> Condition:
    if text == INSULATED:
        return Neumann(0.0)
    if difflib.get_close_matches(text, [INSULATED], cutoff=0.8):
        raise InputError(f"{where}: did you mean {INSULATED}?")
    word, *formulas = (part.strip() for part in split_outside_brackets(text, ":"))
    if not word or not all(formulas):
        raise InputError(f"{where}: the formula is missing; write {_FORMS}")
    if not formulas:
        if word == "inflow":
            return Inflow()
        if word in WALLS:
            raise InputError(f"{where}: the formula is missing after {word}; write {_FORMS}")
        return Dirichlet(word)
    if word not in WALLS or len(formulas) != WALLS[word][1]:
        raise InputError(f"{where}: is not a condition; write {_FORMS}")
    return WALLS[word][0](*formulas)


def to_conditions(boundary: Conditions) -> Condition | dict[str, Condition] | None:
    """The conditions that an argument `boundary` describes, None for none; raises InputError for anything else."""
    setting: object = boundary
    if setting is None or isinstance(setting, KINDS):
        return setting
    if isinstance(setting, str):
        return read_conditions([setting])
    if not isinstance(setting, Mapping):
        with suppress(InputError):
            return Dirichlet(check_number(setting, "boundary"))
        wanted = 'a number, text ("left=1, rest=insulated") or a mapping from boundary tags to these or to numbers'
        raise InputError(f"boundary should be {_CONDITION_KINDS}, {wanted}, got {describe_value(setting)}")
    return {tag: _to_condition(condition, tag) for tag, condition in setting.items()}


def _to_condition(condition: object, tag: object) -> Condition:
    """The condition of a tag; a number or a function is the value of a Dirichlet condition."""
    if isinstance(condition, KINDS):
        return condition
    where = f"the boundary condition of {tag!r}"
    if isinstance(condition, str):
        return _read_condition(condition.strip(), where)
    if callable(condition) and not isinstance(condition, type):
        return Dirichlet(condition)
    try:
        return Dirichlet(check_number(condition, where))
    except InputError as error:
        wanted = f"a number, a formula, a function, {_CONDITION_KINDS}"
        raise InputError(f"{where} should be {wanted}, got {describe_value(condition)}") from error


def conditions_of_tags(
    conditions: Conditions, tags: tuple[str, ...], rest: Condition = ZERO_VALUE
) -> dict[str, Condition]:
    """The condition of every tag of a mesh, `rest` on those that are not named unless "rest" is among the keys.

    A periodic condition of one tag is also that of its partner. Raises InputError for a tag that the mesh does not
    have and for periodic conditions that contradict each other.
    """
    setting = to_conditions(conditions)
    per_tag = {} if isinstance(setting, KINDS) else dict(setting or {})
    if isinstance(setting, KINDS):
        rest = setting
    elif REST not in tags:
        rest = per_tag.pop(REST, rest)
    elif REST in per_tag:
        _refuse_ambiguous_rest(per_tag, tags)
    if isinstance(rest, Periodic):
        raise InputError(
            "a periodic condition belongs to one tag: give a mapping from tags to conditions, {'left': "
            "Periodic('right')}"
        )
    partners = {each.partner: tag for tag, each in per_tag.items() if isinstance(each, Periodic)}
    if stray := sorted((set(per_tag) | set(partners)) - set(tags), key=str):
        raise InputError(f"boundary tag {stray[0]!r} is not in the mesh; it has: {', '.join(tags)}")
    for partner, tag in partners.items():
        if partner == tag:
            raise InputError(f"the boundary condition of {tag!r} is periodic with itself: name the tag opposite to it")
        if per_tag.setdefault(partner, Periodic(tag)) != Periodic(tag):
            raise InputError(
                f"the boundary condition of {tag!r} is periodic with {partner!r}, which has another condition: "
                f"give it none, or periodic:{tag}"
            )
    return dict.fromkeys(tags, rest) | per_tag


def _refuse_ambiguous_rest(per_tag: Mapping[str, Condition], tags: tuple[str, ...]) -> None:
    """Refuse the key "rest" for a mesh with a tag of that name, unless no other tag is left that it could stand for."""
    named = {*per_tag, *(each.partner for each in per_tag.values() if isinstance(each, Periodic))}
    if unnamed := [tag for tag in tags if tag not in named]:
        raise InputError(
            f"the mesh has a boundary tag {REST!r}, and {REST!r} stands for all tags that are not named as well: "
            f"give a condition for {', '.join(map(repr, unnamed))} too"
        )


def default_condition(equation: Equation | None) -> Condition:
    """The condition of walls that are not named: u = 0, or, with a velocity, u = 0 at inflow and free outflow."""
    return ZERO_VALUE if equation is None or equation.velocity is None else Inflow()


def fit_conditions(conditions: Conditions, tags: tuple[str, ...], equation: Equation | None) -> dict[str, Condition]:
    """The condition of every tag, in the form that suits the equation.

    Without diffusion, a Dirichlet value is the value at inflow. Raises InputError, naming the tag, for a condition that
    the equation does not allow.
    """
    walls = conditions_of_tags(conditions, tags, default_condition(equation))
    return walls if equation is None else {tag: _fit_condition(each, tag, equation) for tag, each in walls.items()}


def _fit_condition(condition: Condition, tag: str, equation: Equation) -> Condition:
    where = f"the boundary condition of {tag!r}: equation {equation.name!r}"
    if isinstance(condition, Inflow) and equation.velocity is None:
        raise InputError(f"{where} has no velocity, so there is no inflow; give a value, neumann:Q or robin:H:T")
    if isinstance(condition, Robin) and equation.u in equation.diffusion.free_symbols:
        raise InputError(
            f"{where} has a diffusivity that depends on {equation.unknown}: a robin wall is not supported; give "
            "a value or neumann:Q"
        )
    if equation.diffusion != 0 or equation.velocity is None:
        if isinstance(condition, Robin) and equation.diffusion == 0:
            raise InputError(f"{where} has no diffusion, so that a robin wall is not possible")
        return condition
    # A gradient of 0 sets the value outside to that inside, which is free outflow.
    if isinstance(condition, Robin) or (isinstance(condition, Neumann) and condition.normal_gradient not in (0, "0")):
        kind = "robin" if isinstance(condition, Robin) else "neumann"
        raise InputError(f"{where} has no diffusion, so that a {kind} wall is not possible; {_INFLOW_USAGE}")
    return Inflow(condition.value) if isinstance(condition, Dirichlet) else condition
