"""How a network is trained."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from fluxforge.recipe._numbers import Batch, Fraction, Steps, Weight


class Polish(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A second phase in float64 on a fixed set of graphs: `lbfgs`, or `gauss-newton` (Levenberg–Marquardt)."""

    method: Literal["lbfgs", "gauss-newton"] = "gauss-newton"
    steps: Annotated[int, Meta(ge=1, le=1_000_000)] = 100
    graphs: Batch = 512


class Training(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Optimiser, schedule, and when to give up.

    - `decay_from`: the part of the steps after which `cosine` and `linear` schedules begin to fall;
    - `clip`: largest norm of a gradient, 0 for none;
    - `chunk`: steps between two looks at the run: a line of metrics, perhaps a checkpoint;
    - `checkpoint_every`: steps between checkpoints, rounded up to whole chunks;
    - `patience`: stop when the loss has not fallen by 1 % in so many chunks, 0 for never;
    - `most_skips`: so many steps in a row with a loss or gradient that is not finite, or explodes, end a seed.
    """

    steps: Steps = 10_000
    batch: Batch = 64
    optimizer: Literal["adam", "adamw", "nadam", "radam", "lion", "rmsprop", "sgd"] = "adam"
    learning_rate: Annotated[float, Meta(gt=0, le=100)] = 1e-3
    schedule: Literal["constant", "cosine", "linear"] = "cosine"
    warm_up: Fraction = 0.0
    decay_from: Fraction = 0.0
    clip: Weight = 1.0
    precision: Literal["float32", "float64"] = "float32"
    chunk: Annotated[int, Meta(ge=1, le=1_000_000)] = 500
    checkpoint_every: Steps = 2_000
    patience: Annotated[int, Meta(ge=0, le=100_000_000)] = 0
    most_skips: Steps = 100
    polish: Polish | None = None
