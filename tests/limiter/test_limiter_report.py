"""The report of a run that trains a limiter, written again from its record."""

import json
from pathlib import Path

import pytest

from fluxforge import recipe
from fluxforge.certify.limiter import limiter_region
from fluxforge.expression import parse
from fluxforge.pipeline import _discover, _limiter, resume
from fluxforge.pipeline._discover import write_outputs
from fluxforge.pipeline._folder import describe_run
from fluxforge.pipeline._limiter import certify_limiter, report_limiter
from fluxforge.pipeline._outcome import LIMITER, Outcome
from fluxforge.report import _next
from fluxforge.run import RunFolder, silent
from fluxforge.run.limiter import LimiterResult, LimiterRow
from fluxforge.run.result import to_document
from fluxforge.scheme import find
from toy_pipeline import _verify

FORMULA = "max(0, min(min(2*r/c, 2/(1 - c)), 0.9*r + 0.1))"


@pytest.fixture
def certified(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the schemes that are verified, without the work."""
    names: list[str] = []
    for module in (_limiter, _discover):
        monkeypatch.setattr(module, "verify_scheme", lambda each, tell: names.append(each.name) or _verify(each, tell))
    monkeypatch.setattr(_next, "summarise", lambda *_: "not verified")
    return names


@pytest.fixture
def run(certified: list[str], tmp_path: Path) -> Path:
    """A finished run that refused this formula."""
    row = LimiterRow(name="discovered-ramp", formula=FORMULA, fresh={"128": 0.9}, worst=0.9, jiang_shu={"0.5": 0.02})
    spec, scheme = recipe.load("limiter"), find("van-leer")
    result = LimiterResult(
        recipe="limiter",
        seed=0,
        member=0,
        equation="advection",
        verdict="refused",
        expected="approximation",
        as_expected=False,
        reasons=("NO: it was not trained",),
        formula=FORMULA,
        limiters=(row,),
        families=(),
        seconds={"train": 1.0},
        environment={"python": "toy"},
    )
    certificate = certify_limiter(limiter_region(parse(FORMULA, ("r", "c"))), scheme, silent)
    with RunFolder.create(tmp_path / "run", description=describe_run(spec, "toy"), warn=pytest.fail) as folder:
        written = write_outputs(Outcome(result, scheme, certificate), report_limiter, spec, folder)
        folder.finish(LIMITER, to_document(written))
    certified.clear()
    return tmp_path / "run"


def test_a_restored_report_shows_the_bounds_of_the_limiter_as_the_certificate_does(
    run: Path, certified: list[str]
) -> None:
    before = (run / "report.html").read_bytes()
    (run / "report.html").unlink()
    warnings: list[str] = []
    resume(run, warn=warnings.append)
    assert warnings == [f"{run / 'report.html'}: was missing and has been restored"]
    assert (run / "report.html").read_bytes() == before
    assert certified == ["van-leer"]
    (line,) = json.loads((run / "candidate-certificate.json").read_text(encoding="utf-8"))["lines"]
    assert f"<td>{line['property']}</td>" in before.decode()


def test_a_figure_alone_is_restored_without_another_certificate(run: Path, certified: list[str]) -> None:
    (run / "phi.png").unlink()
    resume(run, warn=lambda _: None)
    assert (run / "phi.png").exists()
    assert certified == []
