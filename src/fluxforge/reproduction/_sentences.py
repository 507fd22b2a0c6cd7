"""What the paper says: its sentences with a number or a comparison, its lemmas and theorems, and who judges them."""

from fluxforge.reproduction._appendix import APPENDIX
from fluxforge.reproduction._sentence import Sentence

SENTENCES: tuple[Sentence, ...] = (
    Sentence(
        "abstract-extrapolates",
        "Abstract",
        "a GNN trained on a dataset consisting solely of two-node graphs can extrapolate a first-order Finite Volume "
        "scheme for the heat equation on out-of-distribution, unstructured meshes",
        (("generalisation", "two cells suffice"),),
    ),
    Sentence(
        "abstract-error",
        "Abstract",
        "if a GNN achieves a loss ε on such a dataset, it implements the FV scheme with an error of O(ε)",
        (("theorems", "first bound"), ("theorems", "second bound")),
    ),
    Sentence(
        "abstract-rediscovers",
        "Abstract",
        "Using symbolic regression, we show that the network effectively rediscovers the exact analytical formulation "
        "of the standard first-order FV scheme",
        (("symbolic", "symbolic-supervised"),),
    ),
    Sentence(
        "abstract-unsupervised",
        "Abstract",
        "the GNN recovers the first-order FV scheme using only a residual loss similar to PINNs with no access to "
        "ground-truth data",
        (("symbolic", "symbolic-residual"),),
    ),
    Sentence(
        "abstract-two-hop",
        "Abstract",
        "a 2-hop GNN … autonomously discovers a second-order correction term to the initial scheme using a 2-hop "
        "stencil",
        (("higher-order", "higher-order-two-hop-found"),),
    ),
    Sentence(
        "abstract-midpoint",
        "Abstract",
        "a 2-layers GNN … autonomously discovers the classic second-order midpoint scheme",
        (("higher-order", "higher-order-midpoint"),),
    ),
    Sentence(
        "intro-accurate",
        "1",
        "Those discovered schemes are more accurate than the standard first-order method",
        (("convergence", "more accurate than first order"),),
    ),
    Sentence(
        "intro-any-mesh",
        "1",
        "if the empirical loss is ε, the error of the induced numerical method is bounded by O(ε) on any unseen mesh; "
        "the majoration constant depends on 1/Δt",
        (("theorems", "first bound"), ("theorems", "second bound")),
    ),
    Sentence(
        "framework-three-dimensions",
        "2",
        "the entire theory is easily expandable in three dimensions",
        why="the paper states and tests nothing in three dimensions, and fluxforge is two-dimensional",
    ),
    Sentence(
        "framework-first-order",
        "2.2",
        "This update rule corresponds to a first-order accurate FV discretization in both time and space",
        (("consistency", "consistency-first-order"),),
    ),
    Sentence(
        "loss-residual",
        "3.1",
        "[the physics-informed loss] is the residual of the governing PDE applied to each cell of the mesh",
        why="the text does not say which discrete ∇² the loss applies on a mesh, nor with which steps it was trained; "
        "with the two-point flux, θ = 0, ½ and 1 are all measured in symbolic and higher-order, and differ",
    ),
    Sentence(
        "data-geometry",
        "4.1",
        "side length 2, which yields V = √3, A = 2, δ = 2/√3 … it leads to A/(δ V) = 1",
        (("setup", "setup-two-cells"),),
    ),
    Sentence(
        "theorem-simple",
        "4.2",
        "Theorem: a 1-layer GNN with error below ε on the training set errs by less than ε (4 + 4/Δt + N) on any graph",
        (("theorems", "first bound"),),
    ),
    Sentence(
        "theorem-main",
        "4.3",
        "Theorem: an L-layer GNN with loss below ε < η errs by less than 2ε (1 + 2/Δt) on any graph",
        (("theorems", "second bound"),),
    ),
    Sentence(
        "theorem-structure",
        "4.3",
        "The sparsity forces the network to find the best parameterization, which corresponds to the exact scheme",
        (("generalisation", "sparse count"), ("generalisation", "two cells suffice")),
    ),
    Sentence(
        "toy-fit",
        "4.4",
        "both models perfectly fit the simple training data",
        (("generalisation", "both fit"),),
    ),
    Sentence(
        "toy-only-sparse",
        "4.4",
        "only the sparse model generalizes: its OOD and rollout errors remain low, whereas the non-regularized model "
        "fails. This empirically confirms that sparsity is essential",
        (("generalisation", "only the sparse model generalises"),),
    ),
    Sentence(
        "toy-weights",
        "4.4",
        "The sparse model's weights are clustered around zero, while the dense model's weights are more widely "
        "distributed",
        (("generalisation", "weights cluster at zero"),),
    ),
    Sentence(
        "symbolic-formulas",
        "4.6",
        "the symbolic regression successfully recovered the exact structure: f_agg = c₁ A/δ (T_N − T_P), with c₁ "
        "corresponding to α, and f_up = T + Δt/V ē + Δt S",
        (("symbolic", "symbolic-supervised"),),
    ),
    Sentence(
        "symbolic-pinn",
        "4.6",
        "if we switch from using a supervised loss to a PINN, our model successfully learns the same first-order "
        "scheme",
        (("symbolic", "symbolic-residual"),),
    ),
    Sentence(
        "meshes-regular",
        "5.1",
        "regular meshes [have] regular cell shape; the [irregular] ones two random attraction points with smaller "
        "elements. This leads to non-constant geometrical features across the cells",
        (("setup", "setup-meshes"),),
    ),
    Sentence(
        "k-hop-stronger",
        "5.1",
        "[the 2-hop] architecture is theoretically stronger than the regular 1-hop message passing architecture, "
        "independently of the number of layers",
        why="a cited statement about telling graphs apart, not about schemes; on meshes the two-hop formula that is "
        "right is the midpoint rule itself, to rounding",
    ),
    Sentence(
        "semi-implicit",
        "5.1",
        "Our intuition is that [two layers are] well-suited to discover a semi-implicit scheme",
        why="an intuition without a measure; what two layers give is explicit, and stable up to its own limit only",
    ),
    Sentence(
        "higher-residual",
        "5.2",
        "Both GNNs successfully converged, achieving significantly lower residual losses than the standard first-order "
        "FV scheme",
        (("higher-order", "higher-order-residual"),),
    ),
    Sentence(
        "two-hop-formula",
        "5.2",
        "The learned update rule of GNN-2ndOrder: … + Δt/V [Σ α A/δ (T_N − T_P) + Σ ½ α (T_Q − T_P)]",
        (("higher-order", "higher-order-two-hop"),),
    ),
    Sentence(
        "midpoint-formula-half",
        "5.2",
        "The learned update rule of GNN-Midpoint: its first layer advances by ½ Δt/V Σ α A/δ (T_N − T_P)",
        (("higher-order", "higher-order-half"),),
    ),
    Sentence(
        "midpoint-formula-source",
        "5.2",
        "The learned update rule of GNN-Midpoint: its first layer adds Δt S",
        (("higher-order", "higher-order-source"),),
    ),
    Sentence(
        "midpoint-is-runge-kutta",
        "5.2",
        "GNN-Midpoint actually learns an explicit midpoint scheme (or second order Runge–Kutta)",
        (("higher-order", "higher-order-midpoint"),),
    ),
    Sentence(
        "four-layers",
        "5.2",
        "It would be interesting to see if with 4 layers a GNN can actually learn a full Runge–Kutta method",
        (("higher-order", "higher-order-four-layers"),),
    ),
    Sentence(
        "higher-derivatives",
        "5.2",
        "This term acts as a discrete approximation to higher-order spatial derivatives, improving the accuracy of the "
        "simulation",
        (("consistency", "consistency-two-hop"),),
    ),
    Sentence(
        "crank-nicolson-formula",
        "5.2",
        "a second-order Crank–Nicholson formulation: V (T' − T)/Δt + α Σ A/δ (T_N − T_P) at the half step = 0",
        (("consistency", "consistency-crank-nicolson"),),
    ),
    Sentence(
        "gradient-reconstruction",
        "5.2",
        "This approach achieves higher accuracy by estimating solution gradients within each cell to better "
        "approximate the flux across cell faces",
        why="Crank–Nicolson as printed estimates no gradients, and no other approach is named; our gradient-corrected "
        "flux does, and its errors stand beside the plain flux's in consistency",
    ),
    Sentence(
        "second-order-space",
        "5.2",
        "To numerically verify the spatial second-order claim, we conduct a convergence study on irregular meshes",
        (("convergence", "second order in space"),),
    ),
    Sentence(
        "similar-to-crank-nicolson",
        "5.2",
        "when the Fourier condition is met, both second-order GNN schemes display performances similar to that of the "
        "CN scheme",
        (("convergence", "similar to Crank–Nicolson"),),
    ),
    Sentence(
        "midpoint-follows",
        "5.2",
        "The GNN-Midpoint scheme keeps following it for a large range of validity",
        (("convergence", "midpoint follows Crank–Nicolson"),),
    ),
    Sentence(
        "two-hop-struggles",
        "5.2",
        "GNN-2ndOrder struggles when we get close to the Fourier condition, even on very small time-step values",
        (("convergence", "two-hop near the Fourier step"),),
    ),
    Sentence(
        "crank-nicolson-oscillates",
        "5.2",
        "the area where spurious oscillations might start even for Crank–Nicholson",
        (("convergence", "Crank–Nicolson oscillates"),),
    ),
    Sentence(
        "memory",
        "5.2",
        "while the performances might be equivalent or slightly lower, the discovered schemes offers a much lower "
        "memory consumption",
        (("memory", "less memory than Crank–Nicolson by LU"), ("memory", "less memory than Crank–Nicolson by CG")),
        either=True,
    ),
    Sentence(
        "conclusion-sparsity",
        "7",
        "it can generalize this knowledge to … entirely out-of-distribution meshes, a feat made possible by enforcing "
        "sparsity in the model's architecture",
        (("generalisation", "only the sparse model generalises"),),
    ),
    Sentence(
        "conclusion-exact",
        "7",
        "we proved that the GNN does not merely approximate the solution but learns the exact analytical form of the "
        "conventional finite volume update rule",
        (("symbolic", "symbolic-supervised"),),
    ),
    Sentence(
        "conclusion-second-order",
        "7",
        "The discovered schemes … were shown through convergence analysis to be second-order accurate and demonstrably "
        "more precise than the standard first-order method",
        (
            ("convergence", "second order in space"),
            ("convergence", "more accurate than first order"),
            ("convergence", "lower residual than first order"),
        ),
    ),
    *APPENDIX,
)
