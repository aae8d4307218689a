"""The job among the rendered templates of Airflow's page: what was created, and no secret."""

import yaml

from mxnet_provider.operators.rendered_job import as_created

JOB = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "MXJob",
    "metadata": {"name": "digits", "labels": {"dag_id": "d"}, "uid": "u", "resourceVersion": "7", "managedFields": [1]},
    "spec": {
        "containers": [
            {
                "env": [
                    {"name": "EPOCHS", "value": "3"},
                    {"name": "DB_PASSWORD", "value": "hunter2"},
                    {"name": "DB_TOKEN", "valueFrom": {"secretKeyRef": {"name": "db", "key": "token"}}},
                ]
            }
        ]
    },
    "status": {"state": "Running"},
}


def test_a_job_is_shown_as_it_was_created_without_what_the_server_added_and_without_secrets() -> None:
    text = as_created(JOB)
    shown = yaml.safe_load(text)
    assert shown["metadata"] == {"name": "digits", "labels": {"dag_id": "d"}}
    assert list(shown) == ["apiVersion", "kind", "metadata", "spec"]
    env = {each["name"]: each for each in shown["spec"]["containers"][0]["env"]}
    assert env["EPOCHS"]["value"] == "3"
    assert env["DB_PASSWORD"]["value"] == "***"
    assert env["DB_TOKEN"]["valueFrom"]["secretKeyRef"] == {"name": "db", "key": "token"}
    assert "hunter2" not in text
    assert JOB["spec"]["containers"][0]["env"][1]["value"] == "hunter2"  # type: ignore[index]


def test_a_long_job_is_stored_no_longer_than_the_page_shows_it() -> None:
    """One character more: from that Airflow sees that it has to say that it cuts."""
    assert len(as_created({**JOB, "spec": {"command": ["x" * 100_000]}})) == 4097
