"""A finished run as an object: network, scheme, certificate, metrics, verdict and report of a run folder."""

import importlib
import os
import warnings
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from fluxforge import recipe
from fluxforge._arguments import check_path
from fluxforge.certify._certificate import certificate_html
from fluxforge.data._model import model_of
from fluxforge.data._source import source
from fluxforge.errors import InputError
from fluxforge.pipeline._folder import recipe_of
from fluxforge.pipeline._outcome import CARRY, DISCOVERY, GENERALISATION, read_result, run_kind
from fluxforge.report._page import typeset
from fluxforge.run._durable import Metrics
from fluxforge.run._folder import RunFolder
from fluxforge.run._outputs import Result, name_outputs
from fluxforge.run._record import Document, Record
from fluxforge.run.carry import CarryResult
from fluxforge.run.limiter import LimiterResult
from fluxforge.run.result import Generalisation, from_document, to_document
from fluxforge.run.skew import SkewResult
from fluxforge.scheme._document import load
from fluxforge.scheme._scheme import Scheme
from fluxforge.stepping._trained import TrainedNetwork
from fluxforge.train._train import Trained, train


class CertificateLine(Record, frozen=True, kw_only=True):
    """A line of a certificate: the property, its verdict, the evidence, and the method by which it was established."""

    property: str
    verdict: str
    evidence: str
    method: str


class CertificateSummary(Record, frozen=True, kw_only=True):
    """The main findings of a certificate; `run.document["certificate"]` has all of them."""

    scheme: str
    verdict: str
    linear: bool | None = None
    conservative: bool | None = None
    time_order: float | None = None
    lines: tuple[CertificateLine, ...] = ()

    def __repr__(self) -> str:
        return f"CertificateSummary({self.scheme}: {self.verdict}, {len(self.lines)} properties)"

    def _repr_html_(self) -> str:
        rows = ((line.verdict, line.property, line.evidence) for line in self.lines)
        return certificate_html(self.scheme, self.verdict, rows)


class MetricColumns(Mapping[str, np.ndarray]):
    """The training metrics as a mapping from names to arrays with one row per record.

    Loss terms have a second axis over the networks. A number that was not finite, or is missing, is NaN.
    """

    # By identity: that of a mapping compares arrays, which have no single truth value.
    __eq__, __hash__ = object.__eq__, object.__hash__

    def __init__(self, records: Sequence[Document]) -> None:
        names = list(dict.fromkeys(name for record in records for name in record))
        self._columns = {name: _column([record.get(name) for record in records]) for name in names}

    def __getitem__(self, name: str) -> np.ndarray:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        rows = len(next(iter(self._columns.values()), ()))
        return f"MetricColumns({rows} rows{''.join(f', {name}' for name in self._columns)})"

    def to_pandas(self) -> Any:
        """A pandas DataFrame; the seeds of a loss term are columns `name[0]`, `name[1]` and so on.

        Raises InputError if pandas is not installed.
        """
        try:
            pandas = importlib.import_module("pandas")
        except ImportError as error:
            raise InputError("to_pandas needs pandas, which is not installed: pip install pandas") from error
        flat: dict[str, np.ndarray] = {}
        for name, values in self._columns.items():
            many = values.ndim == 2 and values.shape[1] > 1
            flat |= {f"{name}[{k}]": column for k, column in enumerate(values.T)} if many else {name: values.ravel()}
        return pandas.DataFrame(flat)


def _column(values: Sequence[Any]) -> np.ndarray:
    width = max((len(value) for value in values if isinstance(value, list)), default=None)
    if width is None:
        whole = all(type(value) is int for value in values)
        return np.array(values, int if whole else float)
    return np.array([value if isinstance(value, list) else [None] * width for value in values], float)


@dataclass(frozen=True, repr=False, eq=False)
class Run:
    """A finished run: what `ff.discover` returns and `ff.load_run` reads.

    `folder` is the run folder and `recipe` its recipe. `result` is the record of the run: a Discovery, a Generalisation
    (of arms), a CarryResult (of a network in the form of a flux), a LimiterResult or a SkewResult. The rest is read
    from the folder when it is first used.
    """

    folder: Path
    recipe: recipe.Recipe
    result: Result

    def __repr__(self) -> str:
        return f"Run({self.recipe.name}: {self._headline}; {self.folder})"

    def _repr_html_(self) -> str:
        page = Markup("<p><b>{}</b>: {}</p>").format(self.recipe.name, self._headline)
        if self.scheme is not None:
            page += typeset(self.scheme)
        names = ("report.html", *name_outputs(self.result), "generalisation.png")
        links = (
            Markup('<a href="{}">{}</a>').format(path.resolve().as_uri(), path.name) for path in self._files(names)
        )
        return str(page + Markup("<p>{}</p>").format(Markup(", ").join(links)))

    @property
    def _headline(self) -> str:
        result = self.result
        if isinstance(result, Generalisation):
            return f"{len(result.summary)} arms of {result.seeds} seeds"
        if isinstance(result, LimiterResult):
            return f"{result.verdict}, φ = {result.formula}"
        if isinstance(result, CarryResult):
            return str(self.verdict) + (
                "" if result.kept is None else f", {result.kept:.0%} of the network's gain kept"
            )
        if isinstance(result, SkewResult):
            return f"{result.verdict}; {result.reasons[0].partition(': ')[2]}"
        least = None if result.explained is None else result.explained.least
        what = "step" if self.has_step else "flux"
        return str(self.verdict) + ("" if least is None else f", {least:.1%} of the network's {what} explained")

    def _files(self, names: Sequence[str]) -> list[Path]:
        return [self.folder / name for name in names if (self.folder / name).exists()]

    @cached_property
    def document(self) -> Document:
        """The record as plain JSON values, as `fluxforge discover --json` prints it."""
        return to_document(self.result)

    @property
    def verdict(self) -> str | None:
        """`recovered`, `approximation` or `refused`; None for a recipe with arms."""
        if isinstance(self.result, Generalisation):
            return None
        if isinstance(self.result, CarryResult | LimiterResult | SkewResult):
            return self.result.verdict
        # Runs of older versions record only whether a formula was recovered.
        return self.result.verdict or ("recovered" if self.result.recovered else "refused")

    @cached_property
    def scheme(self) -> Scheme | None:
        """The formula as a scheme, recovered or not; None if no formula was found."""
        paths = self._files([name_outputs(self.result).scheme])
        return load(paths[0]) if paths else None

    @cached_property
    def certificate(self) -> CertificateSummary | None:
        """The main findings of the certificate; None if no formula was found."""
        if isinstance(self.result, Generalisation) or self.result.certificate is None:
            return None
        return from_document(self.result.certificate, CertificateSummary, self.folder)

    @cached_property
    def metrics(self) -> MetricColumns:
        """The training metrics by name, read from `metrics.jsonl`."""
        return MetricColumns(Metrics(self.folder / "metrics.jsonl").read())

    @property
    def network(self) -> TrainedNetwork:
        """The network whose formula was searched; raises InputError for a recipe with arms, which has several."""
        if isinstance(self.result, Generalisation):
            raise InputError(f"{self.folder}: the run has networks of several arms: use one of run.networks")
        return self.networks[self.recipe.name][self.result.member or 0]

    @property
    def has_step(self) -> bool:
        """Whether the networks are steps on meshes; those of experiments, limiters and skewed meshes give a flux."""
        return run_kind(self.recipe) in (DISCOVERY, CARRY, GENERALISATION)

    @cached_property
    def networks(self) -> dict[str, tuple[TrainedNetwork, ...]]:
        """All trained networks: one per seed, by arm; without arms, under the name of the recipe.

        They are read from the last checkpoint. The second phase of a recipe with `training.polish` is not in it, and
        is computed again. Raises InputError if there is no checkpoint, or the networks are not steps.
        """
        if not self.has_step:
            raise InputError(f"{self.folder}: the network computes a flux, not a step on meshes: use run.scheme")
        trained = self._read_trained()
        model = model_of(self.recipe)
        values = dict(model.values)
        # The trained range in Fourier numbers, which only data on meshes have: of pairs it is in units of time.
        fourier = self.recipe.data.fourier if isinstance(self.recipe.data, recipe.Meshes) else None
        return {
            arm: tuple(
                TrainedNetwork(arm, trained.any_member(k), model.equation, values, fourier) for k in trained.of_arm(arm)
            )
            for arm in trained.arms
        }

    def _read_trained(self) -> Trained:
        if not any((self.folder / "checkpoints").glob("*.safetensors")):
            raise InputError(f"{self.folder}: has no checkpoint to read the network from")
        # If the last checkpoint is damaged, `train` repeats its steps from the one before: warn of the delay.
        return train(self.recipe, source(self.recipe), folder=RunFolder.read(self.folder, warn=warnings.warn))

    def open_report(self) -> Path:
        """Open the report in a browser, and return its path; raises InputError if the run has none."""
        path = self.folder / "report.html"
        if not path.exists():
            raise InputError(f"{path}: no such file: the run has no report")
        webbrowser.open(path.resolve().as_uri())
        return path


def load_run(folder: str | os.PathLike[str]) -> Run:
    """The finished run in a folder; only its description and its record are read.

    Raises InputError if the folder has no run, or one that is not finished.
    """
    check_path(folder, "folder", "the path of a run folder")
    held = RunFolder.read(Path(folder))
    spec = recipe_of(held)
    result = read_result(spec, held)
    if result is None:
        raise InputError(f"{folder}: the run is not finished: continue it with fluxforge discover --resume {folder}")
    return Run(held.path, spec, result)
