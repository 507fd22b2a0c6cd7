"""Runs from folders: again, and on from where they ended; and the steps that end at a given time."""

import json
from pathlib import Path

import numpy as np
import pytest

import fluxforge as ff
from fluxforge.errors import InputError
from fluxforge.mesh import right_triangles, squares
from fluxforge.scheme import find, save
from fluxforge.stepping import _simulation, read_problem, rerun, restart, simulate


@pytest.fixture(autouse=True)
def no_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures take most of the time of writing, and nothing is read from them."""
    monkeypatch.setattr(_simulation, "save_figure", lambda _, path, **__: path.write_bytes(b"drawn"))


PROBLEMS: dict[str, dict[str, object]] = {
    "still": {"scheme": "rk4", "initial": "x*y", "source": 1.0, "boundary": {"left": 1.0, "top": ff.Neumann(2.0)}},
    "moving": {
        "scheme": "midpoint",
        "initial": np.linspace(0.0, 1.0, 32),
        "source": "sin(30*t)*x - T",
        "boundary": {"left": ff.Robin("1 + t", "cos(20*t)"), "top": ff.Periodic("bottom")},
    },
    "implicit": {"scheme": "crank-nicolson", "source": "sin(30*t)", "boundary": ff.Dirichlet("x + t")},
    "carried": {
        "scheme": "midpoint",
        "equation": "advection-diffusion",
        "parameters": {"velocity": ("cos(t)", 0.5), "D": np.linspace(1.0, 2.0, 32)},
        "initial": "x",
        "boundary": {"left": ff.Inflow("1 + t")},
    },
}


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_a_restarted_run_has_the_bits_of_one_that_was_not_interrupted(name: str, tmp_path: Path) -> None:
    problem = PROBLEMS[name]
    whole = simulate(mesh=right_triangles(4), dt=1e-3, steps=12, save_every=1, force=True, **problem)  # type: ignore[arg-type]
    simulate(mesh=right_triangles(4), dt=1e-3, steps=5, force=True, **problem).save(tmp_path / "a")  # type: ignore[arg-type]
    rest = restart(tmp_path / "a", steps=7, save_every=1)
    assert np.array_equal(rest.fields, whole.fields[5:])
    assert np.array_equal(rest.times, whole.times[5:])
    rest.save(tmp_path / "b")
    again = rerun(tmp_path / "b")
    assert np.array_equal(again.fields, rest.fields)
    assert np.array_equal(again.times, rest.times)
    again.save(tmp_path / "c")
    files = sorted(path.name for path in (tmp_path / "b").glob("T_*.vtu"))
    assert len(files) == 8
    for file in (*files, "series.pvd", "problem.json"):
        assert (tmp_path / "b" / file).read_bytes() == (tmp_path / "c" / file).read_bytes()


def test_a_run_to_an_end_time_goes_on_to_another(tmp_path: Path) -> None:
    options = {"initial": "x", "source": "cos(40*t)", "dt": 1e-3}
    whole = simulate("midpoint", squares(3), end_time=0.02, save_every=2, **options)  # type: ignore[arg-type]
    simulate("midpoint", squares(3), end_time=0.01, **options).save(tmp_path / "a")  # type: ignore[arg-type]
    rest = restart(tmp_path / "a", end_time=0.02)
    assert rest.times[0] == 0.01
    assert rest.times[-1] == 0.02
    # The steps are equal but for the rounding of the end times.
    assert np.abs(rest.final - whole.final).max() < 1e-15
    assert restart(tmp_path / "a", end_time=0.012, dt=0.0005).steps == 4
    with pytest.raises(InputError, match=r"end_time 0.005 should be later than the time 0.01"):
        restart(tmp_path / "a", end_time=0.005)


def test_equal_steps_of_at_most_dt_hit_the_end() -> None:
    run = simulate("euler", squares(2), initial=1.0, dt=0.03, end_time=0.1, force=True, save_every=0.05)
    assert run.steps == 4
    assert run.dt == 0.025
    assert run.times.tolist() == [0.0, 0.05, 0.1]
    assert simulate("euler", squares(2), dt=0.1, end_time=0.3, force=True).steps == 3


@pytest.mark.parametrize(
    ("scheme", "words"),
    [("rk4", "0.9 of the stability limit"), ("crank-nicolson", "no stability limit, 100 steps to the end")],
)
def test_a_step_may_be_left_to_the_program(scheme: str, words: str) -> None:
    run = simulate(scheme, squares(4), initial=1.0, dt="auto", end_time=1.0)
    assert run.dt_choice is not None
    assert words in run.dt_choice
    if run.dt_limit != np.inf:
        assert run.dt_limit is not None
        assert 0.8 * run.dt_limit < run.dt <= 0.9 * run.dt_limit


def test_a_scheme_of_unknown_stage_times_says_so(tmp_path: Path) -> None:
    source = "cos(9*t)"
    path = tmp_path / "mine.json"
    save(find("midpoint"), path)
    assert simulate(path, squares(2), source=source, dt=1e-3, steps=2).notes == ()
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document | {"name": "mine"}))
    (note,) = simulate(path, squares(2), source=source, dt=1e-3, steps=2).notes
    assert "the times of its stages are not known" in note
    assert simulate(path, squares(2), source=1.0, dt=1e-3, steps=2).notes == ()


def test_folders_that_cannot_be_run_again_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no problem.json"):
        rerun(tmp_path)

    def heater(x: np.ndarray, y: np.ndarray, t: float) -> np.ndarray:
        return x * t

    simulate("euler", squares(2), source=heater, dt=1e-3, steps=2).save(tmp_path / "a")
    with pytest.raises(InputError, match="source was the Python function 'heater'"):
        rerun(tmp_path / "a")
    simulate("euler", squares(2), dt=1e-3, steps=2).save(tmp_path / "b")
    path = tmp_path / "b" / "problem.json"
    whole = json.loads(path.read_text())
    for change in ({"scheme": 3}, {"boundary": {"kind": "wet"}}, {"solver": "magic"}, {"mesh": {}}, {"source": [None]}):
        path.write_text(json.dumps(whole | change))
        with pytest.raises(InputError, match=r"problem.json: ") as caught:
            read_problem(tmp_path / "b")
        assert "\n" not in str(caught.value)
    (tmp_path / "b" / "problem.npz").write_bytes(b"PK broken")
    with pytest.raises(InputError, match=r"problem.npz: cannot be read"):
        rerun(tmp_path / "b")
