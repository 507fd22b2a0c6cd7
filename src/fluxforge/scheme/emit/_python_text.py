"""The parts of an emitted Python module that are the same for every scheme; `$np` is `np` or `jnp`."""

CALL = "step(T, S, mesh, $arguments) takes T and the sources S of the cells and returns T one time step later."

MESH = '''\
class Mesh(NamedTuple):
    """(cells, slots) arrays: an entry per face of a cell as it sees it. Unused slots: node = the cell, and 1."""

    node: $Array  # the node across the face
    used: $Array  # bool: false in the fourth slot of a triangle among quadrilaterals
    A: $Array  # area of the face, a length in the plane
    delta: $Array  # |d|
    n_x: $Array  # unit normal of the face, away from the cell
    n_y: $Array
    d_x: $Array  # vector from the cell's centroid to the node
    d_y: $Array
    chi: $Array  # 0 at a Neumann face, 1 elsewhere
    V: $Array  # (cells,): volume of the cell, an area in the plane
    ghost_owner: $Array  # (ghosts,): the cell the ghost belongs to
    ghost_neumann: $Array  # (ghosts,) bool: Neumann or Dirichlet
    ghost_value: $Array  # (ghosts,): q or g
    ghost_delta: $Array  # (ghosts,): distance from the owner's centroid
    n_z: $Array | None = None  # in space: the third components
    d_z: $Array | None = None
    d_n: $Array | None = None  # d.n, for the schemes that read it
    d_t: $Array | None = None  # |d - (d.n) n|, likewise
    p_x: $Array | None = None  # from the cell's centroid to the centre of the face, likewise
    p_y: $Array | None = None
    p_z: $Array | None = None
    behind: $Array | None = None  # for lines of cells: the node across the face of the cell opposite to this one
    ahead: $Array | None = None  # and the node across the face of `node` opposite to this one; a ghost itself
'''

HELPERS = {
    "_below": '''\
def _below(a, b):
    """1 where a < b and 0 elsewhere, in the precision of the two."""
    return $np.asarray(a < b, $np.result_type(a, b))
''',
    "_at_most": '''\
def _at_most(a, b):
    """1 where a <= b and 0 elsewhere, in the precision of the two."""
    return $np.asarray(a <= b, $np.result_type(a, b))
''',
    "_select": '''\
def _select(condition, a, b):
    """a where the condition is not 0 and b elsewhere, in the precision of the three."""
    kind = $np.result_type(condition, a, b)
    return $np.where(condition != 0, $np.asarray(a, kind), $np.asarray(b, kind))
''',
    "_sum": '''\
def _sum(message, used, mesh):
    """Per cell, the sum of a message over the slots in use."""
    return $np.where(used, message, $np.zeros((), mesh.V.dtype)).sum(axis=1)
''',
    "_least": '''\
def _least(message, used, mesh):
    """Per cell, the least of a message over the slots in use."""
    return $np.where(used, message, $np.full((), $np.inf, mesh.V.dtype)).min(axis=1)
''',
    "_largest": '''\
def _largest(message, used, mesh):
    """Per cell, the largest of a message over the slots in use."""
    return $np.where(used, message, $np.full((), -$np.inf, mesh.V.dtype)).max(axis=1)
''',
    "_dirichlet": '''\
def _dirichlet(f, mesh):
    """f at every node, for a temperature: a Dirichlet ghost shows g, a Neumann ghost its owner's f + q*delta."""
    mirrored = f[mesh.ghost_owner] + mesh.ghost_value * mesh.ghost_delta
    return $np.concatenate([f, $np.where(mesh.ghost_neumann, mirrored, mesh.ghost_value)])
''',
    "_zero": '''\
def _zero(f, mesh):
    """f at every node, for a source or a rate: a Dirichlet ghost shows 0, a Neumann ghost its owner's f."""
    return $np.concatenate([f, $np.where(mesh.ghost_neumann, f[mesh.ghost_owner], 0.0)])
''',
    "_owner": '''\
def _owner(f, mesh):
    """f at every node, for a gradient: a ghost shows its owner's f."""
    return $np.concatenate([f, f[mesh.ghost_owner]])
''',
    "_volume": '''\
def _volume(mesh):
    """V of every node: infinite at a Dirichlet ghost, the owner's at a Neumann ghost."""
    return $np.concatenate([mesh.V, $np.where(mesh.ghost_neumann, mesh.V[mesh.ghost_owner], $np.inf)])
''',
    "_paths": '''\
def _paths(mesh):
    """The paths P -> N -> Q, N a cell and Q any node: N and Q, the slots k of P and l of N, and which paths exist."""
    cells, slots = mesh.node.shape
    k, l = $np.divmod($np.arange(slots * slots), slots)
    l = l[None, :]
    P = $np.arange(cells, dtype=mesh.node.dtype)[:, None]
    N = mesh.node[:, k]
    inside = mesh.used[:, k] & (N < cells)
    N = $np.where(inside, N, P)
    exists = inside & mesh.used[N, l]
    return N, $np.where(exists, mesh.node[N, l], P), k, l, exists
''',
    "_ring": '''\
def _ring(mesh):
    """The cells Q two faces from P, each on the first path that leads to it; `same` pairs the paths with equal ends."""
    N, Q, k, l, exists = _paths(mesh)
    cells = len(mesh.V)
    P = $np.arange(cells, dtype=mesh.node.dtype)[:, None]
    beside = ((Q[:, :, None] == mesh.node[:, None, :]) & mesh.used[:, None, :]).any(axis=2)
    far = exists & (Q < cells) & (Q != P) & ~beside
    same = far[:, :, None] & far[:, None, :] & (Q[:, :, None] == Q[:, None, :])
    path = $np.arange(Q.shape[1])
    ring = far & ~(same & (path[:, None] > path[None, :])[None, :, :]).any(axis=2)
    return N, $np.where(ring, Q, P), k, l, ring, same
''',
    "_mean": '''\
def _mean(f, same):
    """The mean of f over the paths that end where each path ends."""
    total = $np.where(same, f[:, None, :], 0.0).sum(axis=2)
    return total / $np.maximum(same.sum(axis=2), 1).astype(total.dtype)
''',
}

NEEDS = {"_ring": ("_paths",)}
"""The helpers that a helper calls."""

CG_NUMPY = '''\
def step(T, S, mesh, $arguments, tolerance=1e-13, max_iterations=10_000):
    """T one time step later, by conjugate gradients on V*(I - theta*(F' - I)); RuntimeError if they fail."""
    theta = $theta
    tolerance = max(tolerance, 8 * np.finfo(T.dtype).eps)
    still, nothing = mesh._replace(ghost_value=np.zeros_like(mesh.ghost_value)), np.zeros_like(T)

    def system(x):
        return mesh.V * (x - theta * (_explicit(x, nothing, still, $arguments) - x))

    diagonal = mesh.V * (1 + theta * (1 - _diagonal(mesh, $arguments)))
    r = mesh.V * (_explicit(T, S, mesh, $arguments) - T)
    small = tolerance * np.linalg.norm(system(T) + r)
    y = r / diagonal
    p, rho = y, r @ y
    for _ in range(max_iterations):
        if np.linalg.norm(r) <= small:
            return T
        q = system(p)
        curvature = p @ q
        if not curvature > 0:
            raise RuntimeError("the system is not positive definite: check the mesh and the parameters")
        T = T + rho / curvature * p
        r = r - rho / curvature * q
        y = r / diagonal
        rho, before = r @ y, rho
        p = y + rho / before * p
    raise RuntimeError(f"no convergence in {max_iterations} iterations")
'''

CG_JAX = '''\
def step(T, S, mesh, $arguments, tolerance=1e-13, max_iterations=10_000):
    """T one time step later, by conjugate gradients on V*(I - theta*(F' - I)); all nan if they fail."""
    theta = $theta
    mesh, T, S = jax.tree.map(jnp.asarray, (mesh, T, S))
    tolerance = jnp.maximum(tolerance, 8 * jnp.finfo(T.dtype).eps).astype(T.dtype)
    still, nothing = mesh._replace(ghost_value=jnp.zeros_like(mesh.ghost_value)), jnp.zeros_like(T)

    def system(x):
        return mesh.V * (x - theta * (_explicit(x, nothing, still, $arguments) - x))

    diagonal = mesh.V * (1 + theta * (1 - _diagonal(mesh, $arguments)))
    r = mesh.V * (_explicit(T, S, mesh, $arguments) - T)
    small = tolerance * jnp.linalg.norm(system(T) + r)
    y = r / diagonal

    def goes_on(state):
        _, r, _, _, definite, iteration = state
        return (jnp.linalg.norm(r) > small) & definite & (iteration < max_iterations)

    def iterate(state):
        T, r, p, rho, _, iteration = state
        q = system(p)
        curvature = p @ q
        T = T + rho / curvature * p
        r = r - rho / curvature * q
        y = r / diagonal
        rho, before = r @ y, rho
        return T, r, y + rho / before * p, rho, curvature > 0, iteration + 1

    T, r, _, _, definite, _ = jax.lax.while_loop(goes_on, iterate, (T, r, y, r @ y, jnp.array(True), 0))
    return jnp.where(definite & (jnp.linalg.norm(r) <= small), T, jnp.nan)
'''
