"""Structural schemas: pruning and defaulting as the API server does them."""

from typing import Any

from mxnet_operator.api.structural import apply_schema_defaults, prune, structural_errors

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "on": {"type": "boolean", "default": False},
                "items": {
                    "type": "array",
                    "maxItems": 2,
                    "items": {"type": "object", "properties": {"a": {"type": "string"}}},
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "map": {"type": "object", "additionalProperties": {"type": "integer"}},
                "when": {"type": "string", "format": "date-time"},
            },
        }
    },
}


def test_unknown_fields_are_dropped_where_they_are_not_preserved() -> None:
    value = {
        "apiVersion": "v1",
        "metadata": {"name": "kept"},
        "spec": {"items": [{"a": "1", "b": 2}], "free": {"x": 1}, "map": {"k": 1}, "bogus": 1},
    }
    assert sorted(prune(SCHEMA, value)) == ["spec.bogus", "spec.items[0].b"]
    assert value == {
        "apiVersion": "v1",
        "metadata": {"name": "kept"},
        "spec": {"items": [{"a": "1"}], "free": {"x": 1}, "map": {"k": 1}},
    }


def test_defaults_are_filled_only_into_objects_that_are_there() -> None:
    value: dict[str, Any] = {"spec": {}}
    apply_schema_defaults(SCHEMA, value)
    assert value == {"spec": {"on": False}}
    empty: dict[str, Any] = {}
    apply_schema_defaults(SCHEMA, empty)
    assert empty == {}


def test_each_kind_of_mistake_has_its_reason() -> None:
    value = {"spec": {"on": 1, "items": [{}, {}, {}], "map": {"k.l": 1.5}, "when": "yesterday", "free": None}}
    assert {error.path: error.reason for error in structural_errors(SCHEMA, value)} == {
        "spec.on": "FieldValueTypeInvalid",
        "spec.items": "FieldValueTooMany",
        "spec.map.k.l": "FieldValueTypeInvalid",
        "spec.when": "FieldValueInvalid",
        "spec.free": "FieldValueTypeInvalid",
    }


def test_true_is_no_integer_and_a_whole_float_is_one() -> None:
    assert structural_errors({"type": "integer"}, True, "x")
    assert not structural_errors({"type": "integer"}, 2.0, "x")
