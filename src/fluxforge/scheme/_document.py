"""Schemes by name (SPACE, TIME or SPACE-TIME) and in files (scheme.json, whose formulas only our own parser reads)."""

import difflib
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import sympy as sp

from fluxforge import pde
from fluxforge._arguments import check_path
from fluxforge._files import read_document, write_document
from fluxforge._types import JsonObject
from fluxforge.errors import DocumentError, EquationError, ExpressionError, SchemeError
from fluxforge.expression._parse import parse
from fluxforge.expression._print import to_text
from fluxforge.pde._document import find as find_equation
from fluxforge.pde._equation import HEAT, Equation
from fluxforge.scheme._damped import DAMPED_SPACES
from fluxforge.scheme._diffusion import DIFFUSION
from fluxforge.scheme._integrate import TWO_POINT, Space, integrate
from fluxforge.scheme._scheme import FAMILIES, Claims, Ghost, Hop, Message, Reduction, Scheme, check_scheme
from fluxforge.scheme._tableau import EULER, TABLEAUX, Tableau, find_tableau
from fluxforge.scheme.reference import BUILT_IN, PLAIN, SchemeBuilder
from fluxforge.scheme.transport import BOUNDED_PREFIX, TRANSPORT

SPACES: Mapping[str, Space] = {space.name: space for space in (TWO_POINT, *DIFFUSION, *DAMPED_SPACES, *TRANSPORT)}
"""The discretisations in space, by name. The name of a time integrator alone stands for the two-point flux."""


class Parts(NamedTuple):
    """The parts of a scheme's name: a discretisation in space and a time integrator."""

    space: Space
    tableau: Tableau


def split_name(name: str) -> Parts | None:
    """Read `SPACE` (with forward Euler), `TIME` (of the equation's two-point flux) or `SPACE-TIME`.

    Both parts may contain hyphens; if a name can be read in several ways, the longest space is taken. None if it cannot
    be read.
    """
    if (tableau := find_tableau(name)) is not None:
        return Parts(TWO_POINT, tableau)
    if name in SPACES:
        return Parts(SPACES[name], EULER)
    words = name.split("-")
    for count in range(len(words) - 1, 0, -1):
        space = SPACES.get("-".join(words[:count]))
        tableau = find_tableau("-".join(words[count:]))
        if space is not None and tableau is not None:
            return Parts(space, tableau)
    return None


def named_scheme(name: str, equation: Equation | None, dimension: int) -> Scheme | None:
    """The scheme of a built-in name, or of a name that `split_name` reads; None for any other name.

    The default equation is the one that the space is for: heat, or advection. Raises SchemeError for a space that does
    not serve the equation.
    """
    parts = split_name(name)
    wanted = equation or (HEAT if parts is None else parts.space.default)
    built_in = BUILT_IN.get(name)
    if built_in is not None and (parts is None or wanted == HEAT) and built_in.dimension in (None, dimension):
        return built_in
    if parts is None:
        return None
    space = parts.space.at(dimension)
    if (reason := space.refuse(wanted)) is not None:
        raise SchemeError(f"scheme {name!r} cannot be used with the equation {wanted.name!r}: {reason}")
    return integrate(parts.tableau, wanted, _fit_claims(space, wanted), name=name)


def bounded_scheme(scheme: Scheme, dimension: int) -> Scheme | None:
    """For a scheme with a limiter along lines of cells, the scheme with the same limiter in cells of any shape.

    None for other schemes, and for a scheme whose formulas are not those of its name.
    """
    if Hop.LINE not in scheme.hops() or named_scheme(scheme.name, scheme.equation, dimension) != scheme:
        return None
    return named_scheme(f"{BOUNDED_PREFIX}{scheme.name}", scheme.equation, dimension)


def _fit_claims(space: Space, equation: Equation) -> Space:
    """The space with the claims that hold for the equation: those for pure diffusion are dropped for all others."""
    if space is TWO_POINT:
        return PLAIN if equation == HEAT else space
    if space.default.only_diffuses and not equation.only_diffuses:
        return replace(space, orders={}, linear_exact=None)
    return space


def nearest_name(name: str) -> str | None:
    """The known name that is most similar to the given one, or None if none is similar."""
    pairs = (f"{space}-{time}" for space in SPACES for time in TABLEAUX)
    close = difflib.get_close_matches(name, [*BUILT_IN, *TABLEAUX, *SPACES, *pairs], n=1)
    return close[0] if close else None


KIND, VERSION = "scheme", 2
# Limits of a file, far above every scheme in use, so that hostile ones are refused early.
MAX_STAGES, MAX_NAMES = 64, 64

T = TypeVar("T")


def save(scheme: Scheme, path: str | os.PathLike[str]) -> None:
    """Write a scheme as JSON. Raises DocumentError, before writing, for one that could not be read back."""
    check_path(path, "path")
    document = to_document(scheme)
    from_document(document)
    write_document(path, KIND, VERSION, document)


def load(path: str | os.PathLike[str]) -> Scheme:
    """Read a scheme; raises DocumentError, with the file, the field and the reason, for malformed content."""
    document = read_document(check_path(path, "path"), KIND, VERSION)
    try:
        return from_document(document)
    except (SchemeError, ExpressionError, EquationError, DocumentError) as error:
        raise DocumentError(f"{os.fspath(path)}: {error}") from error


def to_document(scheme: Scheme) -> JsonObject:
    """The scheme as plain JSON values."""
    check_scheme(scheme)
    return {
        "name": scheme.name,
        "summary": scheme.summary,
        "equation": _equation_entry(scheme.equation),
        "theta": to_text(scheme.theta),
        "stages": [
            {
                "messages": {
                    name: {"hop": str(message.hop), "expression": to_text(message.expression)}
                    | _reduction_entry(message)
                    for name, message in stage.messages.items()
                },
                "outputs": {
                    name: {"ghost": str(output.ghost), "expression": to_text(output.expression)}
                    for name, output in stage.outputs.items()
                },
            }
            for stage in scheme.stages
        ],
        "claims": claims_to_document(scheme.claims),
    }


def _reduction_entry(message: Message) -> dict[str, str]:
    """The entry of a message's reduction; empty for the sum, which is the default."""
    return {} if message.reduction is Reduction.SUM else {"reduction": str(message.reduction)}


def _equation_entry(equation: pde.Equation) -> str | JsonObject:
    """The entry of an equation: a built-in one by its name, any other in full."""
    return equation.name if pde.BUILT_IN.get(equation.name) == equation else pde.to_document(equation)


def _equation(document: Mapping[str, object]) -> pde.Equation:
    """The equation of a document; those of version 1 have no such field and are schemes of heat."""
    if "equation" in document and document.get("format_version") == 1:
        raise DocumentError(
            "field 'equation' does not exist in format_version 1, whose schemes are all of heat: set "
            f"format_version to {VERSION}"
        )
    if "equation" not in document and document.get("format_version", 1) != 1:
        raise DocumentError(
            "field 'equation' is missing: only files of format_version 1 are schemes of heat without it"
        )
    entry = document.get("equation", "heat")
    if isinstance(entry, dict):
        return pde.from_document(entry, "field 'equation'")
    if not isinstance(entry, str) or entry not in pde.BUILT_IN:
        raise DocumentError(
            f"field 'equation' should be an object or one of {', '.join(pde.BUILT_IN)}; got {entry!r:.60}"
        )
    return pde.BUILT_IN[entry]


def claims_to_document(claims: Claims) -> JsonObject:
    """The claims that are made, as plain JSON values; an unlimited interval is the word "unlimited"."""
    document = {name: getattr(claims, name) for name in ("conservative", "linear_exact", "time_order", "generator")}
    if claims.stable_to is not None:
        document["stable_to"] = "unlimited" if math.isinf(claims.stable_to) else claims.stable_to
    if claims.space:
        document["space"] = dict(claims.space)
    return {name: value for name, value in document.items() if value is not None}


def from_document(document: Mapping[str, object]) -> Scheme:
    """Read a scheme from the JSON values of `to_document`.

    Raises DocumentError, which names the field, for other values, SchemeError and ExpressionError for unusable
    formulas.
    """
    known = {"format", "format_version", "name", "summary", "equation", "theta", "stages", "claims"}
    _check_fields(document, "the scheme", known)
    builder = SchemeBuilder(_equation(document))
    stages = _require(document, "stages", list, "the scheme")
    if not 0 < len(stages) <= MAX_STAGES:
        raise DocumentError(f"field 'stages' should list 1 to {MAX_STAGES} stages, got {len(stages)}")
    for number, stage in enumerate(stages, start=1):
        where = f"stage {number}"
        _check_fields(stage, where, {"messages", "outputs"})
        builder.stage(
            _entries(stage, "messages", where, _message),
            _entries(stage, "outputs", where, _output),
            where=where,
        )
    return builder.build(
        _read_line(document, "name", least=1, most=100),
        summary=_read_line({"summary": "", **document}, "summary", least=0, most=1000),
        theta=_theta(document.get("theta", "0")),
        claims=_claims(document.get("claims", {})),
    )


def _entries(stage: Mapping[str, object], key: str, where: str, read: Callable[[Any, str], T]) -> dict[str, T]:
    entries = _require(stage, key, dict, where)
    if len(entries) > MAX_NAMES:
        raise DocumentError(f"{where}: field {key!r} should have at most {MAX_NAMES} entries, got {len(entries)}")
    return {name: read(entry, f"{where}, {key} entry {name!r:.60}") for name, entry in entries.items()}


def _message(entry: Any, where: str) -> tuple[Hop, str, Reduction]:
    _check_fields(entry, where, {"hop", "expression", "reduction"})
    hop, reduction = _choice(Hop, entry, "hop", "edge", where), _choice(Reduction, entry, "reduction", "sum", where)
    return hop, str(_require(entry, "expression", str, where)), reduction


def _output(entry: Any, where: str) -> tuple[Ghost, str]:
    _check_fields(entry, where, {"ghost", "expression"})
    return _choice(Ghost, entry, "ghost", "dirichlet", where), str(_require(entry, "expression", str, where))


E_ = TypeVar("E_", Hop, Ghost, Reduction)


def _choice(kind: type[E_], entry: Any, key: str, default: str, where: str) -> E_:
    choice = entry.get(key, default)
    if choice not in [str(item) for item in kind]:
        raise DocumentError(f"{where}: {key!r} should be one of {', '.join(kind)}; got {choice!r:.60}")
    return kind(choice)


def _theta(value: Any) -> sp.Expr:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        value = repr(value)
    if not isinstance(value, str):
        raise DocumentError(f"field 'theta' should be a number from 0 to 1, got {value!r:.60}")
    try:
        return parse(value, ())
    except ExpressionError as error:
        raise DocumentError(f"field 'theta': {error}") from error


def _claims(document: Any) -> Claims:
    _check_fields(document, "claims", {"conservative", "linear_exact", "time_order", "generator", "space", "stable_to"})
    for name in ("conservative", "linear_exact", "generator"):
        if not isinstance(document.get(name, True), bool):
            raise DocumentError(f"claims: {name!r} should be true or false, got {document[name]!r:.60}")
    order = document.get("time_order")
    if order is not None and (not isinstance(order, int) or isinstance(order, bool) or not 0 <= order <= 20):
        raise DocumentError(f"claims: 'time_order' should be a whole number from 0 to 20, got {order!r:.60}")
    space = document.get("space", {})
    _check_fields(space, "claims, space", set(FAMILIES))
    for family, value in space.items():
        _number(value, f"claims, space, {family}")
    stable = document.get("stable_to")
    if stable is not None:
        stable = math.inf if stable == "unlimited" else _number(stable, "claims, stable_to")
    return Claims(
        conservative=document.get("conservative"),
        linear_exact=document.get("linear_exact"),
        time_order=order,
        generator=document.get("generator"),
        space={family: float(value) for family, value in space.items()},
        stable_to=stable,
    )


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        raise DocumentError(f"{where}: should be a number from 0 to 1e9, got {value!r:.60}")
    return float(value)


def _read_line(document: Mapping[str, object], key: str, *, least: int, most: int) -> str:
    text = _require(document, key, str, "the scheme")
    if not text.isprintable() or not least <= len(text) <= most:
        raise DocumentError(f"field {key!r} should be one line of {least} to {most} printable characters")
    return str(text)


def _require(mapping: Any, key: str, kind: type, where: str) -> Any:
    if not isinstance(mapping, dict) or not isinstance(mapping.get(key), kind):
        wanted = {"list": "a list", "dict": "an object", "str": "a text"}[kind.__name__]
        raise DocumentError(f"{where}: field {key!r} should be {wanted}")
    return mapping[key]


def _check_fields(mapping: Any, where: str, known: set[str]) -> None:
    if not isinstance(mapping, dict):
        raise DocumentError(f"{where} should be an object, got {mapping!r:.60}")
    if stray := sorted(set(mapping) - known):
        raise DocumentError(f"{where}: unknown field {stray[0]!r:.60}; known: {', '.join(sorted(known))}")


def find(
    scheme: str | os.PathLike[str] | Scheme,
    equation: str | os.PathLike[str] | Equation | None = None,
    *,
    dimension: int = 2,
) -> Scheme:
    """The scheme itself, a built-in one by name, or one read from a `scheme.json` or from a run's folder.

    A name is that of a built-in scheme, of a discretisation in space (`corrected`: with forward Euler), of a time
    integrator (`rk4`: with the equation's two-point flux), or both with a hyphen (`corrected-implicit`). `equation` is
    the equation that the scheme should solve: a name, a TOML file or an Equation; by default the one that the name is
    for (heat, or advection for schemes of transport). `dimension` is that of the mesh, for schemes by name whose
    formulas contain components of vectors. Raises SchemeError for an unknown name, for a scheme that does not serve the
    equation, and for a scheme with the formulas of another equation.
    """
    equation = None if equation is None else find_equation(equation)
    resolved_scheme = _find(scheme, equation, dimension)
    check_equation(f"scheme {resolved_scheme.name!r}", resolved_scheme.equation, equation)
    return resolved_scheme


def check_equation(method: str, own: Equation, wanted: str | os.PathLike[str] | Equation | None) -> None:
    """Raise SchemeError if an equation is wanted that is not the method's own; `method` begins the message."""
    if wanted is not None and own != (equation := find_equation(wanted)):
        raise SchemeError(
            f"{method} belongs to the equation {own.name!r}, not to {equation.name!r}; methods for every equation: "
            f"{', '.join(TABLEAUX)}"
        )


def _find(scheme: str | os.PathLike[str] | Scheme, equation: Equation | None, dimension: int) -> Scheme:
    if isinstance(scheme, Scheme):
        return scheme
    name = check_path(scheme, "scheme", "a scheme, the name of a built-in one or the path of a scheme.json")
    if (named := named_scheme(name, equation, dimension)) is not None:
        return named
    if (Path(name) / "scheme.json").is_file():
        return load(Path(name) / "scheme.json")
    if Path(name).suffix == ".json" or Path(name).is_file():
        return load(name)
    if Path(name).is_dir():
        kept = "candidate.json"
        hint = f"; the formula that was not accepted is in {kept}" if (Path(name) / kept).is_file() else ""
        raise SchemeError(f"{name}: holds no scheme.json; a run writes one when its formula is accepted{hint}")
    close = nearest_name(name)
    hint = f" Did you mean {close!r}?" if close else ""
    raise SchemeError(
        f"no scheme {name!r}: neither a built-in one ({', '.join(BUILT_IN)}), nor SPACE, TIME or SPACE-TIME "
        f"(`fluxforge schemes` lists them), nor a .json file.{hint}"
    )
