"""Words and letters for an equation in certificates, messages and reports."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sp

from fluxforge.expression._print import to_text
from fluxforge.expression._symbols import symbol

if TYPE_CHECKING:
    from fluxforge.pde._equation import Equation

_GREEK = {
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "epsilon": "ε",
    "kappa": "κ",
    "lambda": "λ",
    "mu": "μ",
    "nu": "ν",
    "rho": "ρ",
    "sigma": "σ",
}

# The letters of a name at the beginning of its LaTeX, which is rate_{2} for rate2; Greek names begin with a backslash.
_LETTERS = re.compile("^[A-Za-z][A-Za-z0-9]+")


@dataclass(frozen=True)
class Words:
    """The words for an equation in certificates and messages.

    `step` is the name of the reference step (Fourier, Courant or reference); `diffusion` the letter or formula of K;
    `parameters` the letters of all parameters; `unknown` the letter of the unknown, `unknowns` the word for its values
    (temperatures); `exchanged` the quantity that cells exchange (heat); `total` the conserved sum as a formula,
    `conserved` the same in a sentence.
    """

    step: str
    diffusion: str
    parameters: str
    unknown: str
    unknowns: str
    exchanged: str
    total: str
    conserved: str

    @property
    def step_name(self) -> str:
        """The reference step in a sentence."""
        return f"{self.step} step"

    @property
    def step_symbol(self) -> str:
        """The reference step in a formula."""
        return f"Δt_{self.step}"


def words_of(equation: "Equation") -> Words:
    """The words for an equation; its reference step is that of Fourier (diffusion), Courant (transport) or neither."""
    step = "reference"
    if equation.only_diffuses and equation.diffusion != 0:
        step = "Fourier"
    elif equation.velocity is not None and equation.diffusion == 0 and equation.reaction == 0:
        step = "Courant"
    letter = to_text(equation.diffusion)
    weight = "V" if equation.capacity == 1 else "c V"
    heat = equation.unknown == "T"
    return Words(
        step=step,
        diffusion=_GREEK.get(letter, letter),
        parameters=", ".join(_GREEK.get(p.name, p.name) for p in equation.parameters) or "parameters",
        unknown=equation.unknown,
        unknowns="temperatures" if heat else equation.unknown,
        exchanged="heat" if heat else equation.unknown,
        total=f"{'heat' if heat else 'total'} Σ {weight} {equation.unknown}",
        conserved="the total heat" if heat else f"the total of {weight[:-1]}{equation.unknown}",
    )


def plain_text(equation: "Equation") -> str:
    """The equation on one line, without the terms that are zero: `rhoc ∂T/∂t = ∇·(k ∇T) + S`."""
    u = equation.unknown
    left = f"∂{u}/∂t" if equation.capacity == 1 else f"{_factor(equation.capacity)} ∂{u}/∂t"
    if equation.velocity is not None:
        left += f" + ∇·({equation.velocity} {_factor(equation.transported)})"
    right = [] if equation.diffusion == 0 else [f"∇·({_factor(equation.diffusion)} ∇{u})"]
    right += [] if equation.reaction == 0 else [to_text(equation.reaction)]
    return f"{left} = {' + '.join([*right, 'S'])}".replace("+ -", "- ")


def latex_text(equation: "Equation") -> str:
    """The equation as LaTeX, without the terms that are zero."""
    u = _latex(equation.u)
    left = rf"\frac{{\partial {u}}}{{\partial t}}"
    if equation.capacity != 1:
        left = rf"{_latex_factor(equation.capacity)}\,{left}"
    if equation.velocity is not None:
        velocity = rf"\mathbf{{{sp.latex(symbol(equation.velocity))}}}"
        left += rf" + \nabla\cdot\left({velocity}\,{_latex_factor(equation.transported)}\right)"
    diffusion = rf"\nabla\cdot\left({_latex_factor(equation.diffusion)}\,\nabla {u}\right)"
    right = [] if equation.diffusion == 0 else [diffusion]
    right += [] if equation.reaction == 0 else [_latex(equation.reaction)]
    return f"{left} = {' + '.join([*right, 'S'])}".replace("+ -", "-")


def _factor(formula: sp.Expr) -> str:
    return f"({to_text(formula)})" if formula.is_Add else to_text(formula)


def _latex_factor(formula: sp.Expr) -> str:
    return rf"\left({_latex(formula)}\right)" if formula.is_Add else _latex(formula)


def _latex(formula: sp.Expr) -> str:
    """A formula with names of several letters upright: in italics they would read as products."""
    names = {s: _LETTERS.sub(r"\\mathrm{\g<0>}", sp.latex(s)) for s in formula.free_symbols}
    return str(sp.latex(formula, symbol_names=names))
