"""A scheme as a C99 file that needs libm alone: one function, a loop over cells per stage."""

import re
from string import Template

from fluxforge.scheme._scheme import Scheme, Stage
from fluxforge.scheme._symbols import ALL_ENDS, NEXT, Hop, constants
from fluxforge.scheme.emit._c_stage import SLOTS, CNames, CStage
from fluxforge.scheme.emit._c_text import CALL, CG, HELPERS, INCLUDES, MESH, NEEDS
from fluxforge.scheme.emit._plan import (
    Arguments,
    check_solvable,
    diagonal_stages,
    expressions,
    names,
)
from fluxforge.scheme.emit._print_infix import c_dialect, infix
from fluxforge.scheme.emit._words import c_comment, called_helpers, header, identifier

_FIELDS = "const double *T, const double *S, double *T_new"


def emit_c(scheme: Scheme) -> str:
    """C99 source with `int NAME_step(const fluxforge_mesh *, double dt, …, const double *T, …)`."""
    check_solvable(scheme)
    prefix = identifier(scheme.name)
    functions = _implicit(scheme, prefix) if scheme.implicit else [_function(scheme, f"int {prefix}_step")]
    code = "\n".join(functions)
    helpers = [_fill_names(HELPERS[name], scheme) for name in called_helpers(code, HELPERS, NEEDS, f"{prefix}_")]
    return "\n".join([_comment(scheme), INCLUDES, MESH, *helpers, *functions])


def _function(scheme: Scheme, opening: str) -> str:
    return c_function(scheme, scheme.stages, prefix=identifier(scheme.name), opening=opening, fields=_FIELDS)


def _implicit(scheme: Scheme, prefix: str) -> list[str]:
    diagonal = c_function(
        scheme,
        diagonal_stages(scheme),
        prefix=prefix,
        opening=f"/* The diagonal of F'. */\nstatic int {prefix}_diagonal",
        fields="double *T_new",
    )
    solver = CG.replace("$theta", f"({infix(scheme.theta, c_dialect(prefix), str)})")
    return [_function(scheme, f"/* F(T). */\nstatic int {prefix}_explicit"), diagonal, _fill_names(solver, scheme)]


def _fill_names(text: str, scheme: Scheme) -> str:
    text = re.sub(r"\$name_", "${name}_", text)
    prefix = identifier(scheme.name)
    return Template(text).substitute(name=prefix, **c_arguments(scheme, prefix))


def _comment(scheme: Scheme) -> str:
    answer = "0, 1 if memory runs out, 2 if conjugate gradients fail" if scheme.implicit else "0, 1 if memory runs out"
    several = len(scheme.stages) > 1 or scheme.implicit
    if Hop.LINE in scheme.hops():
        answer, several = answer.replace("runs out", "runs out or the mesh has no lines of cells"), True
    call = _fill_names(CALL.replace("$answer", answer if several else "0"), scheme)
    call += Arguments.of(scheme).words(SLOTS)
    text = header(scheme, call=call, nothing="NULL", note="Cells do not depend on each other within a stage.")
    return "/* " + "\n".join(f" * {line}".rstrip() for line in c_comment(text).split("\n"))[3:] + "\n */"


def c_function(scheme: Scheme, stages: tuple[Stage, ...], *, prefix: str, opening: str, fields: str) -> str:
    """The function's text; `opening` is what stands before its brackets, `fields` its last parameters."""
    used = names(expressions(stages))
    spell_name = CNames(prefix, scheme).spell_name
    outputs = [spell_name(name) for stage in stages for name in stage.outputs if name != NEXT]
    taken = Arguments.of(scheme)
    # α before Δt, then arrays, as these casts were always written.
    given = {name: spell_name(name) for name in (*constants(scheme.equation), *taken.cells)}
    given |= {name: SLOTS.format(name) for name in taken.slots} | {name: name for name in _fields_of(fields)}
    body = [f"(void){written};" for name, written in given.items() if not _mentions(name, used)]
    if any(message.hop is Hop.LINE for stage in stages for message in stage.messages.values()):
        body.append("if (mesh->behind == NULL || mesh->ahead == NULL) return 1;")
    body += _workspace(outputs)
    for number, stage in enumerate(stages, start=1):
        body += [f"/* Stage {number} */"] if len(stages) > 1 else []
        body += CStage(scheme, prefix).of(stage)
    body += ["free(work);"] if outputs else []
    lines = [f"    {line}" for text in (*body, "return 0;") for line in text.split("\n")]
    typed = c_arguments(scheme, prefix)["typed"]
    head = f"{opening}(const fluxforge_mesh *mesh, {typed},\n    {fields})"
    return "\n".join([head, "{", *lines, "}", ""])


def c_arguments(scheme: Scheme, prefix: str) -> dict[str, str]:
    """The parameters of a step as they are passed on (`arguments`) and as they are declared (`typed`)."""
    found, spell_name = Arguments.of(scheme), CNames(prefix, scheme).spell_name
    numbers = [spell_name(name) for name in found.constants]
    arrays = [*map(spell_name, found.cells), *map(SLOTS.format, found.slots)]
    typed = [*(f"double {name}" for name in numbers), *(f"const double *{name}" for name in arrays)]
    return {"arguments": ", ".join([*numbers, *arrays]), "typed": ", ".join(typed)}


def _fields_of(parameters: str) -> list[str]:
    return [name for name in ("T", "S") if f"*{name}," in parameters]


def _mentions(name: str, used: set[str]) -> bool:
    return bool(used & {name, *(f"{name}_{end}" for end in (*ALL_ENDS, "PN", "NQ"))})


def _workspace(outputs: list[str]) -> list[str]:
    if not outputs:
        return []
    places = ["work", *(f"{before} + mesh->cells" for before in outputs)]
    return [
        f"double *const work = calloc({len(outputs)}*mesh->cells + 1, sizeof *work);",
        "if (work == NULL) return 1;",
        *(f"double *const {name} = {place};" for name, place in zip(outputs, places, strict=False)),
    ]
