"""How formulas are looked for."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from fluxforge.recipe._numbers import Positive


class Search(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """From a network to a formula.

    - `route`: `modules` looks for a formula of every MLP by symbolic regression; `stencil` reads the network's own
      stencil, which no choice of messages can change, as powers of the geometry, and fits what repeats that flux;
    - `samples`: points at which an MLP is evaluated, over the domain it was trained on;
    - `restarts`, `evaluations`: searches of one MLP, and formulas that each of them creates and fits; the same seed
      gives the same formulas however busy the machine is;
    - `seconds`: a hard limit for one MLP's search, none unless given; a search that it ends is reported as such;
    - `threshold`: normalised error above which a formula is not believed;
    - `explain`: the share of the network's step that a recovered formula explains, at every Δt tried;
    - `units`: candidates whose sums mix units are dropped.
    """

    route: Literal["modules", "stencil"] = "modules"
    engine: Literal["operon", "pysr"] = "operon"
    operators: Annotated[
        tuple[Literal["add", "sub", "mul", "div", "square", "sqrt", "exp", "log", "sin", "cos", "abs"], ...],
        Meta(min_length=1),
    ] = ("add", "sub", "mul", "div")
    samples: Annotated[int, Meta(ge=50, le=1_000_000)] = 2_000
    restarts: Annotated[int, Meta(ge=1, le=1000)] = 3
    evaluations: Annotated[int, Meta(ge=1, le=100_000_000)] = 12_000
    seconds: Annotated[float, Meta(gt=0, le=604_800)] | None = None
    most_complex: Annotated[int, Meta(ge=1, le=200)] = 25
    threshold: Positive = 0.1
    explain: Annotated[float, Meta(ge=0.5, le=1.0)] = 0.97
    units: bool = False
