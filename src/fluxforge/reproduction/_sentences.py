"""What the paper says: its sentences with a number or a comparison, its lemmas and theorems, and who judges them."""

from fluxforge.reproduction._appendix import APPENDIX
from fluxforge.reproduction._higher_order import HIGHER_ORDER
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
        "contribution-first-order",
        "1",
        "By applying symbolic regression to the components of the trained GNN, we show that the network learns the "
        "exact corresponding first-order FV scheme, effectively rediscovering the known numerical method",
        (("rates", "rates-first-order"),),
    ),
    Sentence(
        "contribution-residual",
        "1",
        "the same architecture trained using a physics-informed loss, without access to any ground-truth data, also "
        "exactly rediscovers the first-order scheme",
        (("rates", "rates-first-order-pinn"),),
    ),
    Sentence(
        "contribution-higher-order",
        "1",
        "we train two GNNs … using the same physics-informed loss to rediscover (i) a second-order scheme with a "
        "correction term exploiting the 2-hop stencil, and (ii) an explicit-midpoint scheme, similar to a second-order "
        "Runge-Kutta scheme",
        (("rates", "rates-two-hop"), ("rates", "rates-midpoint")),
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
        "intro-novel",
        "1",
        "we present our main result on the discovery of a novel, higher-order numerical scheme",
        (("higher-order", "higher-order-novel"),),
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
        "This update rule corresponds to a first-order accurate FV discretizations in both time and space",
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
        "the symbolic regression successfully recovered the exact structure of [the first-order] scheme …: f_agg = c₁ "
        "A/δ (T_N − T_P) … with c₁ being a learned constant corresponding to the thermal diffusivity α … f_up = T + "
        "Δt/V ē + Δt S which is precisely the update defined in [the scheme]",
        (("symbolic", "symbolic-supervised"),),
    ),
    Sentence(
        "symbolic-pinn",
        "4.6",
        "if we switch from using a supervised loss to a PINN, our model successfully learns the same first-order "
        "scheme",
        (("symbolic", "symbolic-residual"),),
    ),
    *HIGHER_ORDER,
    *APPENDIX,
)
