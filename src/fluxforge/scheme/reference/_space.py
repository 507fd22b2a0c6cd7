"""What the plain two-point flux of diffusion claims in space."""

PLAIN_FLUX_ORDERS = {"squares": 2.0, "cross": 2.0, "equilateral": 2.0, "right": 0.0, "jittered": 0.0}
"""Order 2 where the line of centroids is perpendicular to the face; no convergence where it is not.

On unstructured meshes the error falls for as long as the generator makes locally regular triangles: no claim.
"""

NO_ORDER = dict.fromkeys(("squares", "cross", "equilateral", "right", "jittered", "irregular"), 0.0)
"""A scheme that solves another equation converges nowhere."""
