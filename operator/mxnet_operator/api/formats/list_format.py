"""Formats whose specs are a list of replicas: three kinds have one, with small differences."""

from mxnet_operator.api.formats.definition import Definition
from mxnet_operator.api.formats.format import Format
from mxnet_operator.api.formats.list_spec import ListDefaults, list_conflicts, list_to_v1
from mxnet_operator.api.formats.phases import list_words, read_list_status


def list_format(
    name: str, definition: Definition, api_version: str, defaults: ListDefaults, *, type_field: str = "mx_replica_type"
) -> Format:
    """Return a list format with these defaults; `type_field` names a replica's type in its status."""
    return Format(
        name,
        definition,
        api_version,
        list_to_v1(defaults),
        list_conflicts(defaults),
        list_words(type_field),
        read_list_status,
        has_runtime_id=True,
        has_phases=True,
    )
