"""The largest |z| on the negative real axis up to which |R(z)| ≤ 1, by built-in scheme."""

import math

INTERVALS = {
    "euler": 2.0,
    "midpoint": 2.0,
    "midpoint-printed": 2.0,
    "rk4": 2.785293563405282,
    "rkl2-8": 35.0,
    "two-hop": 2.0,
    "two-hop-printed": 2.0,
    "crank-nicolson": math.inf,
    "crank-nicolson-printed": 0.0,
    "corrected": 2.0,
}
LIMITED = [name for name, interval in INTERVALS.items() if 0 < interval < math.inf]
