"""Repeats the tests as other processors would run them: `make portable`, or `python tests/portable.py --help`.

Words that are not options of this script go to pytest: `-x`, or tests to run instead of the numerical rooms.
A variant limits the instructions XLA compiles to (XLA_FLAGS=--xla_cpu_max_isa=…), or the kernels OpenBLAS chooses
(OPENBLAS_CORETYPE), or both. Variants this processor cannot run are left out and named. One variant at a time; a table
at the end; exit code 1 if a test of any variant fails.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import machine

TESTS = Path(__file__).parent
# Where results come from floating-point arithmetic.
NUMERICAL = (
    "data", "decoys", "pipeline", "distil", "expression", "gnn", "loss", "graph", "paper",
    "scheme", "stepping", "train", "certify",
)  # fmt: skip
XLA = ("SSE4_2", "AVX2", "AVX512")
# Core types of OpenBLAS and the instructions their kernels use: one the processor lacks ends the process.
OPENBLAS = {"Nehalem": "SSE4_2", "Haswell": "AVX2", "Zen": "AVX2", "SkylakeX": "AVX512"}


@dataclass(frozen=True)
class Variant:
    """A processor to imitate; an empty word leaves the choice to the library."""

    xla: str = ""
    openblas: str = ""
    threads: int = 1

    @property
    def name(self) -> str:
        words = (self.xla and f"xla={self.xla}", self.openblas and f"openblas={self.openblas}")
        several = f"threads={self.threads}" if self.threads != 1 else ""
        return ",".join(filter(None, (*words, several))) or "native"

    def runs_on(self, sets: list[str]) -> bool:
        """Whether a processor with these instruction sets has what the variant needs."""
        needed = {self.xla, OPENBLAS.get(self.openblas, "")} - {""}
        return needed <= set(sets)

    def environment(self) -> dict[str, str]:
        """The environment its tests run in. `conftest.py` keeps what is set here."""
        changed = {"XLA_FLAGS": os.environ.get("XLA_FLAGS", ""), "FLUXFORGE_TEST_THREADS": str(self.threads)}
        if self.xla:
            changed["XLA_FLAGS"] = f"{changed['XLA_FLAGS']} --xla_cpu_max_isa={self.xla}".strip()
        if self.openblas:
            changed["OPENBLAS_CORETYPE"] = self.openblas
        return {**os.environ, **changed}


@dataclass(frozen=True)
class Outcome:
    """What pytest said at its end."""

    variant: Variant
    counts: dict[str, int]
    code: int
    seconds: float

    @property
    def failures(self) -> int:
        return self.counts.get("failed", 0) + self.counts.get("error", 0) + self.counts.get("errors", 0)

    @property
    def verdict(self) -> str:
        """Empty if all is well; pytest's exit code says more than its counts (5: no test was found)."""
        return "" if self.code == 0 else "failed" if self.code == 1 else f"pytest ended with {self.code}"


def variants() -> list[Variant]:
    """Native settings with one and two threads, each choice of one library, and both libraries' choices together."""
    pairs = [Variant(xla, core) for core in OPENBLAS for xla in ("SSE4_2", "AVX2")]
    singles = [*(Variant(xla) for xla in XLA), *(Variant(openblas=core) for core in OPENBLAS)]
    return [Variant(), Variant(threads=2), *singles, *pairs]


def read_counts(line: str) -> dict[str, int]:
    """The counts in pytest's last line: "2 failed, 10 passed in 3 s" gives failed 2, passed 10."""
    return {word: int(count) for count, word in re.findall(r"(\d+) ([a-z]+)", line.split(" in ")[0])}


def run(variant: Variant, arguments: list[str]) -> Outcome:
    """The tests of a variant, with pytest's output passed on as it comes."""
    began, last = time.monotonic(), ""
    command = [sys.executable, "-m", "pytest", *arguments]
    root, environment = TESTS.parent, variant.environment()
    with subprocess.Popen(command, cwd=root, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            last = line.strip(" =\n") or last
    return Outcome(variant, read_counts(last), process.returncode, time.monotonic() - began)


def table(outcomes: list[Outcome]) -> str:
    """Variant, passed, failed, seconds."""
    wide = max(len(outcome.variant.name) for outcome in outcomes)
    rows = [f"{'variant':{wide}}  passed  failed  seconds"]
    for outcome in outcomes:
        numbers = f"{outcome.counts.get('passed', 0):6}  {outcome.failures:6}  {outcome.seconds:7.0f}"
        rows.append(f"{outcome.variant.name:{wide}}  {numbers}  {outcome.verdict}".rstrip())
    return "\n".join(rows)


def parse(words: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """The options, and what is left for pytest."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="the whole suite, not only the numerical rooms")
    parser.add_argument("--list", action="store_true", help="name the variants this processor can run, and stop")
    parser.add_argument("--variant", action="append", metavar="NAME", help="only this variant; may be repeated")
    return parser.parse_known_args(words)


def pytest_arguments(more: list[str], *, everything: bool) -> list[str]:
    """What pytest is given: the caller's words last, and the numerical rooms unless those name tests themselves."""
    named = any((TESTS.parent / word.split("::")[0]).exists() for word in more if not word.startswith("-"))
    rooms = () if everything or named else NUMERICAL
    return ["-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder", *(f"tests/{room}" for room in rooms), *more]


def main(words: list[str]) -> int:
    """Runs the chosen variants that this processor can run."""
    options, more = parse(words)
    known, sets = {variant.name: variant for variant in variants()}, machine.instruction_sets(machine.flags())
    if unknown := [name for name in options.variant or () if name not in known]:
        print(f"there is no variant {unknown[0]!r}; there are: {' '.join(known)}", file=sys.stderr)
        return 2
    chosen = [known[name] for name in options.variant or known]
    possible = [variant for variant in chosen if variant.runs_on(sets)]
    for variant in chosen:
        if variant not in possible:
            print(f"left out: {variant.name}: this processor has {' '.join(sets) or 'no known instruction set'}")
    if options.list:
        print("\n".join(variant.name for variant in possible))
        return 0
    if not possible:
        print("none of these variants can run here", file=sys.stderr)
        return 2
    arguments = pytest_arguments(more, everything=options.all)
    outcomes = []
    for variant in possible:
        print(f"\n===== {variant.name} =====", flush=True)
        outcomes.append(run(variant, arguments))
    print(f"\n{table(outcomes)}")
    return int(any(outcome.code for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
