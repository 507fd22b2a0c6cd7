"""Parameters of an equation from the values of --set."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from fluxforge.errors import InputError
from fluxforge.mesh._build import dual
from fluxforge.mesh._mesh import Mesh
from fluxforge.pde._document import find
from fluxforge.pde._equation import Equation
from fluxforge.stepping._field import read_array

Given: TypeAlias = str | np.ndarray
REACTION = "reaction"


def read_settings(
    texts: Sequence[str], equation: str | None, mesh: Mesh
) -> tuple[str | Equation | None, dict[str, Given]]:
    """Read `NAME=VALUE`, `NAME=@file` and `reaction=FORMULA`, which replaces the reaction of the equation.

    Returns the equation, or None for that of the scheme, and the values of its parameters.

    Raises InputError, naming the parameter, for a text of another form, a name given twice, and a file that cannot be
    read or has neither one value per cell nor one per face.
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
        raise InputError(f"--set {REACTION} should be a formula of the unknown, together with --equation NAME")
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
