"""Values of parameters at points, at one time: numbers, formulas, functions, arrays, and values per region."""

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float, Int

from fluxforge._arguments import describe_value
from fluxforge.errors import ExpressionError, InputError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._parse import field, parse
from fluxforge.expression._symbols import COORDINATES, TIME, symbol
from fluxforge.expression._tokens import split_components, split_outside_brackets
from fluxforge.mesh._boundary import REST, Value, depends_on_time, evaluate_at
from fluxforge.mesh._dual import DualGraph


@dataclass(frozen=True)
class Curl:
    """A velocity in the plane, given by its stream function ψ: a = (∂ψ/∂y, −∂ψ/∂x).

    What passes through a face is the difference of ψ between its two ends, so that on every mesh as much leaves each
    cell as enters it. `stream` is a formula of x and y, or a function of them.
    """

    stream: Value


@dataclass(frozen=True)
class AtTime:
    """A value that depends on time, fixed at one time; it may be given wherever a parameter's value is."""

    value: Any
    time: float


Setting: TypeAlias = Value | np.ndarray | Sequence[Any] | Mapping[str, Any] | Curl | AtTime
"""A number, a formula in the coordinates and t, a function of them, an array; one of these per component of a vector or
per entry of a tensor; a mapping from regions of the mesh to any of these; the curl of a stream function."""


@dataclass(frozen=True)
class Sites:
    """The points at which a parameter is evaluated: centroids of cells, or centres of faces.

    `time` is None where values must not depend on time; `region` and `regions` as in a graph, None and empty for faces.
    """

    points: Float[np.ndarray, "places dimension"]
    kind: str
    time: float | None = None
    region: Int[np.ndarray, " places"] | None = None
    regions: tuple[str, ...] = ()

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return self.points.shape[1]

    def describe(self, k: int) -> str:
        """How messages name a place: `cell 7 at (0.25, 0.5)`."""
        return f"{self.kind} {k} at ({', '.join(f'{coordinate:g}' for coordinate in self.points[k])})"


def read_number(setting: Setting, what: str, time: float | None) -> float:
    """One finite number, from a number or a formula without variables except t; raises InputError for anything else."""
    try:
        number = np.nan if isinstance(setting, bool) else float(setting)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = _number_of_text(setting, what, time) if isinstance(setting, str) else np.nan
    if not np.isfinite(number):
        raise InputError(f"{what} should be a finite number, got {describe_value(setting)}")
    return number


def _number_of_text(text: str, what: str, time: float | None) -> float:
    try:
        expr = parse(text, (TIME,))
    except ExpressionError:
        return np.nan
    if expr.free_symbols and time is None:
        raise _time_error(what)
    return float(evaluate(expr, {symbol(TIME): float(time or 0.0)}, np))


def _time_error(what: str) -> InputError:
    return InputError(f"{what} changes in time, which is not possible here: give a value without {TIME}")


Evaluate: TypeAlias = Callable[[Any, Sites, str], np.ndarray]


def scalars_at(setting: Setting, sites: Sites, what: str) -> Float[np.ndarray, " places"]:
    """One finite number per place; errors (InputError, or ExpressionError for a formula) begin with `what`."""
    if (named := _regions_of(setting, what)) is not None:
        return _evaluate_by_region(named, sites, what, scalars_at)
    if not isinstance(setting, np.ndarray) or not setting.ndim:
        return _evaluate_at_time(setting, sites, what)
    values = np.asarray(setting)
    if values.dtype.kind not in "fiu" or values.shape != (len(sites.points),):
        wanted = f"{len(sites.points)} finite numbers, one per {sites.kind}"
        raise InputError(f"{what} should be {wanted}, got an array of {values.dtype} of shape {values.shape}")
    return _check_finite(values.astype(float), sites, what)


def _check_finite(values: np.ndarray, sites: Sites, what: str) -> np.ndarray:
    bad = np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))
    if bad.size:
        raise InputError(f"{what} is not finite in {sites.describe(int(bad[0]))}")
    return values


def _evaluate_at_time(setting: Any, sites: Sites, what: str) -> Float[np.ndarray, " places"]:
    if not parameter_depends_on_time(setting, sites.dimension):
        return evaluate_at(setting, sites.points, what)
    if sites.time is None:
        raise _time_error(what)
    function = _timed_field(setting, sites.dimension) if isinstance(setting, str) else setting
    return evaluate_at(lambda *x: function(*x, sites.time), sites.points, what)


# Cached: a run evaluates the same formulas at every stage of every step, and parsing takes longer than evaluating.
@functools.lru_cache(maxsize=64)
def _timed_field(text: str, dimension: int) -> Callable[..., np.ndarray]:
    return field(text, (*COORDINATES[:dimension], TIME))


_TIME = re.compile(rf"(?<![A-Za-z0-9_]){TIME}(?![A-Za-z0-9_])")


def parameter_depends_on_time(setting: Any, dimension: int) -> bool:
    """Whether a parameter, or a part of it, is a formula that contains t or a function that takes the time."""
    if isinstance(setting, Curl):
        return parameter_depends_on_time(setting.stream, dimension)
    if isinstance(setting, str):
        # Text may be a vector or curl(…), which the parser of formulas does not take, so t is searched for as a word.
        named = _regions_of(setting, "")
        return bool(_TIME.search(setting)) if named is None else parameter_depends_on_time(named, dimension)
    if isinstance(setting, Mapping | Sequence):
        parts = setting.values() if isinstance(setting, Mapping) else setting
        return any(parameter_depends_on_time(part, dimension) for part in parts)
    return depends_on_time(setting, dimension)


def _regions_of(setting: Any, what: str) -> Mapping[str, Any] | None:
    """Values by region, from a mapping or from `steel: 50, air: 0.02`; None for any other value."""
    if isinstance(setting, Mapping):
        return setting
    if not isinstance(setting, str) or ":" not in setting:
        return None
    named: dict[str, str] = {}
    for part in split_outside_brackets(setting, ","):
        name, colon, value = (word.strip() for word in part.partition(":"))
        if not (colon and name and value) or name in named:
            raise InputError(f"{what} should be REGION: VALUE, REGION: VALUE, …, each region once; got {setting!r:.60}")
        named[name] = value
    return named


def _evaluate_by_region(named: Mapping[str, Any], sites: Sites, what: str, evaluate: Evaluate) -> np.ndarray:
    """The value at every place, by its region; raises InputError for an unknown region and for one without a value."""
    if sites.kind != "cell":
        raise InputError(f"{what} has values on faces, and regions consist of cells: give a formula or an array")
    known = ", ".join(sites.regions) or "none"
    for name in named:
        if name not in sites.regions and name != REST:
            raise InputError(f"{what}: the mesh has no region {name!r:.60}; it has: {known}")
    region = np.full(len(sites.points), -1) if sites.region is None else sites.region
    field: np.ndarray | None = None
    for number in np.unique(region).tolist():
        name = sites.regions[number] if number >= 0 else REST
        if name not in named and REST not in named:
            where = f"region {name!r} has" if number >= 0 else f"{(region < 0).sum()} cells are in no region and have"
            raise InputError(f"{what}: {where} no value; give one, or one for '{REST}'")
        here = np.flatnonzero(region == number)
        part = replace(sites, points=sites.points[here], region=None, regions=())
        values = evaluate(named.get(name, named.get(REST)), part, f"{what} in region {name!r}")
        field = np.empty((len(region), *values.shape[1:])) if field is None else field
        field[here] = values
    assert field is not None
    return field


def vectors_at(setting: Setting, sites: Sites, what: str) -> Float[np.ndarray, "places dimension"]:
    """A vector per place, from an array, or from one number, formula or function per coordinate; else InputError."""
    count, d = sites.points.shape
    if isinstance(setting, np.ndarray) and setting.shape == (count, d) and setting.dtype.kind in "fiu":
        return _check_finite(setting.astype(float), sites, what)
    if isinstance(setting, np.ndarray) and setting.shape != (d,):
        wanted = f"{count} numbers a·n, or vectors of shape ({count}, {d}), one per {sites.kind}"
        raise InputError(f"{what} should be {wanted}; got an array of {setting.dtype} of shape {setting.shape}")
    parts = _components(setting, what)
    if not isinstance(parts, Sequence | np.ndarray) or isinstance(parts, str) or len(parts) != d:
        example = "(" + ", ".join(["1"] + ["0"] * (d - 1)) + ")"
        raise InputError(f"{what} should have {d} components, such as {example}; got {setting!r:.60}")
    columns = [_scalar(part, sites, f"{what}, component {i + 1},") for i, part in enumerate(parts)]
    return np.stack(columns, axis=1)


def _components(setting: Any, what: str) -> Any:
    if not isinstance(setting, str):
        return setting
    try:
        return split_components(setting)
    except ExpressionError as error:
        raise ExpressionError(f"{what}: {error}") from error


def _scalar(part: Any, sites: Sites, what: str) -> Float[np.ndarray, " places"]:
    return scalars_at(part.item() if isinstance(part, np.generic) else part, sites, what)


def tensors_at(setting: Setting, sites: Sites, what: str) -> Float[np.ndarray, "places dimension dimension"]:
    """A symmetric, positive definite tensor per place; raises InputError with the first place where it is not one."""
    if (named := _regions_of(setting, what)) is not None:
        return _evaluate_by_region(named, sites, what, tensors_at)
    count, d = sites.points.shape
    example = ", ".join("(" + ", ".join(str(2 * (i == j) + (i != j)) for j in range(d)) + ")" for i in range(d))
    wanted = f"{what} should be {d} rows of {d} numbers, such as ({example})"
    if isinstance(setting, np.ndarray) and setting.shape == (count, d, d) and setting.dtype.kind in "fiu":
        K = _check_finite(setting.astype(float), sites, what)
    else:
        rows = _components(setting, what)
        if not _is_square(rows, d):
            raise InputError(f"{wanted}, got {describe_value(setting)}")
        entries = [_scalar(rows[i][j], sites, f"{what}, entry {i + 1}, {j + 1},") for i in range(d) for j in range(d)]
        K = np.stack(entries, axis=1).reshape(count, d, d)
    _check_definite(K, sites, wanted)
    return K


def constant_tensor(setting: Setting, dimension: int, what: str, time: float | None) -> np.ndarray:
    """One symmetric, positive definite tensor for the whole domain; InputError for anything else."""
    rows = _components(setting, what)
    example = "such as ((2, 1), (1, 3))" if dimension == 2 else "such as ((2, 1, 0), (1, 3, 0), (0, 0, 1))"
    wanted = f"{what} should be {dimension} rows of {dimension} numbers, {example}"
    if not _is_square(rows, dimension):
        raise InputError(f"{wanted}, got {describe_value(setting)}")
    try:
        K = np.array([[read_number(entry, what, time) for entry in row] for row in rows])
    except InputError as error:
        raise InputError(f"{wanted}, got {describe_value(setting)}") from error
    if not np.allclose(K, K.T, rtol=1e-12, atol=0.0) or not (np.linalg.eigvalsh(K) > 0).all():
        raise InputError(f"{wanted}, symmetric and positive definite; got {describe_value(setting)}")
    return K


def _is_square(rows: Any, d: int) -> bool:
    if not isinstance(rows, Sequence | np.ndarray) or isinstance(rows, str) or len(rows) != d:
        return False
    return all(isinstance(row, Sequence | np.ndarray) and not isinstance(row, str) and len(row) == d for row in rows)


def _check_definite(K: np.ndarray, sites: Sites, wanted: str) -> None:
    size = np.abs(K).max(axis=(1, 2))
    symmetric = np.abs(K - K.transpose(0, 2, 1)).max(axis=(1, 2)) <= 1e-12 * size
    definite = np.linalg.eigvalsh(K)[:, 0] > 0
    if (bad := np.flatnonzero(~(symmetric & definite))).size:
        k = int(bad[0])
        raise InputError(f"{wanted}, symmetric and positive definite; it is {K[k].tolist()} in {sites.describe(k)}")


def cell_sites(graph: DualGraph, time: float | None = None) -> Sites:
    """The centroids of a graph's cells, with their regions."""
    return Sites(graph.x, "cell", time, graph.region, graph.regions)


def face_sites(graph: DualGraph, time: float | None) -> Sites:
    """The centres of a graph's faces."""
    return Sites(graph.centre, "face", time)
