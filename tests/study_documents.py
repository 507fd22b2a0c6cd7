"""Studies of the paper as documents: run one, judge one, and complete a document that has only the fields of a test."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import inspect

from fluxforge.paper import to_document

RECORDS = inspect.StructType | inspect.DataclassType


def run_document(module: Any, *given: Any, **more: Any) -> dict[str, Any]:
    """Run a study; its result with the claims, as JSON."""
    result = module.run(*given, **more)
    return to_document(result, module.judge(result))


def judge_document(module: Any, document: Mapping[str, Any]) -> Any:
    """The claims of a document, which may lack fields that are not judged."""
    return module.judge(read_partial(document, module.Result))


def read_partial(document: Mapping[str, Any], kind: Any) -> Any:
    """The record of a document; fields without a default that are missing are filled with zeros and empty values."""
    return msgspec.convert(_complete(document, inspect.type_info(kind)), kind)


def _complete(value: Any, kind: inspect.Type) -> Any:
    if isinstance(kind, inspect.UnionType):
        fitting = [each for each in kind.types if isinstance(value, _PYTHON.get(type(each), ()))]
        return _complete(value, fitting[0]) if fitting else value
    if isinstance(kind, RECORDS) and isinstance(value, Mapping):
        fields = {each.encode_name: each for each in kind.fields}
        own = {name: _complete(each, fields[name].type) for name, each in value.items() if name in fields}
        missing = {name: _empty(each.type) for name, each in fields.items() if each.required and name not in own}
        return own | missing
    if isinstance(kind, inspect.DictType) and isinstance(value, Mapping):
        return {name: _complete(each, kind.value_type) for name, each in value.items()}
    if isinstance(kind, inspect.ListType | inspect.VarTupleType) and isinstance(value, list | tuple):
        return [_complete(each, kind.item_type) for each in value]
    return value


def _empty(kind: inspect.Type) -> Any:
    if isinstance(kind, inspect.UnionType):
        return None if any(isinstance(each, inspect.NoneType) for each in kind.types) else _empty(kind.types[0])
    if isinstance(kind, RECORDS):
        return _complete({}, kind)
    if isinstance(kind, inspect.LiteralType):
        return kind.values[0]
    if isinstance(kind, inspect.TupleType):
        return [_empty(each) for each in kind.item_types]
    return _EMPTY[type(kind)]


_PYTHON: dict[Any, Any] = {
    inspect.StructType: Mapping,
    inspect.DataclassType: Mapping,
    inspect.DictType: Mapping,
    inspect.ListType: (list, tuple),
    inspect.VarTupleType: (list, tuple),
}
_EMPTY: dict[Any, Any] = {
    inspect.StrType: "",
    inspect.IntType: 0,
    inspect.FloatType: 0.0,
    inspect.BoolType: False,
    inspect.DictType: {},
    inspect.ListType: [],
    inspect.VarTupleType: [],
    inspect.AnyType: None,
}
