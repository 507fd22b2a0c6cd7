"""The record of a recipe and its sections: data, network, loss, training, search and evaluation.

The schema refuses a number outside its range and names field, value and range. The upper limits are far beyond any run
that could be finished; they are there to report typing errors at once.

Every kind of data has two fields that change the answers of supervised training, and nothing else:

- `law`: the formula of a message over an edge, of A, δ, T_P, T_N, V, n, d and the equation's parameters, in place of
  its own flux: the answer of heat is then T + Δt (1/V Σ law + S). None is the equation's flux, α A/δ (T_N − T_P);
- `noise`: standard deviation of normal noise on the answers, in units of the root mean square of the step's own change.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct

# The equation that a recipe is about unless it names another.
HEAT = "heat"
Steps: TypeAlias = Annotated[int, Meta(ge=1, le=100_000_000)]
Batch: TypeAlias = Annotated[int, Meta(ge=1, le=1_000_000)]
MeshCount: TypeAlias = Annotated[int, Meta(ge=1, le=100_000)]
Cells: TypeAlias = Annotated[int, Meta(ge=8, le=100_000)]
# A time or a length in units of the cell, a Fourier number, a diffusivity; α Δt/δ² stays in the range of float32.
Positive: TypeAlias = Annotated[float, Meta(gt=0, le=1e6)]
# A parameter of an equation, of either sign.
LARGEST_PARAMETER = 1e6
Signed: TypeAlias = Annotated[float, Meta(ge=-LARGEST_PARAMETER, le=LARGEST_PARAMETER)]
# A weight of a loss, a norm of a gradient.
Weight: TypeAlias = Annotated[float, Meta(ge=0, le=1e9)]
Noise: TypeAlias = Annotated[float, Meta(ge=0, le=100)]
Fraction: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Seed: TypeAlias = Annotated[int, Meta(ge=0, lt=2**31)]
# A range [low, high] that values are drawn from.
Range: TypeAlias = tuple[Positive, Positive]


# The kinds of random field; their positions are the numbers by which the data refer to them.
FIELDS = ("smooth", "noise", "mixed")
Faces: TypeAlias = Literal["none", "random"]


class TwoCells(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind", tag="two-cells"):
    """The paper's graphs: an equilateral pair of side 2, T and S uniform in [−1, 1], and the corner cases.

    - `faces`: `random` Dirichlet faces, present or not, with random values; or `none`: a graph has a single edge;
    - `time_step`: one Δt for all graphs;
    - `corner_cases`: G(0,0,0,0), G(1,1,0,0), G(0,0,1,1), G(0,1,0,0), G(1,0,0,0) among the graphs;
    - `negated`: the negatives of the corner cases, too, without which nothing drives the update negative in one.
    """

    graphs: Batch = 100
    faces: Faces = "none"
    time_step: Positive = 0.1
    corner_cases: bool = True
    negated: bool = False
    law: str | None = None
    noise: Noise = 0.0


class Pairs(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind", tag="pairs"):
    """Random triangle pairs and random Δt, drawn anew at every step: geometry varies, so that it can be identified.

    - `presence`: the chance that an outer face is there; cells with a single message leave f_agg undetermined;
    - `time_step`: Δt is uniform in this range, in units where a cell's mean volume is 1;
    - `common`: the part of the temperatures' range that is a level common to the whole pair, boundary included: without
      it T_P alone determines the sign of most fluxes, and networks that learn |flux| first do not get beyond it;
    - `stretch`: largest displacement of corners from the equilateral pair, in units of its side;
    - `size`: range of the pair's mean volume.
    """

    faces: Faces = "random"
    presence: Fraction = 0.8
    time_step: Range = (0.01, 0.2)
    common: Fraction = 0.5
    stretch: Annotated[float, Meta(ge=0, le=0.35)] = 0.3
    size: Range = (0.5, 2.0)
    law: str | None = None
    noise: Noise = 0.0


class Meshes(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind", tag="meshes"):
    """An ensemble of unstructured meshes of the unit square with random fields, sources and boundary values.

    - `files`: mesh files instead of generated ones, relative to the recipe's own folder;
    - `fields`: smooth random ones, white noise, and mixtures of both, in equal shares;
    - `fourier`: Δt is uniform in this range, in units of each mesh's reference step: the Fourier step of heat;
    - `target`: how answers are computed: by one `step` of the first-order scheme; on the same mesh, `resolved` in time
      by many substeps, to `tolerance` for every mode of diffusion: exp(Δt L) T of a linear equation;
      or `refined`: every cell is divided into four, at most `levels` times, until the answers of two levels differ by
      at most `tolerance` of the change, and answers are averaged back; a fixed set of problems on each mesh;
    - `cell_size`: range of the cells' mean size, log-uniform, in the units of the equation's parameters; it matters
      where transport or a reaction acts beside diffusion: heat alone has no length scale;
    - `jumps`: parameters given per cell are multiplied or divided by up to this factor, drawn cell by cell.
    """

    meshes: MeshCount = 100
    cells: tuple[Cells, Cells] = (100, 600)
    kinds: Annotated[tuple[Literal["regular", "irregular"], ...], Meta(min_length=1)] = ("regular", "irregular")
    engine: Literal["auto", "gmsh", "builtin"] = "auto"
    fields: Annotated[tuple[Literal["smooth", "noise", "mixed"], ...], Meta(min_length=1)] = (
        "smooth",
        "noise",
        "mixed",
    )
    fourier: Range = (0.05, 0.5)
    target: Literal["step", "resolved", "refined"] = "step"
    tolerance: Annotated[float, Meta(ge=1e-12, le=0.5)] = 1e-6
    levels: Annotated[int, Meta(ge=1, le=5)] = 3
    cell_size: Range = (1.0, 1.0)
    jumps: Annotated[float, Meta(ge=1, le=1e6)] = 1.0
    files: tuple[str, ...] | None = None
    law: str | None = None
    noise: Noise = 0.0


class Experiment(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind", tag="experiment"):
    """Two cells and the face between them, the equation solved there by brute force, and the flux measured.

    - `samples`: number of experiments, a fifth of which are held out of training;
    - `states`: range of the unknown in both cells; by default half a unit around the points where f' = 0, and [-1, 1]
      where f is linear or zero;
    - `values`: range of positive parameters, `distances`: range of the distances from the face; log-uniform both;
    - `jump`: parameters and distances differ between the cells; otherwise both cells have the same ones, δ apart;
    - `velocity`: largest |a·n|; `peclet`: largest |a·n| δ/K instead, where the equation has both;
    - `tolerance`: error, relative to the size of the fluxes, up to which the grid is refined;
    - `law`: a formula of the flux in place of the solution, for decoys;
    - `noise`: standard deviation of normal noise on the fluxes, in units of their root mean square.
    """

    samples: Annotated[int, Meta(ge=100, le=1_000_000)] = 2_000
    states: tuple[Signed, Signed] | None = None
    values: Range = (0.3, 3.0)
    distances: Range = (0.3, 3.0)
    jump: bool = True
    velocity: Positive = 1.0
    peclet: Positive | None = None
    tolerance: Annotated[float, Meta(ge=1e-12, le=0.1)] = 1e-4
    law: str | None = None
    noise: Noise = 0.0


class Rows(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind", tag="rows"):
    """Periodic rows of 64 cells under transport, with random profiles whose exact cell averages are known.

    - `profiles`: `random` ones, boxes, triangles, Gaussians and sines drawn anew for every batch; or a `single` one
      that every batch repeats, a decoy that the test on fresh profiles has to detect;
    - `stencil`: number of cells that φ depends on at a face: 3 for the ratio r of the upwind difference, 4 for the
      ratio q of the downwind difference, too;
    - `refit`: rows of each generation in which the constants of a closed form are fitted;
    - `law`, `noise`: none, since the answers are the exact averages.
    """

    profiles: Literal["random", "single"] = "random"
    stencil: Literal[3, 4] = 3
    refit: Batch = 24
    law: str | None = None
    noise: Annotated[float, Meta(ge=0, le=0)] = 0.0


class Skew(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind", tag="skew"):
    """Faces between cells of skewed meshes, with the exact fluxes of random polynomial and harmonic fields.

    - `samples`: faces with a field each, drawn from `meshes` meshes of about `cells` cells with `fields` fields each;
    - `aspect`: every other group of meshes is stretched at random up to this ratio;
    - `law`: for decoys, a formula in place of the flux: of rise = (T_N − T_P)/δ, normal = ḡ·n, along = ḡ·d/δ, cosine,
      nu, contrast and `flux`, the exact flux;
    - `noise`: standard deviation of normal noise on the fluxes, in units of their root mean square;
    - `problems`: steady problems that the search solves on each of its meshes, every other one zero at the walls;
      three times as many others are solved on each of the eight meshes per family and size that validate its choices;
    - `conductivity`: that of these problems; with `weighted-tensor` the angles in ψ depend on the tensor, too. The
      fluxes of the samples have k = 1.
    """

    samples: Annotated[int, Meta(ge=500, le=1_000_000)] = 12_000
    meshes: Annotated[int, Meta(ge=4, le=10_000)] = 24
    cells: Cells = 200
    fields: Annotated[int, Meta(ge=2, le=1_000)] = 4
    aspect: Annotated[float, Meta(ge=1, le=100)] = 5.0
    law: str | None = None
    noise: Noise = 0.0
    problems: Annotated[int, Meta(ge=2, le=10_000)] = 64
    conductivity: Literal["scalar", "tensor", "weighted-tensor", "jump"] = "scalar"


Data: TypeAlias = TwoCells | Pairs | Meshes | Experiment | Rows | Skew


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
    - `hops`: 2 adds messages over two-hop paths, or with `two_hop` = `ring` one per pair of distinct cells, as printed
      in the paper;
    - `hidden`: how many numbers a cell carries from layer to layer;
    - `update`: `direct` predicts T', `residual` predicts f in T' = T + Δt/V f;
    - `gain`: weights start this many times as large as 1/√inputs; by default 1, and √3 for gated MLPs;
    - `invariants`: more inputs of messages over edges and paths, such as `d_n` = d·n and `d_t` = |d − (d·n) n|;
      `correction` is ½ (∇T_P + ∇T_N)·(n − d/(d·n)) of least-squares gradients, over edges;
    - `standardise`: every input that comes from the data is brought to mean 0 and spread 1, measured once;
    - `form`: `free`, the paper's networks, to which all fields above belong; or `flux`, a time integrator of `layers`
      stages in which MLPs of `depth` layers and `width` units give the faces' coefficients of every stage but the
      first, from dimensionless numbers alone;
    - `integrator`: the method that a network in the form of a flux is before training: the `nested` Runge–Kutta method
      of order `layers`, or `rkl2`, Runge–Kutta–Legendre, for steps far beyond the Fourier step; `rkl2-nested` has the
      same polynomial in nested stages, whose coefficients can be learned further;
    - `order`: with 2, the coefficients of a network in the form of a flux tend to 1 as Δt → 0, so that its step is of
      second order in time whatever is learned; with 1 they are free;
    - `free_last`: an ablation of that form: coefficients multiply the whole flux of every stage, the last included,
      which changes the equation itself.
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
    """The sum of the terms that are given; each is logged separately."""

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
    - `chunk`: steps between two lines of metrics, and perhaps a checkpoint;
    - `checkpoint_every`: steps between checkpoints, rounded up to whole chunks;
    - `patience`: stop when the loss has not fallen by 1 % in this number of chunks, 0 for never;
    - `most_skips`: a seed is given up after this number of successive steps whose loss or gradient is not finite, or
      explodes.
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

    - `route`: `modules` looks for a formula of every MLP by symbolic regression; `stencil` writes the network's own
      stencil, which does not depend on the choice of messages, as powers of the geometry, and fits a scheme that
      repeats that flux; `coefficients` looks for formulas of the coefficients that a network in the form of a flux has
      learned; `families` compares closed forms of few constants with a limiter: `evaluations` is the number of
      candidates tried for each form, `candidates` their number in a generation;
    - `samples`: points at which an MLP is evaluated, over the domain it was trained on;
    - `restarts`, `evaluations`: number of searches for one MLP, and of formulas that each of them creates and fits; the
      same seed gives the same formulas however busy the machine is;
    - `seconds`: a hard limit for the search for one MLP, by default none; a search that it ends is reported as such;
    - `threshold`: normalised error above which a formula is not accepted;
    - `explain`: the share of the network's step that a recovered formula must explain, at every Δt tried;
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
    """A description of a run: equation, data, network, loss, training, search, and the expected result.

    - `seed`: of the data and of the first network; `seeds` networks are trained side by side;
    - `equation`: a built-in one by name, a TOML file relative to the recipe's own folder, or the fields of such a file
      as a table; a file is read into the recipe, so that a run does not need it any more;
    - `parameters`: values of the equation's parameters that data are made with, in units where the mean cell volume is
      1; those left out take their defaults;
    - `diffusivity`: the value of the parameter whose meaning is the diffusivity, α of heat;
    - `arms`: named values of the sparsity weight; every seed is trained once per arm (none: the weight in `loss`);
    - `search`: how networks are turned into formulas (none: they are not);
    - `expect`: the verdict that a run should end with; `order`: the order in time that its formula should have;
    - `textbook`: for data of kind `experiment`, a flux by name or a formula that the report compares the result with.
    """

    name: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
    summary: str = ""
    seed: Seed = 0
    seeds: Annotated[int, Meta(ge=1, le=1024)] = 1
    equation: str | Table = HEAT
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
