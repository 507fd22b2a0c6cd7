"""What the paper's appendix says: lemmas, theorems and remarks, and who judges them."""

from fluxforge.reproduction._sentence import Sentence

APPENDIX: tuple[Sentence, ...] = (
    Sentence(
        "lemma-fourier",
        "A",
        "Lemma: for the first-order scheme to be numerically stable, the timestep must satisfy the Fourier condition",
        (("theorems", "Fourier condition"),),
    ),
    Sentence(
        "remark-change",
        "A",
        "since temperatures are normalized … Σ α A/δ (T_N − T_P) ≤ 2 V/Δt",
        (("theorems", "change of a step"),),
    ),
    Sentence(
        "lemma-simple-weights",
        "B",
        "Lemma: a 1-layer network without hidden layers that is exact on the training set has W¹ = W³ = W² w = 1 and "
        "Δt/V W² b + b_u = 0",
        (("theorems", "lemma, simple weights"),),
    ),
    Sentence(
        "remark-ones",
        "B",
        "Adding L₁ regularisation thus leads to the additional equalities W_u² = w_agg = 1",
        (("theorems", "weights become one"),),
    ),
    Sentence(
        "definition-neighbours",
        "B",
        "Let N be the maximum number of neighbors in D_train [section 4.2: the maximum number of neighbors a single "
        "cell can have in a well-built mesh (outside of the training set)]",
        (("theorems", "N of the training set"),),
    ),
    Sentence(
        "remark-biases",
        "B",
        "[Adding L₁ regularisation] also leads to b_agg = b_u = 0",
        (("theorems", "biases vanish"),),
    ),
    Sentence(
        "lemma-existence",
        "C",
        "Lemma: an L-layers GNN can reproduce F on any graph with exactly 2m(L+1)+4 non-zero parameters",
        (("theorems", "lemma, existence"),),
    ),
    Sentence(
        "remark-count",
        "C",
        "This is exactly the number of parameters we find with L = 1 and m = 2",
        why="section 4.4 trains two layers, for which the lemma counts 16; of the one-layer network with 12 that the "
        "remark speaks of the text gives no training",
    ),
    Sentence(
        "lemma-update-count",
        "C",
        "The remaining layers simply have to implement an identity function, using 2 non-zero parameters per layer. "
        "This leads to a total of 3+(m−1) non-zero parameters [of the first layer's update network]",
        (("theorems", "lemma, update count"),),
    ),
    Sentence(
        "lemma-minimality",
        "C",
        "An L-layers GNN, with m-layers ReLU MLPs of width d with less than 2m(L+1)+4 non-zero parameters cannot have "
        "a non-zero [sic] error on the training set",
        (("theorems", "lemma, minimality"),),
    ),
    Sentence(
        "theorem-optimality",
        "C",
        "If a set of parameters θ achieves a loss … ≤ η N_sparse + ε, then [the network] must have exactly N_sparse = "
        "2m(L+1)+4 non-zero parameters … Furthermore, η N_sparse is the global minimum of the loss function",
        (("theorems", "optimality"),),
    ),
)
