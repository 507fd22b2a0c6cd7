"""Faults planted on purpose, one at a time: which does the suite see?

`make faults` copies the tree, replaces one text of one file, runs the tests named beside it, and prints a table. A
fault is seen if a test fails. `tests/test_faults.py` checks that every text still stands where it is replaced.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent


class Fault(NamedTuple):
    """A text that occurs once in a file of the package, what it becomes, and the tests that should fail."""

    file: str
    old: str
    new: str
    tests: str


FAULTS = (
    Fault("mesh/_build.py", "0.5 * (p + q)", "0.25 * (p + q)", "mesh/test_dual.py"),
    Fault(
        "mesh/_build.py",
        "x[faces.neighbour[inside]] - x[faces.owner[inside]]",
        "x[faces.owner[inside]] - x[faces.neighbour[inside]]",
        "mesh/test_dual.py",
    ),
    Fault("mesh/_cells.py", "moment / (3.0 *", "moment / (2.0 *", "mesh/test_geometry.py"),
    Fault(
        "graph/_padded_graph.py",
        "return self.scale * field[self.cell] + self.constant",
        "return self.scale * field[self.cell] - self.constant",
        "graph/test_padded_graph.py graph/test_pad.py",
    ),
    Fault("graph/_stages.py", "        rules |= each.ghosts\n", "", "graph/test_invariants.py graph/test_pad.py"),
    Fault(
        "graph/_neighbourhoods.py",
        "total / np.maximum(self.multiplicity, 1)",
        "total",
        "graph/test_neighbourhoods.py",
    ),
    Fault(
        "expression/_evaluate.py",
        "xp.where(condition != 0, xp.asarray(a, kind), xp.asarray(b, kind))",
        "xp.where(condition != 0, xp.asarray(b, kind), xp.asarray(a, kind))",
        "expression/test_formula_conditions.py",
    ),
    Fault("expression/_evaluate.py", "1.0 / xp.tan(a)", "xp.tan(a)", "expression"),
    Fault(
        "pde/_equation.py",
        "2 * sides[0] * sides[1] / (sides[0] + sides[1])",
        "(sides[0] + sides[1]) / 2",
        "pde/test_two_point.py pde/test_equation.py",
    ),
    Fault(
        "pde/_equation.py",
        "/ 2 - sp.Abs(along) * fastest * jump / 2",
        "/ 2 + sp.Abs(along) * fastest * jump / 2",
        "pde",
    ),
    Fault(
        "scheme/_tableau.py",
        "runge_kutta(((_HALF,), (0, 1)))",
        "runge_kutta(((_HALF,), (1, 0)))",
        "scheme/test_integrate.py",
    ),
    Fault("scheme/_integrate.py", '+ symbol("S") + reaction)', '+ symbol("S") - reaction)', "scheme/test_integrate.py"),
    Fault(
        "scheme/_linear.py",
        "(1 + (1 - theta) * (step - 1)) / (1 - theta * (step - 1))",
        "(1 + theta * (step - 1)) / (1 - (1 - theta) * (step - 1))",
        "scheme/test_amplification.py",
    ),
    Fault("stepping/_assemble.py", "b + matrix @ inner[2]", "b", "stepping/test_operator.py"),
    Fault(
        "stepping/_limit.py",
        "total = total @ A + c * np.eye(len(A))",
        "total = total @ A + c",
        "stepping/test_limit.py",
    ),
    Fault("loss/_loss.py", "problem.dt / 12.0 * bend", "problem.dt / 6.0 * bend", "loss"),
    Fault(
        "loss/_loss.py",
        "((theta, new), (1.0 - theta, problem.T))",
        "((1.0 - theta, new), (theta, problem.T))",
        "loss",
    ),
    Fault("data/_pairs.py", "return 0.5 * jnp.abs(", "return jnp.abs(", "data/test_two_cells.py"),
    Fault("data/_problem.py", "k3 = rate(u + 0.5 * h * k2)", "k3 = rate(u + h * k2)", "data/test_refined.py"),
    Fault(
        "train/_step.py",
        "better = loss < (1.0 - LEAST_DECREASE) * state.best",
        "better = loss > (1.0 - LEAST_DECREASE) * state.best",
        "train/test_optimiser.py train/test_guards.py train/test_train.py",
    ),
    Fault(
        "train/_optimise.py",
        "0.5 * (1.0 + jnp.cos(jnp.pi * late))",
        "0.5 * (1.0 + jnp.cos(late))",
        "train/test_optimiser.py",
    ),
    Fault(
        "distil/_solvers.py",
        "float(np.abs(r + J @ move).sum()), slack)",
        "float(np.abs(r - J @ move).sum()), slack)",
        "distil/test_solvers.py",
    ),
    Fault(
        "distil/_front.py",
        "if not kept or candidate.error < kept[-1].error",
        "if not kept or candidate.error > kept[-1].error",
        "distil/test_front.py",
    ),
    Fault(
        "certify/cost.py",
        "f(T + U) - at_T - at_U, at_T, at_U), _rel",
        "f(T + U) - at_T - at_U + at_U, at_T, at_U), _rel",
        "certify/test_black_box.py",
    ),
    Fault(
        "certify/_systems.py",
        "csr_array(eye_array(graph.cells) - step.M)",
        "csr_array(eye_array(graph.cells) + step.M)",
        "certify/test_space_order.py",
    ),
    Fault("gnn/_standard.py", "self.f((x - mean) / spread)", "self.f((x - mean) * spread)", "gnn/test_standard.py"),
    Fault(
        "paper/studies/rates.py",
        "np.quantile(values, (0.25, 0.5, 0.75))",
        "np.quantile(values, (0.0, 0.5, 1.0))",
        "paper/studies/test_rates.py",
    ),
    Fault(
        "run/_durable.py",
        'record["step"] <= step)',
        'record["step"] < step)',
        "run/test_run_metrics.py",
    ),
    Fault(
        "bench/_rows.py",
        "math.log(fine.cells / coarse.cells) / dimension",
        "math.log(fine.cells / coarse.cells)",
        "bench/test_bench_equations.py",
    ),
    Fault(
        "pipeline/_formula.py",
        "return Condition(worst.explained >= threshold, text)",
        "return Condition(worst.explained >= 0.0, text)",
        "pipeline/test_verdict.py",
    ),
)


def plant(fault: Fault, root: Path) -> str | None:
    """Run the tests of a planted fault in a copy of the tree: the first test that fails, or None if all pass."""
    place = root / "src/fluxforge" / fault.file
    sound = place.read_text()
    place.write_text(sound.replace(fault.old, fault.new))
    options = ("-q", "-x", "-n0", "-p", "no:cacheprovider", "--no-header", "--durations=0", "--durations-min=1e9")
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *(f"tests/{each}" for each in fault.tests.split())],
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(root / "src")},
            capture_output=True,
            text=True,
        )
    finally:
        place.write_text(sound)
    lines = [line for line in ran.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if ran.returncode not in (0, 1, 2):
        raise RuntimeError(f"the tests of {fault.file} did not run: {ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    return None if ran.returncode == 0 else (lines or ["collection failed"])[0]


def main() -> int:
    """Plant the faults asked for and print which were seen; 1 if one was not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("numbers", nargs="*", type=int, help="which faults, from 0 (default: all)")
    numbers = parser.parse_args().numbers or range(len(FAULTS))
    unseen = 0
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "tree"
        left_out = shutil.ignore_patterns(".git", ".venv", "__pycache__", "results", "_build")
        shutil.copytree(ROOT, root, ignore=left_out)
        for number in numbers:
            fault, start = FAULTS[number], time.perf_counter()
            seen = plant(fault, root)
            unseen += seen is None
            took = time.perf_counter() - start
            print(f"{number:2d} {took:4.0f} s  {fault.file}: {fault.new.strip()!r}: {seen or 'NOT SEEN'}", flush=True)
    print(f"{len(numbers) - unseen} of {len(numbers)} faults are seen")
    return int(unseen > 0)


if __name__ == "__main__":
    sys.exit(main())
