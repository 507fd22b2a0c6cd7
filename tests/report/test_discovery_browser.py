"""The page as a browser reads it: its text is parsed, its formula is MathML, and it asks for nothing from elsewhere."""

import re
import shutil
import subprocess

import pytest
from _discovery_result import METRICS, READ, read

from fluxforge.report import write_discovery
from fluxforge.scheme import find

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here to open the page with")
# What pages say on the console is logged under this word; what is missing or refused, too.
CONSOLE = re.compile(r"^.*:CONSOLE.*$", re.MULTILINE)
# No name is found, so that whatever is not in the page is not there.
OFFLINE = "--host-resolver-rules=MAP * ~NOTFOUND"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    write_discovery(
        read(READ), folder, scheme=find("midpoint"), certificate=None, metrics=METRICS[:2], command="fluxforge"
    )
    return folder / "report.html"


def dump_page(path, profile, *, dark=False):
    """The document that the browser made of a file, and what it logged."""
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0", OFFLINE)
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    command = [PROGRAM, *flags, scheme, f"--user-data-dir={profile}", "--dump-dom", path.resolve().as_uri()]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120, check=True)
    return done.stdout, CONSOLE.findall(done.stderr)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_opens_without_complaint_and_its_formula_is_typeset(report, tmp_path, dark):
    page, said = dump_page(report, tmp_path, dark=dark)
    assert said == []
    formula = page[page.index('aria-label="The discovered formula"') :]
    assert re.match(r'[^>]*><math display="block"><mtable', formula)
    assert "<mfrac>" in formula
    assert "The network's stencil" in page
    # Front-less run: loss, errors and two panels of the limit.
    assert page.count("<svg") == 4
    assert page.rstrip().endswith("</html>")


def test_the_browser_complains_about_a_page_that_asks_for_more(report, tmp_path):
    spoiled = tmp_path / "spoiled.html"
    text = report.read_text(encoding="utf-8")
    spoiled.write_text(text.replace("</body>", '<img src="https://example.org/x.png" alt=""></body>'), encoding="utf-8")
    _, said = dump_page(spoiled, tmp_path / "profile")
    assert any("Content Security Policy" in line for line in said)
