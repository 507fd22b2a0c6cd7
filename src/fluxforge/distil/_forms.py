"""The same formula written otherwise: constants pulled out of brackets, sums multiplied out or factored."""

from collections import Counter

import sympy as sp

from fluxforge.distil._complexity import complexity

_MOST_TERMS = 24


def tidy(expr: sp.Expr) -> sp.Expr:
    """The shortest of the formula's forms; of the two signs a product can have, the positive one."""
    return _positive(min(forms(expr), key=complexity))


def forms(expr: sp.Expr) -> list[sp.Expr]:
    """As it is, and multiplied out and factored again; both with the constants in front."""
    found = [monic(expr)]
    if _terms_if_expanded(expr) <= _MOST_TERMS:
        found += [form for form in (monic(factored(sp.expand(expr))),) if form not in found]
    return found


def _positive(expr: sp.Expr) -> sp.Expr:
    """−2·a·(b − c) → 2·a·(c − b)."""
    number, rest = expr.as_coeff_Mul()
    bracket = next((factor for factor in sp.Mul.make_args(rest) if factor.is_Add), None)
    if number >= 0 or bracket is None or bracket == rest:
        return expr
    return sp.Mul(-number, -bracket, *(factor for factor in rest.args if factor != bracket))


def monic(expr: sp.Expr) -> sp.Expr:
    """2·a·(3·b + 6·c) → 6·a·(b + 2·c): every bracket has a bare term, and as few constants as can be."""
    if not expr.args:
        return expr
    inner = [monic(argument) for argument in expr.args]
    if not isinstance(expr, sp.Mul | sp.Pow | sp.Abs):
        return expr.func(*inner)
    pulled = [_pulled(factor) for factor in (inner if expr.is_Mul else [expr.func(*inner)])]
    return sp.Mul(*(number for number, _ in pulled), *(rest for _, rest in pulled))


def _pulled(factor: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """A number and the rest of a bracket, of its power or of its modulus; roots and moduli let sizes out, not signs."""
    inside = factor.args[0] if isinstance(factor, sp.Abs) else factor
    base, exponent = inside.as_base_exp()
    if not (base.is_Add and exponent.is_Rational):
        return sp.S.One, factor
    lead = _lead(base) if exponent.is_Integer and inside is factor else abs(_lead(base))
    return (sp.S.One, factor) if lead == 1 else (lead**exponent, factor.xreplace({base: _over(base, lead)}))


def _over(bracket: sp.Add, lead: sp.Number) -> sp.Expr:
    """bracket/lead, where lead/lead is the integer 1."""
    terms = [term.as_coeff_Mul() for term in bracket.args]
    return sp.Add(*(_ratio(number, lead) * rest for number, rest in terms))


def _ratio(number: sp.Number, lead: sp.Number) -> sp.Number:
    return sp.sign(number) * sp.sign(lead) if abs(number) == abs(lead) else number / lead


def _lead(bracket: sp.Add) -> sp.Number:
    """The largest coefficient of a term that is not a bare number, 1 if there is a term that has none."""
    coefficients = [term.as_coeff_Mul()[0] for term in bracket.args if not term.is_Number]
    if any(abs(number) == 1 for number in coefficients):
        return sp.S.One
    return max(coefficients, key=lambda number: (abs(number), number))


def factored(expr: sp.Expr) -> sp.Expr:
    """a·b + a·c + d → a·(b + c) + d, the factor that most terms share first, again and again."""
    terms = sp.Add.make_args(expr)
    shared = Counter(factor for term in terms for factor in _unit_factors(term))
    best = min(shared, key=lambda factor: (-shared[factor], sp.default_sort_key(factor)), default=None)
    if best is None or shared[best] < 2:
        return expr
    inside = [term for term in terms if best in _unit_factors(term)]
    outside = [term for term in terms if term not in inside]
    return best * factored(sp.Add(*(term / best for term in inside))) + factored(sp.Add(*outside))


def _unit_factors(term: sp.Expr) -> set[sp.Expr]:
    """X or 1/x for every power of x in a product."""
    powers = [factor.as_base_exp() for factor in sp.Mul.make_args(term) if not factor.is_Number]
    return {base if exponent > 0 else 1 / base for base, exponent in powers if exponent.is_Integer}


def _terms_if_expanded(expr: sp.Expr) -> int:
    if expr.is_Add:
        return sum(_terms_if_expanded(term) for term in expr.args)
    if expr.is_Mul:
        return int(sp.prod([_terms_if_expanded(factor) for factor in expr.args]))
    if expr.is_Pow and expr.exp.is_Integer and expr.exp > 0:
        return _terms_if_expanded(expr.base) ** int(expr.exp)
    return 1
