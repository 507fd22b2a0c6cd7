"""Discovery of a flux for skewed meshes: train, test consistency, choose the free coefficient, validate."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from msgspec.structs import replace
from threadpoolctl import threadpool_limits

from fluxforge import recipe
from fluxforge._machine import environment
from fluxforge.certify._certificate import Certificate
from fluxforge.certify._summary import summarise
from fluxforge.pipeline._folder import command_of
from fluxforge.pipeline._outcome import Outcome, verify_scheme
from fluxforge.pipeline._skew_stages import FolderParts, validate_laws
from fluxforge.report._skew_page import write_skew
from fluxforge.run._folder import RunFolder
from fluxforge.run._progress import Progress, add_seconds
from fluxforge.run.result import list_reasons
from fluxforge.run.skew import AngleRow, LawRow, LimitRow, SkewResult, TrialRow
from fluxforge.scheme._scheme import Scheme
from fluxforge.skew._choose import OBJECTIVES, Choice, choose_laws, missed_by
from fluxforge.skew._data import FaceTable, make_table, read_law
from fluxforge.skew._flux import CORRECTED, ChosenLaw, Constants, Invariants, face_weights
from fluxforge.skew._network import CELLS, Coefficients, Consistency, fit_limits, load_coefficients, train_coefficients
from fluxforge.skew._objective import Judge, Scores
from fluxforge.skew._problems import CONDUCTIVITIES, SINES, WAVES

# Limits of a recovery: error and stable step over those of the corrected flux, and order. The search has stricter ones.
MOST_ERROR, LEAST_STEP, LEAST_ORDER = 1.02, 0.8, 1.9
ORDERS_ON = ("right", "jittered", "regular", "irregular")
# Meshes of the search are not coarser, since on regular triangles the corrected flux has a higher order for sums of
# sines, so that ratios of errors to its errors grow with the number of cells.
JUDGED_N, JUDGED_SEEDS, STRETCHED_MESHES = 24, (1, 2, 3, 4), 64
# Added to the seed of a recipe for the unseen meshes on which consistency is tested.
_VALIDATION_SEED = 5 * 10**5
NETWORK = "network.safetensors"


def check_skew(spec: recipe.Recipe) -> None:
    """Raise InputError, before any data are made, for a law that cannot be parsed."""
    assert isinstance(spec.data, recipe.Skew)
    if spec.data.law is not None:
        read_law(spec.data.law)


def report_skew(outcome: Outcome[SkewResult], folder: RunFolder, into: Path) -> list[Path]:
    """Write the report of a run for skewed meshes; returns the paths of its files."""
    return write_skew(
        outcome.result, into, scheme=outcome.scheme, certificate=outcome.certificate, command=command_of(folder)
    )


@dataclass(frozen=True, eq=False)
class TrainedSkew:
    """The network of the coefficients, its consistency on unseen meshes, and the number of samples it was trained on.

    `unseen` is the table of exact fluxes on the coarsest unseen meshes.
    """

    network: Coefficients
    consistency: Consistency
    samples: int
    unseen: FaceTable


@dataclass(frozen=True, eq=False)
class ChosenFluxes:
    """The fluxes chosen for the objectives, their validation on held-out meshes, and the certificate of `scheme`.

    `scheme` is that of the flux of least error, `others` has those of all fluxes by file name.
    """

    choice: Choice
    laws: tuple[LawRow, ...]
    scheme: Scheme
    certificate: Certificate
    others: Mapping[str, Scheme]


def discover_skew(spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> Outcome[SkewResult]:
    """Train the coefficients of a flux for skewed meshes, choose the free one, and validate, certify and judge."""
    seconds: dict[str, float] = {}
    trained = train_skew(spec, folder, tell, seconds)
    # Without consistency, no coefficient is free to choose.
    chosen = choose_fluxes(spec, folder, tell, seconds) if trained.consistency.holds else None
    result = describe_fluxes(trained, chosen, seconds, spec)
    if chosen is None:
        return Outcome(result, networks=(NETWORK,))
    return Outcome(result, chosen.scheme, chosen.certificate, chosen.others, networks=(NETWORK,))


def train_skew(spec: recipe.Recipe, folder: RunFolder, tell: Progress, seconds: dict[str, float]) -> TrainedSkew:
    """Compute exact fluxes, train the network of the coefficients on them, and test its consistency.

    The time that each part takes is added to `seconds`.
    """
    with add_seconds(seconds, "data"):
        tell("computing exact fluxes", 0, 1)
        table = _tabulate_fluxes(spec)
        unseen = [_tabulate_fluxes(spec, cells=cells) for cells in CELLS]
    with add_seconds(seconds, "train"):
        network = _read_or_train(table, spec, folder, tell)
    return TrainedSkew(network, fit_limits(network, unseen), len(table), unseen[0])


def choose_fluxes(spec: recipe.Recipe, folder: RunFolder, tell: Progress, seconds: dict[str, float]) -> ChosenFluxes:
    """Choose the free coefficient for each objective, validate the fluxes, and verify the one of least error.

    The time that each part takes is added to `seconds`.
    """
    with add_seconds(seconds, "choose"):
        choice = _choose_laws(spec, folder, tell)
    with add_seconds(seconds, "validate"), threadpool_limits(1, "blas"):
        laws = validate_laws(choice.laws, spec, folder, tell)
    with add_seconds(seconds, "certify"):
        scheme = choice.laws["error"].scheme(spec.name)
        certificate = verify_scheme(scheme, tell)
        others = {f"scheme-{name}.json": law.scheme(f"{spec.name}-{name}") for name, law in choice.laws.items()}
    return ChosenFluxes(choice, laws, scheme, certificate, others)


def describe_fluxes(
    trained: TrainedSkew, chosen: ChosenFluxes | None, seconds: Mapping[str, float], spec: recipe.Recipe
) -> SkewResult:
    """The verdict on the fluxes, and the record of the run; `chosen` is None if the network is not consistent."""
    assert isinstance(spec.data, recipe.Skew)
    laws = () if chosen is None else chosen.laws
    findings: tuple[str, ...] = ()
    if chosen is not None:
        summary = summarise(chosen.certificate, chosen.scheme)
        findings = (summary, *_describe_laws(laws), *_describe_missed(chosen.choice))
    verdict, reasons = judge_fluxes(trained.consistency, laws)
    return SkewResult(
        recipe=spec.name,
        seed=spec.seed,
        equation="heat",
        verdict=verdict,
        expected=spec.expect,
        as_expected=verdict in ("recovered", spec.expect),
        reasons=reasons,
        samples=trained.samples,
        network_error=trained.network.error(trained.unseen),
        plain_error=_plain_error(trained.unseen),
        consistency=_limit_rows(trained.consistency),
        laws=laws,
        trials=() if chosen is None else _trial_rows(chosen.choice),
        angles=_angle_rows(trained.network, {} if chosen is None else chosen.choice.laws),
        findings=findings,
        certificate=None if chosen is None else chosen.certificate.to_document(),
        seconds=dict(seconds),
        environment=environment(),
        conductivity=spec.data.conductivity,
    )


def _tabulate_fluxes(spec: recipe.Recipe, cells: int | None = None) -> FaceTable:
    """The table of exact fluxes of the recipe, or if `cells` is given, of all faces of unseen meshes of that size."""
    data, seed = spec.data, spec.seed
    assert isinstance(data, recipe.Skew)
    if cells is not None:
        # So many samples that none is left out, and another seed than that of the training.
        data, seed = replace(data, meshes=8, cells=cells, samples=2**31), seed + _VALIDATION_SEED
    return make_table(
        meshes=data.meshes,
        cells=data.cells,
        fields=data.fields,
        samples=data.samples,
        aspect=data.aspect,
        seed=seed,
        law=data.law,
        noise=data.noise,
    )


def _read_or_train(table: FaceTable, spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> Coefficients:
    """The network of the run: read from the folder if it was trained before, otherwise trained and saved.

    A file that is refused is reported by the folder's `warn`.
    """
    path = folder.path / NETWORK
    if path.exists():
        if (saved := load_coefficients(path)) is not None:
            return saved
        folder.warn(f"{path}: is damaged, or not a network of this run: the network is trained again")
    network = train_coefficients(
        table, spec, tell=lambda step, steps, error: tell(f"training (error {error:.2e})", step, steps)
    )
    network.save(path)
    return network


def _choose_laws(spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> Choice:
    assert spec.search is not None
    assert isinstance(spec.data, recipe.Skew)
    data = spec.data

    @cache
    def judge() -> Judge:
        return Judge(
            n=JUDGED_N,
            seeds=JUDGED_SEEDS,
            problems=data.problems,
            stretched=STRETCHED_MESHES,
            seed=spec.seed,
            conductivity=CONDUCTIVITIES[data.conductivity],
        )

    return choose_laws(
        # A function of its own, so that a judge and its meshes are made only if some part of the search is unfinished.
        lambda constants: judge()(constants),
        evaluations=spec.search.evaluations,
        seed=spec.seed,
        parts=FolderParts(folder),
        tell=tell,
    )


def judge_fluxes(consistency: Consistency, laws: tuple[LawRow, ...]) -> tuple[str, tuple[str, ...]]:
    """The verdict on the fluxes and its reasons.

    "refused" without consistency, "recovered" if the law chosen for the error meets all limits, else "approximation".
    """
    checks = {f"the flux is consistent: {consistency.sentence}": consistency.holds}
    best = next((law for law in laws if law.name == "error"), None)
    if best is not None:
        # Two standard errors above: bounds of the true ratios with a probability of 98 % each.
        errors = {
            kind: max(
                each.error_ratio + 2.0 * each.ratio_error
                for row in best.families
                for each in row.kinds
                if each.kind == kind
            )
            for kind in (WAVES, SINES)
        }
        step = min(row.step_ratio for row in best.families)
        order = min(row.order for row in best.families if row.family in ORDERS_ON)
        checks |= {
            f"error {error:.3f} of the corrected flux's for {kind} on the worst family, two standard errors included "
            f"(at most {MOST_ERROR})": error <= MOST_ERROR
            for kind, error in errors.items()
        }
        checks |= {
            f"stable step {step:.3f} of the corrected flux's on the worst mesh (at least {LEAST_STEP})": step
            >= LEAST_STEP,
            f"order {order:.2f} on the worst family of {', '.join(ORDERS_ON)} (at least {LEAST_ORDER})": (
                order >= LEAST_ORDER
            ),
            f"coercivity {best.coercivity:.3f} on the worst mesh, up to aspect 30 (above 0)": best.coercivity > 0.0,
        }
    reasons = list_reasons(checks)
    if not consistency.holds:
        return "refused", reasons
    return ("recovered" if all(checks.values()) else "approximation"), reasons


def _plain_error(table: FaceTable) -> float:
    """The root mean square error of the two-point flux, over the root mean square of the exact flux."""
    return float(np.sqrt(np.mean((table.columns[:, 0] - table.flux) ** 2))) / table.size


def _limit_rows(consistency: Consistency) -> tuple[LimitRow, ...]:
    numbers = (
        ("ψ₂", consistency.normal, consistency.normal_spread),
        ("ψ₁ + ψ₃", consistency.total, consistency.total_spread),
    )
    return tuple(
        LimitRow(
            name=name,
            by_size=each.by_size,
            limit=each.limit,
            uncertainty=each.uncertainty,
            taken=None if each.fraction is None else str(each.fraction),
            spread=spread,
        )
        for name, each, spread in numbers
    )


def _corrected_scores(choice: Choice) -> Scores:
    return next(each.scores for each in choice.trials if each.constants == CORRECTED)


def _describe_missed(choice: Choice) -> tuple[str, ...]:
    """A line for each chosen flux that misses a condition of the search, as it may if no candidate meets them all."""
    missed = {name: missed_by(scores, _corrected_scores(choice)) for name, scores in choice.scores.items()}
    return tuple(
        f"chosen for {name}: violates the conditions of the search, by {by:.3f} in total"
        for name, by in missed.items()
        if by > 0.0
    )


def _trial_rows(choice: Choice) -> tuple[TrialRow, ...]:
    corrected = _corrected_scores(choice)
    return tuple(
        TrialRow(
            error=each.scores.mean_error,
            step=each.scores.mean_step,
            coercivity=each.scores.coercivity,
            allowed=missed_by(each.scores, corrected) == 0.0,
        )
        for each in choice.trials
    )


def _angle_rows(network: Coefficients, laws: Mapping[str, ChosenLaw]) -> tuple[AngleRow, ...]:
    cosine = np.linspace(0.3, 1.0, 15)
    same = Invariants(cosine, np.full_like(cosine, 4.0 / 3.0), np.zeros_like(cosine))
    psi = network(np.stack([same.cosine, same.nu, same.contrast], axis=1))
    constants: dict[str, Constants] = {
        "corrected": CORRECTED,
        **{name: law.constants for name, law in laws.items()},
    }
    weights = {name: face_weights(law, same) for name, law in constants.items()}
    return tuple(
        AngleRow(
            cosine=float(c),
            network=(float(psi[k, 0]), float(psi[k, 1]), float(psi[k, 2])),
            laws={name: float(each[k]) for name, each in weights.items()},
        )
        for k, c in enumerate(cosine)
    )


def _describe_laws(laws: tuple[LawRow, ...]) -> tuple[str, ...]:
    corrected = next(law for law in laws if law.name == "corrected")
    lines = []
    for law in laws:
        if law.name == "corrected":
            continue
        below = [row.family for row in law.families if row.error_ratio + 2.0 * row.ratio_error <= 0.9]
        name = f"chosen for {law.name}" if law.name in OBJECTIVES else law.name
        lines.append(
            f"{name}: error at least 10 % below corrected's for both kinds of problems on "
            f"{', '.join(below) or 'no family'}; solution outside the range of the boundary values on "
            f"{law.violated} of {law.meshes} stretched meshes (corrected: {corrected.violated})"
        )
    return tuple(lines)
