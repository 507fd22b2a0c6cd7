"""The record of a recipe and its sections: network, loss, training, search and evaluation."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct

from fluxforge.recipe._data import Batch, Cells, Data, Fraction, Pairs, Positive, Seed, Signed, Steps, Weight

# Fields of a recipe by their dotted names, such as `training.steps`, with values as in TOML.
Changes: TypeAlias = Mapping[str, Any]
# A table of a recipe, as TOML or JSON holds it.
Table: TypeAlias = dict[str, Any]
Features: TypeAlias = Literal["simplified", "primitive", "dimensionless"]
Aggregate: TypeAlias = Literal["sum", "mean", "min", "max"]


class Network(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """L rounds of message passing with MLPs of m layers and width d.

    - `features`: `simplified` (T, Δt S, Δt/V z; α A/δ (T_N − T_P)) or `primitive` (T, S, Δt, V, z; T_N, T_P, A, δ), or
      `dimensionless` (T, Δt S, z; T_N − T_P, α Δt A/(δ V)), without lengths and times;
    - `hops`: 2 adds messages over two-hop paths; `ring` takes one per pair of distinct cells instead, as printed;
    - `hidden`: numbers a cell carries between layers;
    - `update`: `direct` predicts T', `residual` predicts f in T' = T + Δt/V f;
    - `gain`: weights start this many times as large as 1/√inputs; by default 1, and √3 for gated MLPs;
    - `invariants`: more inputs of messages over edges and paths, such as `d_n` = d·n and `d_t` = |d − (d·n) n|;
      `correction` is ½ (∇T_P + ∇T_N)·(n − d/(d·n)) of least-squares gradients, over edges;
    - `standardise`: every input that comes from the data is brought to mean 0 and spread 1, measured once;
    - `form`: `free`, the paper's networks, of which all of the above is said; or `flux`, a time integrator of `layers`
      stages in which MLPs of `depth` layers and `width` units give the faces' coefficients of every stage but the
      first, from dimensionless numbers alone;
    - `integrator`: what a network in the form of a flux is before training: the `nested` Runge–Kutta method of order
      `layers`, or `rkl2`, Runge–Kutta–Legendre, for steps far beyond the Fourier step; `rkl2-nested` has the same
      polynomial in nested stages, whose coefficients can be learned further;
    - `order`: with 2, the coefficients of a network in the form of a flux go to 1 with Δt, so that its step is of
      second order in time whatever is learned; with 1 they are free;
    - `free_last`: an ablation of that form: coefficients before the whole flux of every stage, the last included, which
      change the equation itself.
    """

    features: Features = "primitive"
    layers: Annotated[int, Meta(ge=1, le=8)] = 1
    hops: Literal[1, 2] = 1
    two_hop: Literal["path", "ring"] = "path"
    mlp: Literal["relu", "gated"] = "gated"
    depth: Annotated[int, Meta(ge=1, le=16)] = 3
    width: Annotated[int, Meta(ge=1, le=4096)] = 64
    message_width: Annotated[int, Meta(ge=1, le=64)] = 1
    hidden: Annotated[int, Meta(ge=1, le=1024)] = 1
    aggregate: Aggregate = "sum"
    update: Literal["direct", "residual"] = "residual"
    gain: Annotated[float, Meta(gt=0, le=1000)] | None = None
    standardise: bool = False
    invariants: tuple[str, ...] = ()
    form: Literal["free", "flux"] = "free"
    integrator: Literal["nested", "rkl2", "rkl2-nested"] = "nested"
    order: Literal[1, 2] = 1
    free_last: bool = False


class Supervised(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Mean |T' − F(T)|, F(T) being the answer of the data; with norm `l2` the mean square.

    `per_step` divides by Δt; `relative` by the mean |F(T) − T| of each problem, so that all of them count alike.
    """

    weight: Weight = 1.0
    norm: Literal["l1", "l2"] = "l1"
    per_step: bool = False
    relative: bool = False


class Residual(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Mean |(T' − T)/Δt − θ (L T' + S) − (1 − θ)(L T + S)|, or the fourth-order `hermite` residual.

    `fourier_power` p divides each mesh's residual by Fo^p, which aims at the limit of small steps.
    """

    weight: Weight = 1.0
    kind: Literal["theta", "hermite"] = "theta"
    theta: Fraction = 0.5
    norm: Literal["l1", "l2"] = "l1"
    fourier_power: Annotated[float, Meta(ge=0, le=16)] = 0.0


class Sparsity(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """η ‖θ‖₁ over all weights and biases; η grows from 0 over the first `warm_up` part of the steps."""

    weight: Weight = 1e-3
    warm_up: Fraction = 0.0


class Loss(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Any sum of named terms, each logged by itself."""

    supervised: Supervised | None = None
    residual: Residual | None = None
    sparsity: Sparsity | None = None


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


class Search(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """From a network to a formula.

    - `route`: `modules` looks for a formula of every MLP by symbolic regression; `stencil` reads the network's own
      stencil, which no choice of messages can change, as powers of the geometry, and fits what repeats that flux;
      `coefficients` looks for formulas of what a network in the form of a flux has learned; `families` compares closed
      forms of few constants with a limiter, of which `evaluations` is the number of candidates tried for each, and
      `candidates` how many of them a generation has;
    - `samples`: points at which an MLP is evaluated, over the domain it was trained on;
    - `restarts`, `evaluations`: searches of one MLP, and formulas that each of them creates and fits; the same seed
      gives the same formulas however busy the machine is;
    - `seconds`: a hard limit for one MLP's search, none unless given; a search that it ends is reported as such;
    - `threshold`: normalised error above which a formula is not believed;
    - `explain`: the share of the network's step that a recovered formula explains, at every Δt tried;
    - `units`: candidates whose sums mix units are dropped.
    """

    route: Literal["modules", "stencil", "coefficients", "families"] = "modules"
    engine: Literal["operon", "pysr"] = "operon"
    operators: Annotated[
        tuple[
            Literal["add", "sub", "mul", "div", "square", "sqrt", "exp", "log", "sin", "cos", "abs", "min", "max"],
            ...,
        ],
        Meta(min_length=1),
    ] = ("add", "sub", "mul", "div")
    samples: Annotated[int, Meta(ge=50, le=1_000_000)] = 2_000
    restarts: Annotated[int, Meta(ge=1, le=1000)] = 3
    evaluations: Annotated[int, Meta(ge=1, le=100_000_000)] = 12_000
    candidates: Annotated[int, Meta(ge=8, le=4_096)] = 24
    seconds: Annotated[float, Meta(gt=0, le=604_800)] | None = None
    most_complex: Annotated[int, Meta(ge=1, le=200)] = 25
    threshold: Positive = 0.1
    explain: Annotated[float, Meta(ge=0.5, le=1.0)] = 0.97
    units: bool = False


class Evaluation(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One step and a rollout on meshes the network has not seen, against the first-order scheme.

    - `fourier`: Δt on each mesh, in units of its Fourier step;
    - `carry`: cells of the meshes on which a network in the form of a flux is measured, one mesh each.
    """

    meshes: Annotated[int, Meta(ge=0, le=100_000)] = 100
    cells: Cells = 300
    engine: Literal["auto", "gmsh", "builtin"] = "auto"
    rollout: Annotated[int, Meta(ge=1, le=1_000_000)] = 50
    fourier: Positive = 0.5
    carry: Annotated[tuple[Annotated[int, Meta(ge=20, le=1_000_000)], ...], Meta(min_length=1)] = (100, 1_000, 10_000)


class Recipe(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Data, network, loss and training, and what the result has to satisfy.

    - `seed`: of the data and of the first network; `seeds` networks are trained side by side;
    - `equation`: a built-in one by name, a TOML file relative to the recipe's own folder, or the fields of such a file
      as a table; a file is read into the recipe, so that a run does not need it any more;
    - `parameters`: values of the equation's parameters that data are made with, in units where the mean cell volume is
      1; those left out take their defaults;
    - `diffusivity`: the word for the parameter of heat;
    - `arms`: named values of the sparsity weight; every seed is trained once per arm (none: the weight in `loss`);
    - `search`: how networks are turned into formulas (none: they are not);
    - `expect`: the verdict that a run should end with; `order`: the order in time that its formula should have;
    - `textbook`: for data of kind `experiment`, a flux by name or a formula that the report compares the result with.
    """

    name: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
    summary: str = ""
    seed: Seed = 0
    seeds: Annotated[int, Meta(ge=1, le=1024)] = 1
    equation: str | Table = "heat"
    parameters: dict[str, Signed | tuple[Any, ...]] = {}
    diffusivity: Positive | None = None
    expect: Literal["recovered", "approximation"] = "recovered"
    order: Annotated[int, Meta(ge=1, le=8)] | None = None
    textbook: str | None = None
    arms: dict[str, Weight] = {}
    data: Data = Pairs()
    network: Network = Network()
    loss: Loss = Loss()
    training: Training = Training()
    evaluation: Evaluation = Evaluation()
    search: Search | None = None
