"""Known and discovered limiters, compared with schemes of fifth order for transport along rows of cells."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fluxforge.bench._limiter_triangles import TriangleBench, bench_triangles, schemes_on_triangles
from fluxforge.bench._weno import PEERS
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._print import to_text
from fluxforge.limiter._rows import (
    CELLS,
    HORIZONS,
    Ratio,
    Step,
    advance_each,
    cell_averages,
    compare_means,
    draw_rows,
    limited_step,
)
from fluxforge.limiter._waves import COURANT_NUMBERS, average_cells, jiang_shu, jiang_shu_rows
from fluxforge.scheme.limiters import LIMITERS, C, Limiter, Q, R

# Speed, end time and Courant number of the sine, the square and the composite wave.
SPEED, END, COURANT = 8.0, 1.0, 0.4
REFINEMENTS = (25, 50, 100, 200, 400)
SMOOTH_COURANT, SMOOTH_TURNS = 0.4, 10
# Number of fresh profiles: the standard error of a ratio of two limiters after 2,048 steps is 0.035; with 128, 0.1.
FRESH_ROWS, FRESH_SEED = 1024, 2**30 + 22
# The limiter to whose errors those on fresh profiles are compared.
PEER = "cfl-superbee"


@dataclass(frozen=True)
class WaveRow:
    """Errors on one wave: mean and largest |error|, and the total variation over the exact one."""

    l1: float
    linf: float
    variation: float


@dataclass(frozen=True)
class LimiterRow:
    """The measurements of one limiter.

    - `jiang_shu`: mean |error| by Courant number;
    - `waves`: sine, square and composite wave at c = 0.4;
    - `smooth`: a sine after ten periods; a limiter that squares it has a large L∞ error, but keeps the total variation;
    - `orders`: of the mean |error| of that sine after one period, between successive grids of 25 to 400 cells;
    - `fresh`: mean |error| on random profiles by number of steps; `ratios`: the same over that of CFL-superbee, with
      standard errors.
    """

    name: str
    jiang_shu: dict[str, float]
    waves: dict[str, WaveRow]
    smooth: WaveRow
    orders: tuple[float, ...]
    fresh: dict[str, float]
    ratios: dict[str, Ratio]


@dataclass(frozen=True)
class LimiterBench:
    """The rows of all schemes, the formulas φ of the limiters by name, and the measurements on triangles.

    Formulas depend on r and c; those of the limiters named in `downwind` also on q.
    """

    rows: tuple[LimiterRow, ...]
    formulas: dict[str, str]
    downwind: tuple[str, ...] = ()
    triangles: TriangleBench = field(default_factory=TriangleBench)

    def document(self) -> dict[str, Any]:
        """The JSON document."""
        return {
            "jiang_shu": {row.name: row.jiang_shu for row in self.rows},
            "formulas": {name: text for name, text in self.formulas.items() if name not in self.downwind},
            "formulas_with_q": {name: self.formulas[name] for name in self.downwind},
            "waves": {row.name: {wave: asdict(own) for wave, own in row.waves.items()} for row in self.rows},
            "smooth": {row.name: asdict(row.smooth) | {"orders": list(row.orders)} for row in self.rows},
            "fresh": {row.name: row.fresh for row in self.rows},
            "fresh_ratios": {
                row.name: {steps: ratio._asdict() for steps, ratio in row.ratios.items()} for row in self.rows
            },
            "triangles": self.triangles.document(),
        }


def step_of(limiter: Limiter) -> Step:
    """The step of transport along rows with a limiter given as a formula."""
    return limited_step(lambda r, q, c: evaluate(limiter.phi, {R: r, Q: q, C: c}, jnp) + 0 * r)


def bench_limiter(
    progress: Callable[[str], None], more: Mapping[str, Limiter] | None = None, *, triangles: bool = True
) -> LimiterBench:
    """Measure the built-in limiters and those in `more`, by name, in double precision.

    With `triangles`, some of them are also measured on triangles, with the slopes of Barth and Jespersen and of
    Venkatakrishnan.
    """
    limiters = {**LIMITERS, **(more or {})}
    steps = {**{name: step_of(each) for name, each in limiters.items()}, **PEERS}
    rows = []
    with jax.enable_x64(True):
        strongest = _fresh_errors(_make_run(steps[PEER]))
        for name, step in steps.items():
            progress(name)
            rows.append(_measure(name, step, strongest))
        on_triangles = bench_triangles(progress, schemes_on_triangles(more)) if triangles else TriangleBench()
    return LimiterBench(
        rows=tuple(rows),
        formulas={name: to_text(each.phi) for name, each in limiters.items()},
        downwind=tuple(name for name, each in limiters.items() if Q in each.phi.free_symbols),
        triangles=on_triangles,
    )


def _measure(name: str, step: Step, strongest: Mapping[str, np.ndarray]) -> LimiterRow:
    """The measurements of one limiter; `strongest` has the errors of CFL-superbee on the fresh profiles, by steps."""
    wave, profiles = jiang_shu_rows(step)
    errors = jnp.abs(profiles - wave[None]).mean(axis=1)
    run = _make_run(step)
    fresh = strongest if name == PEER else _fresh_errors(run)
    return LimiterRow(
        name=name,
        jiang_shu={f"{c:g}": float(error) for c, error in zip(COURANT_NUMBERS, errors, strict=True)},
        waves=_waves(run),
        smooth=turn_sine(run, 100, SMOOTH_TURNS),
        orders=_orders(run),
        fresh={steps: float(own.mean()) for steps, own in fresh.items()},
        ratios={steps: compare_means(own, strongest[steps]) for steps, own in fresh.items()},
    )


Run = Callable[[Array, Array, Array], Array]


def _make_run(step: Step) -> Run:
    return jax.jit(partial(advance_each, step))


def _row(run: Run, wave: np.ndarray, length: float, distance: float, courant: float) -> WaveRow:
    """Errors of a wave after it has travelled `distance`, a multiple of the length of its periodic interval."""
    exact = distance / length * len(wave) / courant
    steps = int(np.ceil(exact - 1e-9))
    u = run(jnp.asarray(wave)[None], jnp.asarray([courant * exact / steps]), jnp.asarray([steps]))[0]
    return _compare(np.asarray(u), wave)


def _compare(u: np.ndarray, wave: np.ndarray) -> WaveRow:
    variation = [float(np.abs(each - np.roll(each, 1)).sum()) for each in (u, wave)]
    return WaveRow(float(np.abs(u - wave).mean()), float(np.abs(u - wave).max()), variation[0] / variation[1])


def _sine(x: np.ndarray) -> np.ndarray:
    return np.sin(2 * np.pi * x)


def _square(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x - 0.5) < 0.25, 1.0, 0.0)


def _waves(run: Run) -> dict[str, WaveRow]:
    """Sine and square on [0, 1] with 100 cells, Jiang's and Shu's wave on [−1, 1] with 200."""
    cases = (("sine", 0.0, 100, _sine), ("square", 0.0, 100, _square), ("composite", -1.0, 200, jiang_shu))
    return {
        name: _row(run, average_cells(low, 1.0, cells, wave), 1.0 - low, SPEED * END, COURANT)
        for name, low, cells, wave in cases
    }


def turn_sine(run: Run, cells: int, turns: int) -> WaveRow:
    """Errors of a sine on `cells` cells after `turns` periods."""
    return _row(run, average_cells(0.0, 1.0, cells, _sine), 1.0, float(turns), SMOOTH_COURANT)


def _orders(run: Run) -> tuple[float, ...]:
    errors = [turn_sine(run, cells, 1).l1 for cells in REFINEMENTS]
    return tuple(float(np.log2(coarse / fine)) for coarse, fine in pairwise(errors))


def _fresh_errors(run: Run) -> dict[str, np.ndarray]:
    """Mean |error| of each of FRESH_ROWS random profiles that no training uses, by number of steps."""
    profiles, c = draw_rows(jax.random.key(FRESH_SEED), FRESH_ROWS)
    u, done, errors = cell_averages(profiles, CELLS, jnp.zeros_like(c)), 0, {}
    for steps in HORIZONS:
        u, done = run(u, c, jnp.full(c.shape, steps - done)), steps
        exact = cell_averages(profiles, CELLS, c * steps / CELLS)
        errors[f"{steps}"] = np.asarray(jnp.abs(u - exact).mean(axis=-1))
    return errors
