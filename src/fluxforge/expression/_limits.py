"""The caps that keep a formula small, whoever wrote it. SymPy computes eagerly, so each is checked beforehand."""

import sys

MAX_CHARACTERS = 10_000
MAX_DEPTH = 50
MAX_NODES = 5_000
MAX_EXPONENT = 16
MAX_BITS = 256
"""Bits of the numerator and of the denominator of any exact number, written or computed."""

MAX_DIGITS = 77
"""Digits of a literal integer: 10**77 has 256 bits, so that every number which is computed can also be written."""

MAX_DEGREE, MAX_FRACTIONS = 64, 6
"""Total degree, and sums within denominators within denominators: SymPy's time is exponential in both."""

SMALLEST, LARGEST = sys.float_info.min, sys.float_info.max
"""Normal doubles: below the first a decimal loses digits, beyond the second it is infinite."""

EXACT_BELOW = 1e15
"""A decimal with an integer value smaller than this is that integer: 2.0*x is 2*x."""
