"""The result of a finished run as records, and their conversion to and from JSON documents.

The document of a run is what `fluxforge discover --json` prints and the run folder stores. A field with its default,
None, or UNSET where None is a valid value, is absent from it: the run has no formula, or was made by an older version.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from fluxforge._files import to_json_values
from fluxforge.errors import DocumentError
from fluxforge.run._record import Document, Number, Numbers, Record


class FrontRow(Record, frozen=True, kw_only=True):
    """A candidate formula of a search, with its complexity and its error on the network."""

    complexity: int
    error: Number
    formula: str


class FrontTable(Record, frozen=True, kw_only=True):
    """The candidates for one MLP or coefficient; `chosen` is the index of the one that is part of the formula."""

    kind: str
    chosen: int | UnsetType | None = UNSET
    ended_by_clock: bool | UnsetType = UNSET
    rows: tuple[FrontRow, ...]


class Loss(Record, frozen=True, kw_only=True):
    """Mean losses of the network, of the formula with fitted constants, and of the formula with rounded fractions."""

    network: Number | UnsetType = UNSET
    formula: Number | UnsetType = UNSET
    rational: Number | UnsetType = UNSET


class Constants(Record, frozen=True, kw_only=True):
    """Fitted constants and their uncertainties."""

    values: Numbers
    uncertainty: Numbers


class Explained(Record, frozen=True, kw_only=True):
    """The share of the network's step that the formula explains: the least over Δt, and by Δt."""

    least: Number
    by_step: Numbers | None = None


class StepRow(Record, frozen=True, kw_only=True):
    """Constants at one Δt: those of least loss with uncertainty `error`, and the network's own if measured there."""

    step: float
    constants: Numbers
    error: Numbers | None = None
    loss: Number
    network: Numbers | None = None
    network_uncertainty: Numbers | None = None
    explained_by_least_loss: Number | UnsetType = UNSET


class Law(Record, frozen=True, kw_only=True):
    """A power law fitted to a stencil: factor and exponents; `whole` says whether exponents are near whole numbers."""

    factor: Number
    exponents: Numbers
    scatter: Number
    wrong_signs: Number
    whole: bool | None = None


class Laws(Record, frozen=True, kw_only=True):
    """The power laws of the stencil over one hop (`near`) and over two (`far`)."""

    near: Law
    far: Law


class StencilCheck(Record, frozen=True, kw_only=True):
    """The power laws of the stencils of network and formula, and the mean relative difference of the stencils.

    Empty if one of them is no power law.
    """

    network: Law | None = None
    formula: Law | None = None
    difference: Number | UnsetType = UNSET
    agree: bool | None = None


class StepErrors(Record, frozen=True, kw_only=True):
    """Errors of one step, mean square and worst cell, and of a rollout, mean square."""

    one_step_mse: Number
    one_step_worst: Number
    rollout_mse: Number


class Evaluation(Record, frozen=True, kw_only=True):
    """Errors of network and formula on meshes that training has not seen; only `meshes` if that is 0."""

    meshes: int
    cells: int | None = None
    rollout: int | None = None
    network: StepErrors | None = None
    formula: StepErrors | None = None


class Evidence(Record, frozen=True, kw_only=True):
    """What the search for a formula records besides the formula; which fields are set depends on the route."""

    fronts: Mapping[str, FrontTable] | None = None
    combinations_tried: int | None = None
    against_step: tuple[StepRow, ...] | None = None
    laws: Laws | None = None
    order: int | None = None


class Measurements(Record, frozen=True, kw_only=True):
    """The experiments: number, variables, method, and RMS and worst error of the fluxes relative to their size."""

    samples: int
    held_out: int
    variables: tuple[str, ...]
    method: str
    tolerance: float
    error: Number
    worst: Number


class CheckRow(Record, frozen=True, kw_only=True):
    """A property that was tested on the network: its violation and the limit of it, and whether the form uses it."""

    name: str
    statement: str
    defect: Number
    limit: Number
    holds: bool
    used: bool


class TextbookRow(Record, frozen=True, kw_only=True):
    """The textbook's flux, with which the formula is compared after the verdict."""

    formula: str
    same: bool
    difference: Number
    method: str


class FluxRecord(Record, frozen=True, kw_only=True):
    """The part of a record that only a discovery by experiments has.

    `form` is the reduced form with g for the unknown function, `g` its formula; errors are relative to the fluxes.
    `processor` and `threads`, the number of threads of numerical libraries, belong to the seconds of the run.
    """

    data: Measurements
    network_error: Number
    reduced_error: Number
    checks: tuple[CheckRow, ...]
    form: str
    g: str | None = None
    flux: str | None = None
    guarded: bool = False
    error: Number = None
    worst: Number = None
    share: Number = None
    textbook: TextbookRow | None = None
    processor: str = ""
    threads: int = 0


class AblationResult(Record, frozen=True, kw_only=True):
    """A formula found without a network, and its error on held-out data; None if none was found.

    For experiments it is the `formula` of the flux; for other recipes `messages` and an `update`, or in `note` the
    reason why there are none.
    """

    method: str
    formula: str | None = None
    messages: dict[str, str] | None = None
    update: str | None = None
    error: Number
    seconds: float
    note: str | None = None


class AblationResults(Record, frozen=True, kw_only=True):
    """Formulas found without a network, or the reason why none were searched."""

    reason: str
    seconds: float
    found: tuple[AblationResult, ...]


class Discovery(Record, frozen=True, kw_only=True):
    """The result of a recipe that searches a formula. Fields are in the order of the document."""

    recipe: str
    seed: int
    equation: str | None = None
    parameters: dict[str, Any] | None = None  # a number, a vector or a tensor each
    diffusivity: float | None = None
    member: int | None = None
    update: str | None = None
    skipped: tuple[int, ...] | None = None
    environment: dict[str, str] | None = None
    seconds: Numbers
    verdict: str | None = None
    recovered: bool
    reasons: tuple[str, ...]
    ended_by_clock: tuple[str, ...] | None = None
    fronts: Mapping[str, FrontTable] | None = None
    constants_fitted: Constants | None = None
    messages: dict[str, str] | None = None
    outputs: dict[str, str] | None = None
    constants: Numbers | None = None
    constants_uncertainty: Numbers | None = None
    rational: dict[str, str] | None = None
    loss: Loss | None = None
    combinations_tried: int | None = None
    against_step: tuple[StepRow, ...] | None = None
    laws: Laws | None = None
    order: int | None = None
    explained: Explained | None = None
    limit: Numbers | None = None
    limit_uncertainty: Numbers | None = None
    readings: tuple[StepRow, ...] | None = None
    stencil: StencilCheck | None = None
    evaluation: Evaluation | None = None
    expected: str | None = None
    as_expected: bool | None = None
    scheme: str | UnsetType | None = UNSET
    findings: tuple[str, ...] | None = None
    order_in_time: Number | UnsetType = UNSET
    certificate: Document | None = None  # the document of `fluxforge verify --json`
    ablations: AblationResults | None = None
    experiment: FluxRecord | None = None  # of a recipe with data of kind `experiment`


class Quartiles(Record, frozen=True, kw_only=True):
    """Quartiles of a measured number over the seeds of an arm."""

    q1: Number
    median: Number
    q3: Number


class ArmSummary(Record, frozen=True, kw_only=True):
    """Quartiles of each measured number of an arm, and the number of seeds that are stuck."""

    train_mae: Quartiles
    ood_mse: Quartiles
    rollout_mse: Quartiles
    nonzeros: Quartiles
    stuck: int


class Arm(Record, frozen=True, kw_only=True):
    """The numbers measured of one arm, one value per seed; `last_layer` has the weights of all seeds, concatenated."""

    train_mae: tuple[Number, ...]
    ood_mse: tuple[Number, ...]
    ood_worst: tuple[Number, ...]
    rollout_mse: tuple[Number, ...]
    nonzeros: tuple[int, ...]
    failed: tuple[bool, ...]
    skipped_steps: tuple[int, ...]
    last_layer: tuple[Number, ...]


# One-step errors per seed, by the value of the varied quantity and by arm.
ErrorsByArm: TypeAlias = Mapping[str, Mapping[str, tuple[Number, ...]]]


class Extrapolated(Record, frozen=True, kw_only=True):
    """One-step errors for other time steps, temperature ranges and boundary conditions than those trained with."""

    fourier: ErrorsByArm
    temperature_range: ErrorsByArm
    boundary: ErrorsByArm
    stability_limit_over_fourier: tuple[Number, Number]


class Measured(Record, frozen=True, kw_only=True):
    """The numbers measured of the networks of a recipe with arms; each network has `parameters` parameters."""

    arms: dict[str, Arm]
    parameters: int
    extrapolation: Extrapolated


class Generalisation(Record, frozen=True, kw_only=True):
    """The result of a recipe with arms."""

    recipe: str
    seeds: int
    measured: Measured
    seconds: Numbers
    summary: dict[str, ArmSummary]


class Reduced(Record, frozen=True, kw_only=True):
    """Networks of an arm in canonical form: one value per seed, and how many reach the lemma's count of non-zeros."""

    lemma_nonzeros: int
    reached: int
    of: int
    nonzeros: tuple[int, ...]
    exact: tuple[bool, ...]
    training_defect: tuple[Number, ...]
    ood_worst: tuple[Number, ...]
    units_after_merging: tuple[tuple[int, ...], ...]
    merging_defect: tuple[Number, ...]


_Kind = TypeVar("_Kind", bound=msgspec.Struct)


def to_document(record: msgspec.Struct) -> dict[str, Any]:
    """A record as plain JSON values, with lists for tuples; numbers that are not finite are null."""
    # `enc_hook` converts NumPy scalars.
    plain: dict[str, Any] = to_json_values(msgspec.to_builtins(record, enc_hook=lambda value: value.item()))
    # In the document of a run with arms, each arm is a field under its name, beside the fields of the run.
    if isinstance(record, Generalisation):
        first = {name: plain[name] for name in ("recipe", "seeds")}
        return first | to_document(record.measured) | {name: plain[name] for name in ("seconds", "summary")}
    return {**plain.pop("arms"), **plain} if isinstance(record, Measured) else plain


def list_reasons(conditions: Mapping[str, bool]) -> tuple[str, ...]:
    """The reasons of a verdict: the text of each condition, preceded by `yes: ` or `NO: `."""
    return tuple(f"{'yes' if holds else 'NO'}: {text}" for text, holds in conditions.items())


def from_document(document: Document, kind: type[_Kind], where: Path) -> _Kind:
    """The record of a document that `to_document` wrote; raises DocumentError naming the file and the wrong field."""
    whole = dict(document)
    if kind is Generalisation:
        whole = _gather(whole, ("recipe", "seeds", "seconds", "summary"), "measured")
        whole["measured"] = _gather(whole["measured"], ("parameters", "extrapolation"), "arms")
    if kind is Measured:
        whole = _gather(whole, ("parameters", "extrapolation"), "arms")
    try:
        return msgspec.convert(whole, kind)
    except msgspec.ValidationError as error:
        raise DocumentError(f"{where}: is not the document of a run ({error})") from error


def _gather(document: Document, outer: tuple[str, ...], name: str) -> dict[str, Any]:
    """The fields `outer` of a document, and all its other fields together under one name."""
    rest = {field: value for field, value in document.items() if field not in outer}
    return {field: value for field, value in document.items() if field in outer} | {name: rest}
