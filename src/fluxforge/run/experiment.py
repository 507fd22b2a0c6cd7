"""What a discovery by experiments found beyond the formula, and formulas found without a network, as records."""

from fluxforge.run._record import Number, Record


class Measurements(Record, frozen=True, kw_only=True):
    """The experiments: how many, of which variables, by which method, and the error of their fluxes over their size."""

    samples: int
    held_out: int
    variables: tuple[str, ...]
    method: str
    tolerance: float
    error: Number
    worst: Number


class CheckRow(Record, frozen=True, kw_only=True):
    """A property that was tested on the network, by how much it is violated, and whether it was used."""

    name: str
    statement: str
    defect: Number
    limit: Number
    holds: bool
    used: bool


class TextbookRow(Record, frozen=True, kw_only=True):
    """The formula that the result is compared with."""

    formula: str
    same: bool
    difference: Number
    method: str


class FluxRecord(Record, frozen=True, kw_only=True):
    """What a discovery by experiments says beyond what every discovery does.

    `form` is the reduced form with g for the unknown function, `g` its formula; errors are relative to the fluxes.
    `processor` is what the run's seconds were measured on, `threads` how many of its cores numerical libraries used.
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
    """A formula found without a network, and its error on held-out data; null where none was found.

    Experiments give a `formula` of the flux. Other recipes give `messages` and an `update`, and in `note` the reason
    where there is none.
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
