"""Arguments of other operators that MXNetJobOperator has by another name, for DAGs that are ported."""

import difflib
from collections.abc import Iterable
from typing import Any, Final

_TEMPLATE: Final = "write it in the pod template of a manifest, or of one role (Role)"
_MANIFEST: Final = "give an MXJob as manifest: a dict, YAML text, or a file"
_FINISH: Final = 'write on_finish_action="keep", "delete" or "delete_succeeded"'
_INSTEAD: Final = {
    "cmds": "write command",
    "code_path": "write command",
    "arguments": "write args",
    "env_vars": "write env",
    "configmaps": "write config_maps",
    "schedulername": "write scheduler_name",
    "is_delete_operator_pod": _FINISH,
    "delete_on_termination": _FINISH,
    "startup_timeout_seconds": "write startup_timeout",
    "schedule_timeout_seconds": "write startup_timeout",
    "reattach_on_restart": "write durable",
    "container_logs": "write log_replicas",
    "random_name_suffix": "leave it out: a name always gets a suffix, so that no two jobs meet",
    "base_container_name": "leave it out: the container is always mxnet",
    "progress_callback": "write callbacks",
    **dict.fromkeys(
        ("pod_template_file", "pod_template_dict", "full_pod_spec", "application_file", "template_spec"), _MANIFEST
    ),
    **dict.fromkeys(
        ("ports", "automount_service_account_token", "hostnetwork", "host_aliases", "dnspolicy", "dns_config"),
        _TEMPLATE,
    ),
}
_OF_AIRFLOW: Final = (
    "is Airflow's Secret, and must be the name of a Secret: write "
    "env={'NAME': {'secretKeyRef': {'name': ..., 'key': ...}}} for one key, volumes and volume_mounts for files"
)


def refuse_other_names(given: Iterable[str]) -> None:
    """Raise TypeError, with what to write instead, for arguments of the other Kubernetes operators."""
    if found := [f"{name}: {_INSTEAD[name]}" for name in given if name in _INSTEAD]:
        raise TypeError("Arguments of other operators: " + "; ".join(found))


def what_was_meant(error: Exception, given: Iterable[str], known: Iterable[str]) -> str:
    """Return the arguments that were probably meant where Airflow's error names some that an operator doesn't have."""
    own = list(known)
    meant = {name: difflib.get_close_matches(name, own, n=1) for name in given if name not in own}
    hints = (f"{name}: did you mean {near[0]}?" for name, near in meant.items() if near and f"'{name}'" in str(error))
    return "; ".join(hints)


def refuse_airflow_secrets(secrets: Any) -> None:
    """Raise TypeError where `secrets` are those of KubernetesPodOperator."""
    for index, each in enumerate(secrets if isinstance(secrets, list | tuple) else ()):
        if hasattr(each, "deploy_type"):
            raise TypeError(f"secrets[{index}]: {_OF_AIRFLOW}")
