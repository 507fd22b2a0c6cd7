"""A scheme as a C99 file that needs libm alone."""

import re
from string import Template

from fluxforge.scheme._scheme import Scheme
from fluxforge.scheme.emit._c_function import c_arguments, c_function
from fluxforge.scheme.emit._c_names import SLOTS
from fluxforge.scheme.emit._c_text import CALL, CG, HELPERS, INCLUDES, MESH, NEEDS
from fluxforge.scheme.emit._plan import Arguments
from fluxforge.scheme.emit._print_infix import c_dialect, infix
from fluxforge.scheme.emit._solvable import check_solvable, diagonal_stages
from fluxforge.scheme.emit._words import c_comment, header, identifier

_FIELDS = "const double *T, const double *S, double *T_new"


def emit_c(scheme: Scheme) -> str:
    """C99 source with `int NAME_step(const fluxforge_mesh *, double dt, …, const double *T, …)`."""
    check_solvable(scheme)
    prefix = identifier(scheme.name)
    functions = _implicit(scheme, prefix) if scheme.implicit else [_function(scheme, f"int {prefix}_step")]
    code = "\n".join(functions)
    helpers = [_named(HELPERS[name], scheme) for name in _called(code, prefix)]
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
    return [_function(scheme, f"/* F(T). */\nstatic int {prefix}_explicit"), diagonal, _named(solver, scheme)]


def _named(text: str, scheme: Scheme) -> str:
    text = re.sub(r"\$name_", "${name}_", text)
    prefix = identifier(scheme.name)
    return Template(text).substitute(name=prefix, **c_arguments(scheme, prefix))


def _called(code: str, prefix: str) -> list[str]:
    names = {name for name in HELPERS if f"{prefix}_{name}(" in code}
    names.update(inner for name in tuple(names) for inner in NEEDS.get(name, ()))
    return [name for name in HELPERS if name in names]


def _comment(scheme: Scheme) -> str:
    answer = "0, 1 if memory runs out, 2 if conjugate gradients fail" if scheme.implicit else "0, 1 if memory runs out"
    call = _named(CALL.replace("$answer", answer if len(scheme.stages) > 1 or scheme.implicit else "0"), scheme)
    call += Arguments.of(scheme).words(SLOTS)
    text = header(scheme, call=call, nothing="NULL", note="Cells do not depend on each other within a stage.")
    return "/* " + "\n".join(f" * {line}".rstrip() for line in c_comment(text).split("\n"))[3:] + "\n */"
