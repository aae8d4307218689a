"""The MXJob that a task created, as YAML for the rendered templates of Airflow's page."""

from collections.abc import Mapping
from typing import Any, Final

import yaml
from airflow.providers.common.compat.sdk import conf, redact

_OF_THE_SERVER: Final = frozenset({"creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"})


def as_created(job: Mapping[str, Any]) -> str:
    """Return a job's manifest as YAML, cut to just above the length from which Airflow's page cuts it.

    Airflow masks the values of its connections and variables in that text. The values of environment variables are
    masked here where Airflow would mask a field of the variable's name, such as `DB_PASSWORD`.
    """
    metadata = {key: value for key, value in job["metadata"].items() if key not in _OF_THE_SERVER}
    manifest = {key: value for key, value in job.items() if key != "status"} | {"metadata": metadata}
    text: str = yaml.safe_dump(_masked(manifest), sort_keys=False)
    return text[: conf.getint("core", "max_templated_field_length", fallback=4096) + 1]


def _masked(value: Any) -> Any:
    match value:
        case {"name": str(name), "value": str(text)}:
            return {**value, "value": redact(text, name)}
        case dict():
            return {key: _masked(each) for key, each in value.items()}
        case list():
            return [_masked(each) for each in value]
    return value
