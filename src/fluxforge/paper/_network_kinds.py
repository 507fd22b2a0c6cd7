"""Sentences on extrapolation, tested on two kinds of networks: the paper's, and those in the form of a flux.

Both are measured on the meshes of the convergence study, none of which they were trained on. Since there is only one
network of each recipe, these tests do not change the verdict of a sentence.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec import field as named

from fluxforge._files import read_document
from fluxforge.paper.studies._networks import CARRY
from fluxforge.pde._equation import HEAT
from fluxforge.pipeline._run import load_run
from fluxforge.run._record import Document
from fluxforge.run.carry import CarryResult, CarryRow
from fluxforge.run.result import from_document

Measure: TypeAlias = Literal["extrapolates", "more accurate"]
Held: TypeAlias = Literal["held", "contradicted", "not run here"]
NOT_RUN: Held = "not run here"
PAPER, FLUX = "the paper's networks", "networks in the form of a flux"
NETWORKS = {PAPER: ("network-midpoint", "network-two-hop"), FLUX: (f"network-{CARRY}",)}
# Longest time step with which both kinds were trained, in Fourier steps.
LONGEST = 0.5


class KindVerdict(Struct, frozen=True):
    """Whether a sentence held for one kind of networks or was contradicted, and the evidence."""

    kind: str
    verdict: Held
    evidence: str

    def __str__(self) -> str:
        return f"with {self.kind} {self.verdict}: {self.evidence}"


class Place(Struct, frozen=True):
    """A network compared with Euler's method on one mesh at one Δt: residuals of one step, and errors of a run.

    The error of a run that blew up is None.
    """

    network: str
    cells: int
    residual: float | None
    euler_residual: float
    error: float | None
    euler_error: float


class Carried(Struct, frozen=True):
    """Measurements of a network in the form of a flux: the errors of its own run, and rows of the convergence study."""

    rows: tuple[CarryRow, ...]
    places: tuple[Place, ...] = ()


class _KeptErrors(Struct, frozen=True):
    euler: float | None
    network: float | None = named(name=f"network-{CARRY}")


class _KeptPlace(Struct, frozen=True):
    cells: int
    fourier: float
    euler: float
    error: _KeptErrors
    network: float | None = named(name=f"network-{CARRY}")


class _KeptConvergence(Struct, frozen=True):
    rows: tuple[_KeptPlace, ...]


class _KeptRun(Struct, frozen=True):
    command: str
    carry: tuple[CarryRow, ...]


class _Kept(Struct, frozen=True):
    runs: dict[str, _KeptRun]
    convergence: _KeptConvergence


def read_carried(folder: Path) -> Carried | None:
    """Measurements from the run `carry` of the heat equation in a folder of parts, or else from its kept carry.json.

    None if the folder has neither, or its run is of another equation. Raises DocumentError for a bad carry.json.
    """
    if (folder / CARRY / "stages" / f"{CARRY}.json").exists():
        result = load_run(folder / CARRY).result
        return Carried(result.carry) if isinstance(result, CarryResult) and result.equation == HEAT.name else None
    path = folder / f"{CARRY}.json"
    if not path.exists():
        return None
    kept = from_document(read_document(path, "result", 1), _Kept, path)
    rows = next((run.carry for run in kept.runs.values() if run.command == f"fluxforge discover {CARRY}"), ())
    places = tuple(
        Place(f"network-{CARRY}", each.cells, each.network, each.euler, each.error.network, each.error.euler)
        for each in kept.convergence.rows
        # No comparison where Euler's method itself blows up, beyond its stability limit.
        if each.fourier <= LONGEST and each.error.euler is not None
    )
    return Carried(rows, places)


def judge_both_kinds(measure: Measure, documents: Mapping[str, Document], carried: Carried | None) -> list[KindVerdict]:
    """Test a sentence on both kinds of networks; of the documents of parts, that of the convergence study is used.

    A network extrapolates if no run blows up and every run has a smaller error than Euler's method; it is more accurate
    if the residual of every single step is smaller. A network in the form of a flux must also meet this in the table of
    its own run.
    """
    carried = carried or Carried(())
    places = [*_find_places(documents.get("convergence", {})), *carried.places]
    return [
        _judge_kind(PAPER, measure, [each for each in places if each.network in NETWORKS[PAPER]], None),
        _judge_kind(FLUX, measure, [each for each in places if each.network in NETWORKS[FLUX]], carried.rows),
    ]


def _find_places(document: Document) -> Iterator[Place]:
    """The comparison of each network with Euler's method, for Δt up to `LONGEST`, from the convergence study."""
    rows = [row for row in document.get("rows", ()) if row["fourier"] <= LONGEST]
    euler = {(row["wanted"], row["fourier"]): row for row in rows if row["scheme"] == "euler"}
    for row in rows:
        if row["scheme"] in (*NETWORKS[PAPER], *NETWORKS[FLUX]):
            peer = euler[row["wanted"], row["fourier"]]
            residuals = row["residual_half"], peer["residual_half"]
            yield Place(row["scheme"], row["cells"], *residuals, row["error"], peer["error"])


def _judge_kind(kind: str, measure: Measure, places: Sequence[Place], rows: Sequence[CarryRow] | None) -> KindVerdict:
    """Test a sentence on one kind of networks; `rows` is the table of its run, None for the paper's networks."""
    if not places or (rows is not None and not rows):
        needed = "fluxforge reproduce higher-order convergence"
        needed += "" if rows is None else f", with a finished run of fluxforge discover {CARRY} in its folder"
        return KindVerdict(kind, NOT_RUN, f"needs {needed}")
    by_run = measure == "extrapolates"
    names = list(dict.fromkeys(each.network for each in places))
    ratios = {name: [_ratio(each, by_run) for each in places if each.network == name] for name in names}
    passes = [ratio is not None and ratio < 1.0 for each in ratios.values() for ratio in each]
    sizes = [each.cells for each in places]
    what = "error of runs" if by_run else "residual of one step (θ = ½)"
    evidence = f"{what} over Euler's on {min(sizes):,} to {max(sizes):,} cells, steps of at most {LONGEST:g}: "
    evidence += "; ".join(f"{name} {_describe(values)}" for name, values in ratios.items())
    if rows:
        table_passes, table_evidence = _judge_table(rows, by_run)
        passes, evidence = [*passes, *table_passes], f"{evidence}; {table_evidence}"
    return KindVerdict(kind, "held" if all(passes) else "contradicted", evidence)


def _ratio(place: Place, by_run: bool) -> float | None:
    """The network's error (or residual) over that of Euler's method; None if it is not finite or the run blew up."""
    ours, theirs = (place.error, place.euler_error) if by_run else (place.residual, place.euler_residual)
    return None if ours is None else ours / theirs


def _describe(ratios: Sequence[float | None]) -> str:
    known = [ratio for ratio in ratios if ratio is not None]
    missing = f"blows up in {len(ratios) - len(known)} of {len(ratios)}"
    above = f"above 1 in {sum(ratio >= 1.0 for ratio in known)} of {len(ratios)}"
    if not known:
        return missing
    return f"{min(known):.2g} to {max(known):.2g}, {above}" + (f", {missing}" if len(known) < len(ratios) else "")


def _judge_table(rows: Sequence[CarryRow], by_run: bool) -> tuple[list[bool], str]:
    """Whether each row of a run's table passes, and the evidence.

    With `by_run` a row passes without blow-up, otherwise with a smaller error than that of the midpoint rule.
    """
    cells = [row.cells for row in rows]
    where = f"unseen meshes of {min(cells):,} to {max(cells):,} cells"
    if by_run:
        blow_ups = [row.blew_up for row in rows]
        return [not each for each in blow_ups], f"1,000 steps blow up in {sum(blow_ups)} of {len(blow_ups)} on {where}"
    ratios = [None if row.network is None or not row.midpoint else row.network / row.midpoint for row in rows]
    smaller = [each is not None and each < 1.0 for each in ratios]
    return smaller, f"error of one step over the midpoint rule's on {where}: {_describe(ratios)}"
