"""The runs of the gallery, and its options."""

from pathlib import Path

import pytest

from fluxforge.errors import InputError
from fluxforge.sweeps import parse_seeds, plan_gallery


@pytest.mark.parametrize(("text", "seeds"), [("3", range(3)), ("10:20", range(10, 20))])
def test_seeds_are_a_number_or_a_range(text, seeds):
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["0", "5:5", "6:5", "x", "1:", "-1:3", "1e3", "0:20000"])
def test_other_seeds_are_refused(text):
    with pytest.raises(InputError, match="--seeds"):
        parse_seeds(text)


def test_decoys_take_the_first_seed_and_commands_make_the_same_runs(tmp_path: Path):
    runs = plan_gallery(tmp_path, parse_seeds("10:12"))
    assert [run.name for run in runs][:2] == ["conductance-10", "conductance-11"]
    assert [run.seed for run in runs if run.exhibit.decoy] == [10] * 5
    (traffic,) = (run for run in runs if run.name == "godunov-traffic-11")
    assert traffic.command.startswith("fluxforge discover godunov --seed 11 --equation traffic -o ")
    assert (traffic.spec.seed, traffic.spec.equation) == (11, "traffic")
