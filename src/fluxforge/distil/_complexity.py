"""How long a formula is: one count for every engine."""

import sympy as sp


def complexity(expr: sp.Expr) -> int:
    """Operators + variables + constants of the formula as it is printed; signs and brackets are free.

    a − b is 3, and so are x·x (printed x**2), −2·x and 1/x; a function is one operator, so sqrt(x) is 2; a number is
    one constant, rational or not; 0.3·A/δ·(T_N − T_P) is 9. SymPy multiplies 0.3·(a − b) out, so a coefficient that
    all terms of a sum have in common counts once.
    """
    if expr.is_Add:
        return _sum(expr)
    if expr.is_Mul:
        return _product(expr)
    if expr.is_Pow:
        return _power(expr.base, expr.exp) + 2 * _is_inverse(expr)
    return 1 + sum(complexity(argument) for argument in expr.args) + max(0, len(expr.args) - 2)


def _sum(expr: sp.Add) -> int:
    terms = [term.as_coeff_Mul() for term in expr.args]
    common = {abs(number) for number, _ in terms}
    if len(common) == 1 and common != {sp.S.One}:
        return 2 + complexity(sp.Add(*(sp.sign(number) * rest for number, rest in terms)))
    return sum(complexity(term) for term in expr.args) + len(expr.args) - 1


def _product(expr: sp.Mul) -> int:
    """Factors above and below the line; if there is none above, a 1 is printed."""
    factors = [factor for factor in expr.args if factor != -1]
    parts = [_power(factor.base, factor.exp) if factor.is_Pow else complexity(factor) for factor in factors]
    return sum(parts) + len(parts) - 1 + 2 * all(_is_inverse(factor) for factor in factors)


def _power(base: sp.Expr, exponent: sp.Expr) -> int:
    """b**|e|: the sign of the exponent says on which side of the line it is printed."""
    size = abs(exponent)
    return complexity(base) + (0 if size == 1 else 1 if size == sp.S.Half else 2)


def _is_inverse(factor: sp.Expr) -> bool:
    return bool(factor.is_Pow and factor.exp.is_Number and factor.exp.is_negative)
