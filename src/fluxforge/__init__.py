"""Discover finite-volume schemes, distil them to formulas, certify them."""
