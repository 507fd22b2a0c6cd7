"""What the paper says in section 5 and in its conclusion, and who judges it."""

from fluxforge.reproduction._sentence import Sentence

HIGHER_ORDER: tuple[Sentence, ...] = (
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
        "novel-operator",
        "5.2",
        "The learned term can be interpreted as a novel discrete operator that implicitly captures the necessary "
        "information for a higher-order update",
        (("higher-order", "higher-order-novel-operator"),),
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
        "conclusion-new",
        "7",
        "By training a GNN … using only a physics-informed loss function, without any ground-truth simulation data, we "
        "enabled it to discover a new, higher-order finite volume scheme",
        (("higher-order", "higher-order-novel"),),
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
)
