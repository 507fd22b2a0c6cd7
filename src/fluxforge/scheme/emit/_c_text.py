"""The parts of an emitted C file that are the same for every scheme (`$name` is its name), and a mesh as C tables."""

CALL = """\
int $name_step(mesh, $arguments, T, S, T_new) takes T and the sources S of the cells
and writes T one time step later to T_new, which must not overlap them. Returns $answer."""

INCLUDES = "#include <math.h>\n#include <stddef.h>\n#include <stdlib.h>\n"

MESH = """\
#ifndef FLUXFORGE_MESH
#define FLUXFORGE_MESH
/* What cell P sees through its slot k is entry P*slots + k of the arrays of faces. */
typedef struct fluxforge_mesh {
    size_t cells, slots, ghosts;
    const int *node;                    /* the node across the face */
    const unsigned char *used;          /* 0 in the fourth slot of a triangle among quadrilaterals */
    const double *A;                    /* area of the face, a length in the plane */
    const double *delta;                /* |d| */
    const double *n_x, *n_y;            /* unit normal of the face, away from the cell */
    const double *d_x, *d_y;            /* from the cell's centroid to the node */
    const double *chi;                  /* 0 at a Neumann face, 1 elsewhere */
    const double *V;                    /* [cells] volume, an area in the plane */
    const int *ghost_owner;             /* [ghosts] the cell the ghost belongs to */
    const unsigned char *ghost_neumann; /* [ghosts] 1 for Neumann, 0 for Dirichlet */
    const double *ghost_value;          /* [ghosts] q or g */
    const double *ghost_delta;          /* [ghosts] distance from the owner's centroid */
    const double *n_z, *d_z;            /* in space: the third components; NULL in the plane */
    const double *d_n, *d_t;            /* d.n and |d - (d.n) n|; NULL unless the scheme reads them */
    const double *p_x, *p_y, *p_z;      /* from the cell's centroid to the centre of the face, likewise */
    const int *behind, *ahead;          /* lines of cells: the nodes across opposite faces of the cell and of node */
} fluxforge_mesh;
#endif
"""

HELPERS = {
    "sign": """\
static double $name_sign(double x)
{
    return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x;
}
""",
    "min": """\
static double $name_min(double a, double b)
{
    return a < b || a != a ? a : b;
}
""",
    "max": """\
static double $name_max(double a, double b)
{
    return a > b || a != a ? a : b;
}
""",
    "dirichlet": """\
/* What node i shows of a temperature f: a Dirichlet ghost g, a Neumann ghost its owner's f + q delta. */
static double $name_dirichlet(const fluxforge_mesh *mesh, const double *f, size_t i)
{
    if (i < mesh->cells) return f[i];
    const size_t b = i - mesh->cells;
    if (!mesh->ghost_neumann[b]) return mesh->ghost_value[b];
    return f[mesh->ghost_owner[b]] + mesh->ghost_value[b]*mesh->ghost_delta[b];
}
""",
    "zero": """\
/* What node i shows of a source or a rate f: a Dirichlet ghost 0, a Neumann ghost its owner's f. */
static double $name_zero(const fluxforge_mesh *mesh, const double *f, size_t i)
{
    if (i < mesh->cells) return f[i];
    const size_t b = i - mesh->cells;
    return mesh->ghost_neumann[b] ? f[mesh->ghost_owner[b]] : 0.0;
}
""",
    "owner": """\
/* What node i shows of a gradient f: a ghost its owner's f. */
static double $name_owner(const fluxforge_mesh *mesh, const double *f, size_t i)
{
    return i < mesh->cells ? f[i] : f[mesh->ghost_owner[i - mesh->cells]];
}
""",
    "volume": """\
/* V of node i: infinite at a Dirichlet ghost, the owner's at a Neumann ghost. */
static double $name_volume(const fluxforge_mesh *mesh, size_t i)
{
    if (i < mesh->cells) return mesh->V[i];
    const size_t b = i - mesh->cells;
    return mesh->ghost_neumann[b] ? mesh->V[mesh->ghost_owner[b]] : HUGE_VAL;
}
""",
    "end": """\
/* Where the path ends that leaves P by slot path/slots and the next cell by slot path%slots; P if there is none. */
static size_t $name_end(const fluxforge_mesh *mesh, size_t P, size_t path)
{
    const size_t first = P*mesh->slots + path/mesh->slots;
    if (!mesh->used[first] || (size_t)mesh->node[first] >= mesh->cells) return P;
    const size_t second = (size_t)mesh->node[first]*mesh->slots + path%mesh->slots;
    return mesh->used[second] ? (size_t)mesh->node[second] : P;
}
""",
    "in_ring": """\
/* Whether the path is the first of those that lead to a cell exactly two faces from P. */
static int $name_in_ring(const fluxforge_mesh *mesh, size_t P, size_t path)
{
    const size_t Q = $name_end(mesh, P, path);
    if (Q == P || Q >= mesh->cells) return 0;
    for (size_t e = P*mesh->slots; e < (P + 1)*mesh->slots; e++)
        if (mesh->used[e] && (size_t)mesh->node[e] == Q) return 0;
    for (size_t other = 0; other < path; other++)
        if ($name_end(mesh, P, other) == Q) return 0;
    return 1;
}
""",
}

NEEDS = {"in_ring": ("end",)}
"""The helpers that a helper calls."""

CG = """\
/* out = V (x - theta (F' x - x)); `still` is the mesh with boundary values 0, `nothing` a field of zeros. */
static int $name_system(const fluxforge_mesh *still, $typed,
    const double *x, const double *nothing, double *out)
{
    if ($name_explicit(still, $arguments, x, nothing, out)) return 1;
    for (size_t P = 0; P < still->cells; P++) out[P] = still->V[P]*(x[P] - $theta*(out[P] - x[P]));
    return 0;
}

static double $name_dot(size_t n, const double *a, const double *b)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += a[i]*b[i];
    return sum;
}

/* Conjugate gradients from T_new = T on: r the residual, p the direction, q the system's p. */
static int $name_solve(const fluxforge_mesh *mesh, $typed,
    const double *T, const double *S, double *T_new, double *work)
{
    const double tolerance = 1e-13;
    const int max_iterations = 10000;
    const size_t n = mesh->cells;
    double *const r = work, *const y = r + n, *const p = y + n, *const q = p + n, *const diagonal = q + n;
    const double *const nothing = diagonal + n;
    fluxforge_mesh still = *mesh;
    still.ghost_value = nothing + n;

    if ($name_diagonal(mesh, $arguments, diagonal)) return 1;
    if ($name_explicit(mesh, $arguments, T, S, r)) return 1;
    if ($name_system(&still, $arguments, T, nothing, q)) return 1;
    for (size_t i = 0; i < n; i++) {
        T_new[i] = T[i];
        diagonal[i] = mesh->V[i]*(1.0 + $theta*(1.0 - diagonal[i]));
        r[i] = mesh->V[i]*(r[i] - T[i]);
        q[i] += r[i];
        p[i] = y[i] = r[i]/diagonal[i];
    }
    const double small = tolerance*sqrt($name_dot(n, q, q));
    double rho = $name_dot(n, r, y);
    for (int iteration = 0; iteration < max_iterations; iteration++) {
        if (sqrt($name_dot(n, r, r)) <= small) return 0;
        if ($name_system(&still, $arguments, p, nothing, q)) return 1;
        const double curvature = $name_dot(n, p, q);
        if (!(curvature > 0.0)) return 2;
        for (size_t i = 0; i < n; i++) {
            T_new[i] += rho/curvature*p[i];
            r[i] -= rho/curvature*q[i];
            y[i] = r[i]/diagonal[i];
        }
        const double before = rho;
        rho = $name_dot(n, r, y);
        for (size_t i = 0; i < n; i++) p[i] = y[i] + rho/before*p[i];
    }
    return 2;
}

int $name_step(const fluxforge_mesh *mesh, $typed,
    const double *T, const double *S, double *T_new)
{
    double *const work = calloc(6*mesh->cells + mesh->ghosts + 1, sizeof *work);
    if (work == NULL) return 1;
    const int status = $name_solve(mesh, $arguments, T, S, T_new, work);
    free(work);
    return status;
}
"""
