"""Code for a scheme: LaTeX, NumPy, JAX, C. One target per file, one signature for all."""

from fluxforge.scheme.emit._c import emit_c
