"""The files that a run starts first: with one file per worker at a time, a long one at the end would be waited for."""

# Files of many seconds, the longest first: whoever starts one last makes the others wait. Any order is correct.
LONG = (
    "verify/test_certificate.py",
    "verify/test_black_box.py",
    "verify/test_bounds.py",
    "verify/test_space_order.py",
    "verify/test_bound_hypotheses.py",
    "train/test_train.py",
    "simulate/test_limit.py",
    "scheme/test_emit.py",
    "docs/test_pages_run.py",
    "train/test_train_killed.py",
    "run/test_run_faults.py",
    "experiments/test_generalisation_study.py",
    "experiments/test_convergence.py",
    "experiments/test_theorems_study.py",
    "train/test_sparsify.py",
    "docs/test_docs_build.py",
    "gnn/test_network.py",
    "simulate/test_stepper.py",
)
