"""A problem: the arguments of a run as one record, and the files from which it can be run again or continued."""

import math
import os
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from fluxforge._arguments import check_path
from fluxforge._files import atomic_path, read_document, write_document
from fluxforge._types import Precision
from fluxforge.errors import DocumentError, EquationError, ExpressionError, InputError, SchemeError
from fluxforge.mesh._boundary import Condition, Dirichlet, Inflow, Neumann, Periodic, Robin, Value
from fluxforge.mesh._conditions import Conditions, to_conditions
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._parameter_values import Curl
from fluxforge.mesh._parameters import Settings
from fluxforge.scheme._document import from_document, to_document
from fluxforge.scheme._scheme import Scheme
from fluxforge.stepping._solvers import Solver
from fluxforge.stepping._stepper import AbstractMethod


@dataclass(frozen=True, eq=False)
class Problem:
    """The arguments of `simulate`, read but not yet evaluated on the mesh.

    If the run continues another, it begins with step `first_step` of those that are counted from `start_time`.
    """

    scheme: Scheme | AbstractMethod
    mesh: Mesh
    parameters: Settings
    initial: Value | np.ndarray = 0.0
    source: Value | np.ndarray = 0.0
    boundary: Conditions = None
    dt: float | Literal["auto"] | None = None
    dt_fraction: float = 0.5
    steps: int | None = None
    end_time: float | None = None
    start_time: float = 0.0
    save_every: float | None = None
    force: bool = False
    dtype: Precision = "float64"
    solver: Solver = "auto"
    first_step: int = 0

    @property
    def begin(self) -> float:
        """The time of the initial field."""
        return self.start_time if not self.first_step else self.start_time + self.first_step * float(self.dt or 0.0)


KIND, VERSION = "problem", 1
FILE, ARRAYS = "problem.json", "problem.npz"
WALLS: Mapping[str, type] = {
    "dirichlet": Dirichlet,
    "neumann": Neumann,
    "robin": Robin,
    "periodic": Periodic,
    "inflow": Inflow,
}


_STRUCTURED = ("scheme", "mesh", "parameters", "initial", "source", "boundary")
# The other fields are numbers, flags and words, which are written to the file as they are.
_PLAIN_FIELDS = tuple(each.name for each in fields(Problem) if each.name not in _STRUCTURED)


def write_problem(
    problem: Problem, folder: Path, *, dt: float, step: int, time: float, final: np.ndarray
) -> list[Path]:
    """Write the problem, and the last saved field with its time and number of steps; nothing for a network.

    Of a Python function only the name can be written, so that such a run cannot be repeated from its folder.
    """
    if not isinstance(problem.scheme, Scheme):
        return []
    arrays: dict[str, np.ndarray] = {"points": problem.mesh.points, "cells": problem.mesh.cells, "final": final}
    mesh: dict[str, Any] = {"origin": problem.mesh.origin, "notes": list(problem.mesh.notes)}
    for part in ("boundary", "regions"):
        named: Mapping[str, np.ndarray] = getattr(problem.mesh, part)
        mesh[part] = list(named)
        arrays |= {f"{part}{k}": np.asarray(value) for k, value in enumerate(named.values())}
    content = {
        "scheme": to_document(problem.scheme),
        "mesh": mesh,
        "parameters": {name: _spec(value, f"parameter {name}", arrays) for name, value in problem.parameters.items()},
        "initial": _spec(problem.initial, "initial", arrays),
        "source": _spec(problem.source, "source", arrays),
        "boundary": _walls(problem.boundary, arrays),
        **{name: getattr(problem, name) for name in _PLAIN_FIELDS},
        "last": {"dt": dt, "step": step, "time": time},
    }
    with atomic_path(folder / ARRAYS) as temporary, temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    write_document(folder / FILE, KIND, VERSION, content)
    return [folder / FILE, folder / ARRAYS]


def _spec(value: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """A value as JSON: a number, a formula, a list of these, or the name of an array or of a function."""
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return {"array": name}
    if isinstance(value, str) or value is None:
        return value
    if isinstance(value, tuple | list):
        return [_spec(part, f"{name} {k}", arrays) for k, part in enumerate(value)]
    if isinstance(value, Curl):
        return {"curl": _spec(value.stream, name, arrays)}
    if isinstance(value, Mapping):
        return {"regions": {region: _spec(part, f"{name} {region}", arrays) for region, part in value.items()}}
    if callable(value):
        return {"function": getattr(value, "__name__", type(value).__name__)}
    return float(value)


def _walls(boundary: Conditions, arrays: dict[str, np.ndarray]) -> Any:
    conditions = to_conditions(boundary)
    if isinstance(conditions, dict):
        return {"tags": {tag: _wall(wall, arrays) for tag, wall in conditions.items()}}
    return None if conditions is None else _wall(conditions, arrays)


def _wall(wall: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    kind = next(name for name, each in WALLS.items() if isinstance(wall, each))
    return {"kind": kind, **{name: _spec(value, name, arrays) for name, value in asdict(wall).items()}}


def read_problem(folder: str | os.PathLike[str]) -> Problem:
    """The problem of a run's folder; raises InputError for a folder without a problem, or with a damaged one."""
    return _Reader(folder).problem()


def read_last(folder: str | os.PathLike[str]) -> Problem:
    """The problem that continues the run of a folder from its last field and time; the caller sets its end."""
    return _Reader(folder).continued_problem()


def read_final(folder: str | os.PathLike[str]) -> np.ndarray:
    """The last saved field of a run's folder, in the order of the mesh's cells."""
    return _Reader(folder).array("final")


class _Reader:
    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(check_path(folder, "folder", "the folder of a run"))
        self.path = self.folder / FILE
        if not self.path.is_file():
            if not self.folder.is_dir():
                raise InputError(f"{self.folder}: no such folder")
            several = (self.folder / "compare.json").is_file()
            which = "`fluxforge simulate -o` writes one for a scheme, but not for a trained network or a steady state"
            hint = "give the folder of one of its schemes" if several else which
            raise InputError(f"{self.folder}: holds no {FILE}; {hint}")
        self.document = read_document(self.path, KIND, VERSION)
        try:
            with np.load(self.folder / ARRAYS, allow_pickle=False) as file:
                self.arrays = {name: file[name] for name in file.files}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile, KeyError) as error:
            raise InputError(f"{self.folder / ARRAYS}: cannot be read ({error})") from error

    def problem(self) -> Problem:
        try:
            return self._problem()
        except (SchemeError, ExpressionError, EquationError, DocumentError) as error:
            raise DocumentError(f"{self.path}: {error}") from error
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, InputError):
                raise
            raise DocumentError(f"{self.path}: is incomplete ({type(error).__name__}: {error})") from error

    def _problem(self) -> Problem:
        document = self.document
        plain = {name: document[name] for name in _PLAIN_FIELDS}
        if plain["dtype"] not in get_args(Precision) or plain["solver"] not in get_args(Solver):
            raise DocumentError("field 'dtype' or 'solver' has an unknown name")
        return Problem(
            scheme=from_document({**document["scheme"], "format_version": 2}),
            mesh=self._mesh(document["mesh"]),
            parameters={
                str(name): self._value(spec, f"parameter {name}") for name, spec in document["parameters"].items()
            },
            initial=self._value(document["initial"], "initial"),
            source=self._value(document["source"], "source"),
            boundary=self._walls(document["boundary"]),
            **plain,
        )

    def continued_problem(self) -> Problem:
        problem, last = self.problem(), self.document.get("last")
        if not isinstance(last, dict) or not all(isinstance(last.get(k), int | float) for k in ("dt", "step", "time")):
            raise DocumentError(f"{self.path}: field 'last' should hold dt, step and time")
        begun = {"initial": self.array("final"), "dt": float(last["dt"]), "steps": None, "end_time": None}
        continued = replace(problem, **begun, first_step=int(last["step"]))  # type: ignore[arg-type]
        if math.isclose(continued.begin, float(last["time"]), rel_tol=1e-12, abs_tol=1e-300):
            return continued
        # The end time was no whole number of steps from the beginning: steps are counted from there.
        return replace(continued, start_time=float(last["time"]), first_step=0)

    def array(self, name: str) -> np.ndarray:
        if name not in self.arrays:
            raise DocumentError(f"{self.folder / ARRAYS}: has no array {name!r:.60}")
        return self.arrays[name]

    def _mesh(self, document: Mapping[str, Any]) -> Mesh:
        named = {
            part: {str(name): self.array(f"{part}{k}") for k, name in enumerate(document[part])}
            for part in ("boundary", "regions")
        }
        return Mesh(
            self.array("points"),
            self.array("cells"),
            notes=tuple(map(str, document["notes"])),
            origin=str(document["origin"]),
            **named,
        )

    def _value(self, spec: Any, name: str) -> Any:
        if isinstance(spec, list):
            return tuple(self._value(part, name) for part in spec)
        if isinstance(spec, dict) and "function" in spec:
            raise InputError(
                f"{self.path}: {name} was the Python function {spec['function']!r:.60}, which cannot be stored "
                "in a file"
            )
        if isinstance(spec, dict) and "curl" in spec:
            return Curl(self._value(spec["curl"], name))
        if isinstance(spec, dict) and "regions" in spec:
            return {str(region): self._value(part, name) for region, part in spec["regions"].items()}
        if isinstance(spec, dict):
            return self.array(str(spec["array"]))
        if isinstance(spec, bool) or not isinstance(spec, str | int | float):
            raise DocumentError(f"field {name!r} should be a number, a formula or an array")
        return spec

    def _walls(self, document: Any) -> Any:
        if document is None:
            return None
        if "tags" in document:
            return {str(tag): self._wall(wall) for tag, wall in document["tags"].items()}
        return self._wall(document)

    def _wall(self, document: Mapping[str, Any]) -> Condition:
        if document["kind"] not in WALLS:
            raise DocumentError(f"a wall should be one of {', '.join(WALLS)}, got {document['kind']!r:.60}")
        values = {name: self._value(spec, f"boundary {name}") for name, spec in document.items() if name != "kind"}
        wall: Condition = WALLS[document["kind"]](**values)
        return wall
