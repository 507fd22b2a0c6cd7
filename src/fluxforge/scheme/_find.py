"""A scheme by its built-in name or by its file."""

import difflib
import os
from pathlib import Path

from fluxforge._arguments import check_path
from fluxforge.errors import SchemeError
from fluxforge.pde import HEAT, Equation
from fluxforge.pde import find as find_equation
from fluxforge.scheme._document import load
from fluxforge.scheme._integrate import integrate
from fluxforge.scheme._scheme import Scheme
from fluxforge.scheme._tableau import TABLEAUX
from fluxforge.scheme.reference import BUILT_IN


def find(scheme: str | os.PathLike[str] | Scheme, equation: str | os.PathLike[str] | Equation | None = None) -> Scheme:
    """The scheme itself, a built-in one by name, or one read from a `scheme.json` or from a run's folder.

    A built-in name means one method: `equation` is the equation it serves, heat unless given: a name, a TOML file or an
    Equation. Raises SchemeError for a scheme whose formulas are those of another equation.
    """
    equation = None if equation is None else find_equation(equation)
    found = _find(scheme, equation)
    if equation is not None and found.equation != equation:
        methods = ", ".join(TABLEAUX)
        raise SchemeError(
            f"scheme {found.name!r} is one of the equation {found.equation.name!r}, not of {equation.name!r}; "
            f"methods for every equation: {methods}"
        )
    return found


def _find(scheme: str | os.PathLike[str] | Scheme, equation: Equation | None) -> Scheme:
    if isinstance(scheme, Scheme):
        return scheme
    name = check_path(scheme, "scheme", "a scheme, the name of a built-in one or the path of a scheme.json")
    if name in TABLEAUX and equation is not None and equation != HEAT:
        return integrate(TABLEAUX[name], equation)
    if name in BUILT_IN:
        return BUILT_IN[name]
    if (Path(name) / "scheme.json").is_file():
        return load(Path(name) / "scheme.json")
    if Path(name).suffix == ".json" or Path(name).is_file():
        return load(name)
    if Path(name).is_dir():
        raise SchemeError(f"{name}: holds no scheme.json; a run leaves one once its formula is believed")
    close = difflib.get_close_matches(name, BUILT_IN, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise SchemeError(f"no scheme {name!r}: neither a built-in one ({', '.join(BUILT_IN)}) nor a .json file.{hint}")
