"""A connection of type `kubernetes` as the Kubernetes client's configuration, without touching the client's globals.

Airflow's asynchronous hook takes no `config_file` and doesn't try the pod's service account first, as the other does.
Here both kinds of hooks lead to the same cluster.
"""

from collections.abc import Mapping
from typing import Any, Final

import yaml
from kubernetes import client, config

TEXT_FOR_TRUTH: Final = 'Text counts as true: in the extra as JSON, write "in_cluster": false, or leave it out.'


def load(
    extra: Mapping[str, Any],
    *,
    in_cluster: bool | None = None,
    config_file: str | None = None,
    cluster_context: str | None = None,
) -> client.Configuration:
    """Load the cluster's address and credentials. Reads files, and may run a login program: not for an event loop.

    Of the connection's `extra` the keys of Airflow's own hook are read; the other arguments replace them.

    Raises:
        AirflowException: more than one way was chosen.
        kubernetes.config.ConfigException: the chosen way leads nowhere.
    """
    in_cluster = _field(extra, "in_cluster") if in_cluster is None else in_cluster
    context = cluster_context or _field(extra, "cluster_context")
    path = config_file or _field(extra, "kube_config_path")
    content = _field(extra, "kube_config")
    if sum(1 for chosen in (in_cluster, path, content) if chosen) > 1:
        from airflow.providers.common.compat.sdk import AirflowException  # noqa: PLC0415 - not where there is no Airflow

        raise AirflowException(
            "The connection is ambiguous: choose one of in_cluster, kube_config_path (or config_file) and kube_config. "
            + TEXT_FOR_TRUTH
        )
    found = client.Configuration()
    if in_cluster:
        config.load_incluster_config(client_configuration=found)
    elif path:
        config.load_kube_config(config_file=path, context=context, client_configuration=found)
    elif content:
        if isinstance(content, str):
            content = yaml.safe_load(content)
        config.load_kube_config_from_dict(content, context=context, client_configuration=found)
    else:
        try:
            config.load_incluster_config(client_configuration=found)
        except config.ConfigException:
            config.load_kube_config(context=context, client_configuration=found)
    if str(_field(extra, "disable_verify_ssl")).lower() in ("true", "1"):
        found.verify_ssl = False
    return found


def _field(extra: Mapping[str, Any], name: str) -> Any:
    """Return a field of the connection, under either of the names that Airflow has given it."""
    return extra.get(name) or extra.get(f"extra__kubernetes__{name}") or None
