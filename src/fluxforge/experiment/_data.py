"""The experiments of a recipe: variables and their ranges, and the measured fluxes, which are cached."""

import json

import numpy as np
import sympy as sp

from fluxforge import recipe
from fluxforge.data._cache import cache_path, write_cached
from fluxforge.errors import EquationError, ExpressionError, InputError
from fluxforge.experiment._riemann import riemann_flux
from fluxforge.experiment._setup import (
    LENGTH,
    Dataset,
    Experiment,
    Measured,
    Samples,
    Variable,
    evaluate_on,
    parse_flux,
)
from fluxforge.experiment._steady import steady_flux
from fluxforge.expression._symbols import symbol
from fluxforge.pde._document import to_document
from fluxforge.pde._equation import Equation, differentiate
from fluxforge.pde._parameter import Parameter, Rank, Unit, Where, unit
from fluxforge.run._arrays import read_arrays

# Part of the cache's key; incremented whenever the same arguments give other fluxes.
VERSION = 1
# Half the width of the range of states around the points where f′ = 0.
_HALF_WIDTH = 0.5


def design_experiment(spec: recipe.Recipe) -> Experiment:
    """The experiment of a recipe; raises InputError, which names the field, if its flux cannot be measured."""
    data = spec.data
    assert isinstance(data, recipe.Experiment)
    where = f"recipe {spec.name!r}"
    try:
        equation = recipe.equation_of(spec)
    except EquationError as error:
        raise InputError(f"{where}: field 'equation': {error}") from error
    if data.peclet is not None and (equation.velocity is None or equation.diffusion == 0):
        raise InputError(f"{where}: field 'data.peclet': equation {equation.name!r} does not transport and diffuse")
    if spec.parameters or spec.diffusivity is not None:
        raise InputError(f"{where}: field 'parameters': those of an experiment are drawn; give 'data.values'")
    experiment = Experiment(equation, _variables(data, equation), data.peclet)
    for field, text in (("data.law", data.law), ("textbook", spec.textbook)):
        if text is not None:
            _check_formula(text, experiment, f"{where}: field {field!r}")
    return experiment


def make_dataset(spec: recipe.Recipe) -> Dataset:
    """Draw the samples of a recipe and measure their fluxes, or read them from the cache.

    With `data.law` the flux is that formula, exact up to round-off; noise is added last. Raises InputError for a flux
    that is not finite.
    """
    experiment, data = design_experiment(spec), spec.data
    assert isinstance(data, recipe.Experiment)
    rng = np.random.default_rng([spec.seed, VERSION])
    samples = experiment.draw(data.samples, rng)
    if data.law:
        flux = evaluate_on(samples, parse_flux(data.law, experiment))
        measured = Measured(flux, 1e-14 * np.abs(flux))
    else:
        measured = _measure_cached(experiment, samples, data)
    if not (np.isfinite(measured.flux).all() and np.isfinite(measured.error).all()):
        raise InputError(
            f"recipe {spec.name!r}: field 'data': the flux is not finite everywhere in the ranges of the recipe"
        )
    flux, error = measured
    if data.noise:
        spread = data.noise * float(np.sqrt(np.mean(flux**2)))
        flux = flux + spread * rng.standard_normal(len(flux))
        error = np.hypot(error, spread)
    return Dataset(experiment, samples, flux, error)


def _measure_cached(experiment: Experiment, samples: Samples, data: recipe.Experiment) -> Measured:
    words = json.dumps([VERSION, to_document(experiment.equation), data.tolerance], sort_keys=True)
    inputs = (name.encode() + np.ascontiguousarray(samples[name]).tobytes() for name in experiment.names)
    place = cache_path("experiment", words.encode(), *inputs)
    if (cached := read_arrays(place)) is not None and set(cached.arrays) == set(Measured._fields):
        return Measured(**cached.arrays)
    measure = steady_flux if experiment.steady else riemann_flux
    measured = measure(experiment, samples, data.tolerance)
    write_cached(place, measured._asdict())
    return measured


def _check_formula(text: str, experiment: Experiment, where: str) -> None:
    try:
        parse_flux(text, experiment)
    except ExpressionError as error:
        raise InputError(f"{where}: {error}") from error


def _variables(data: recipe.Experiment, equation: Equation) -> tuple[Variable, ...]:
    name, unknown = equation.unknown, equation.unknown_unit
    low, high = data.states or _usual_states(equation)
    variables = [Variable(f"{name}_{end}", unknown, low, high, f"{name}_{other}") for end, other in ("PN", "NP")]
    if equation.velocity is not None:
        p = equation.parameter(equation.velocity)
        along = p.normal_name
        variables.append(Variable(along, p.unit or unit(), -data.velocity, data.velocity, along, turns=True))
    if equation.diffusion != 0:
        for p in equation.parameters:
            if symbol(p.name) in equation.diffusion.free_symbols:
                variables += _parameter_variables(p, data)
        variables += (
            _pair_variables("d", LENGTH, data.distances)
            if data.jump
            else [_shared_variable("delta", LENGTH, data.distances)]
        )
    return tuple(variables)


def _parameter_variables(p: Parameter, data: recipe.Experiment) -> list[Variable]:
    if p.unit is None:
        raise InputError(f"parameter {p.name!r} of the equation has no unit, which an experiment needs")
    # A face carries one n·K n of a tensor, so that a flux of two would be no scheme.
    if p.rank is Rank.TENSOR:
        return [_shared_variable(p.normal_name, p.unit, data.values)]
    if p.where is Where.CELL and data.jump:
        return _pair_variables(p.name, p.unit, data.values)
    return [_shared_variable(p.name, p.unit, data.values)]


def _pair_variables(name: str, units: Unit, reach: tuple[float, float]) -> list[Variable]:
    return [Variable(f"{name}_{end}", units, *reach, f"{name}_{other}", positive=True) for end, other in ("PN", "NP")]


def _shared_variable(name: str, units: Unit, reach: tuple[float, float]) -> Variable:
    return Variable(name, units, *reach, name, positive=True)


def _usual_states(equation: Equation) -> tuple[float, float]:
    """The range of states, half a unit around all points where f′ = 0; (−1, 1) if there are none."""
    slope = differentiate(equation.transported, equation.u)
    if not slope.has(equation.u):
        return -1.0, 1.0
    points = [float(each) for each in sp.solve(slope, equation.u) if each.is_real]
    return (min(points) - _HALF_WIDTH, max(points) + _HALF_WIDTH) if points else (-1.0, 1.0)
