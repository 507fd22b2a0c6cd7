"""Wilson's interval against published values, recovery rates by setting, and the files of a summary."""

import csv
import json

import pytest

from fluxforge.errors import InputError
from fluxforge.sweeps import PointResult, Sweep, wilson_interval
from fluxforge.sweeps._summary import count_rates, write_summary


# R. G. Newcombe, Statistics in Medicine 17 (1998) 857-872, table I, method 3, to four digits; 8 of 10 to three.
@pytest.mark.parametrize(
    ("successes", "trials", "low", "high", "digits"),
    [
        (81, 263, 0.2553, 0.3662, 4),
        (15, 148, 0.0624, 0.1605, 4),
        (0, 20, 0.0, 0.1611, 4),
        (1, 29, 0.0061, 0.1718, 4),
        (8, 10, 0.490, 0.943, 3),
    ],
)
def test_wilson_as_published(successes, trials, low, high, digits):
    interval = wilson_interval(successes, trials)
    assert [round(bound, digits) for bound in interval] == [low, high]
    mirrored = wilson_interval(trials - successes, trials)
    assert mirrored == pytest.approx(
        (1 - interval[1], 1 - interval[0]), abs=1e-15
    )  # a few roundings of numbers below 1


def test_wilson_at_its_ends():
    assert wilson_interval(10, 10)[1] == 1.0
    assert wilson_interval(0, 7)[0] == 0.0
    assert wilson_interval(0, 0) == (0.0, 1.0)
    narrow, wide = wilson_interval(5, 10, 0.8), wilson_interval(5, 10, 0.99)
    assert wide[0] < narrow[0] < 0.5 < narrow[1] < wide[1]
    for wrong in ((3, 2), (-1, 2)):
        with pytest.raises(InputError, match="successes"):
            wilson_interval(*wrong)
    with pytest.raises(InputError, match="confidence"):
        wilson_interval(1, 2, 1.0)


def result(width, seed, verdict):
    name = f"network.width={width},seed={seed}"
    changes = {"network.width": width, "seed": seed}
    if verdict is None:
        return PointResult(name=name, changes=changes, folder=f"runs/{name}", outcome="failed", error="<b>no</b> space")
    return PointResult(
        name=name, changes=changes, folder=f"runs/{name}", outcome="finished", verdict=verdict, formula="z = Σ A<B",
        loss=1.25e-9, network_loss=2.0, seconds=12.5,
    )  # fmt: skip


RESULTS = (
    *(result(16, seed, "recovered" if seed < 8 else "approximation") for seed in range(10)),
    result(32, 0, "recovered"),
    result(32, 1, "refused"),
    result(32, 2, None),
)


def test_rates_are_counted_per_setting_without_the_seed():
    narrow, wide = count_rates(RESULTS)
    assert narrow.changes == {"network.width": 16}
    assert (narrow.recovered, narrow.of, narrow.approximation, narrow.failed) == (8, 10, 2, 0)
    assert (narrow.low, narrow.high) == wilson_interval(8, 10)
    assert narrow.rate == 0.8
    assert (wide.recovered, wide.of, wide.refused, wide.failed, wide.rate) == (1, 2, 1, 1, 0.5)
    (none,) = count_rates([result(8, 0, None)])
    assert (none.of, none.rate, none.failed) == (0, None, 1)


def test_the_files_of_a_summary_say_the_same(tmp_path):
    ended = Sweep(
        folder=tmp_path,
        recipe="toy",
        over={"network.width": (16, 32), "seed": tuple(range(10))},
        points=RESULTS,
        rates=count_rates(RESULTS),
        environment={"python": "3"},
    )
    write_summary(ended)
    held = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
    assert held["format"] == "fluxforge-sweep-summary"
    assert [point["verdict"] for point in held["points"]] == [point.verdict for point in RESULTS]
    assert held["rates"][0]["high"] == wilson_interval(8, 10)[1]
    with (tmp_path / "summary.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["network.width"] for row in rows] == ["16"] * 10 + ["32"] * 3
    assert rows[0]["loss"] == "1.25e-09"
    assert rows[-1]["error"] == "<b>no</b> space"
    page = (tmp_path / "summary.html").read_text(encoding="utf-8")
    assert "0.490 to 0.943" in page
    assert "&lt;b&gt;no&lt;/b&gt; space" in page
    assert "<b>no" not in page
    assert "z = Σ A&lt;B" in page
    assert repr(ended).startswith("Sweep(toy: 9 recovered, 2 approximation, 1 refused, 1 failed;")
