"""What docs/airflow.md says of ends, kills, outages, callbacks, releases and executors is what tests show.

A row that is new or changed needs one here.

The tests are named here and not on the page: it is for people who run DAGs.
"""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "airflow.md"
API, DEADLINES, DETACHED = "api_failures", "deadlines", "detached"
OPERATOR, RELEASES, EXECUTORS = "operator", "older_releases", "executors"
CALLED = "callbacks_are_called_as_the_job_goes_on_and_their_mistakes_change_nothing"
USER, FENCING, HOLDER, KILLED, LOST = "ended_by_a_user", "fencing", "holder", "killed", "lost_jobs"

TABLES = {
    "| | `deferrable=True` | `deferrable=False` |": {
        "While the job runs": (FENCING, "a_triggerer_that_stood_still_leaves_jobs_to_the_one_that_took_over"),
        "The worker dies, is restarted or drained": (
            KILLED,
            "a_worker_that_is_killed_is_followed_by_one_that_goes_on_with_its_job",
        ),
        "A worker gets SIGTERM (a deployment)": (
            USER,
            "a_worker_that_is_asked_to_end_ends_its_job_and_a_retry_makes_another",
        ),
        "A user's kill while the API server hangs": (
            FENCING,
            "a_task_that_a_user_ends_while_the_api_server_hangs_loses_its_job_when_it_is_back",
        ),
        "A user's kill": (FENCING, "a_user_s_kill_deletes_the_job_at_once"),
        "Log lines": ("operator", "the_log_appears_line_by_line_and_once_although_its_stream_breaks"),
        "What the job waits for": ("unit waits", "what_a_job_waits_for_is_logged_within_five_seconds"),
        "`execution_timeout`": (
            DEADLINES,
            "a_task_whose_trigger_can_t_see_that_it_takes_too_long_is_ended_by_the_scheduler",
        ),
        "Needs": None,
    },
    "| What happens | Task | Job |": {
        "The job succeeds": ("operator", "a_finished_job_stays_or_goes_as_asked"),
        "The job is over, and `on_finish_action` can't delete it: a right is missing, the API server is away": (
            "unit task_job",
            "what_became_of_a_job_is_not_lost_where_it_can_not_be_deleted",
        ),
        "The job fails": (LOST, "a_job_that_fails_is_shown_and_a_retry_makes_another"),
        "Marked failed or succeeded": (USER, "a_task_that_a_user_ends_ends_its_job"),
        "... while no triggerer runs": (
            KILLED,
            "a_triggerer_that_ends_leaves_jobs_and_what_users_asked_for_meanwhile_to_the_next",
        ),
        "... in the second after the deferral": None,
        "... while the API server of the cluster hangs, deferred": (
            FENCING,
            "a_task_that_a_user_ends_while_the_api_server_hangs_loses_its_job_when_it_is_back",
        ),
        "... while it hangs, not deferred": (
            DETACHED,
            "a_job_that_a_killed_worker_could_not_end_is_ended_when_the_api_is_back",
        ),
        "... while Airflow's own database or API does not say how the task stands": (
            "trigger",
            "where_airflow_does_not_say_how_the_task_stands_the_job_is_left_alone",
        ),
        "Cleared": ("unit task_job", "a_cleared_task_ends_the_job_that_it_had_unless_jobs_are_to_be_kept"),
        "... between two heartbeats of a worker, whose next request Airflow then rejects": (
            USER,
            "a_task_that_is_cleared_before_it_writes_down_its_job_gets_a_new_one",
        ),
        "Cleared after `retries` was changed, or run by `airflow tasks test`, when its job had succeeded": (
            "unit reattach",
            "no_clear_after_any_edit_of_retries_returns_what_there_was",
        ),
        ("Cleared after `retries` was lowered by as many as there were tries, while its job has not finished"): (
            "unit task_job",
            "who_goes_on_with_a_job_under_other_retries_is_warned_of_its_arguments",
        ),
        "Taken out of its DAG's file while it runs (in a bundle without versions)": (
            USER,
            "a_task_that_is_taken_out_of_its_dag_leaves_no_job",
        ),
        "Cleared while its DAG lacks the task, which comes back later with the `retries` that it had": None,
        "Cleared in the moment in which a worker writes down how the job ended": (
            USER,
            "a_task_that_is_cleared_while_it_returns_has_the_result_of_the_job_that_is_over",
        ),
        'Cleared while a sync task runs, `on_kill_action="keep"`': None,
        "`execution_timeout`": (DEADLINES, "a_task_that_takes_too_long_ends_its_job"),
        "Pods don't run within `startup_timeout`": (
            "operator",
            "a_retry_waits_for_the_start_of_a_job_that_was_kept_as_long_as_the_try_before",
        ),
        "Worker killed (`kill -9`) at any moment": (
            KILLED,
            "a_worker_that_is_killed_while_it_creates_its_job_leaves_no_second_one",
        ),
        "... on the last try": (FENCING, "a_worker_that_is_killed_on_its_last_try_loses_its_job_with_its_lease"),
        ("A worker stands still or is cut off for longer than Airflow waits for its heartbeat, and comes back"): (
            FENCING,
            "a_worker_that_stood_still_leaves_its_job_to_the_retry",
        ),
        "Triggerer restarted, killed, moved": (
            KILLED,
            "a_triggerer_that_ends_leaves_jobs_and_what_users_asked_for_meanwhile_to_the_next",
        ),
        "Triggerer stands still for longer than its health threshold, and comes back": (
            FENCING,
            "a_triggerer_that_stood_still_leaves_jobs_to_the_one_that_took_over",
        ),
        "No triggerer, or no Airflow, ever again": (
            FENCING,
            "a_task_that_a_user_ends_while_the_api_server_hangs_for_good_loses_its_job_with_its_lease",
        ),
        "API server away for up to `api_outage_tolerance`": (
            "unit outage",
            "a_worker_bears_an_outage_as_long_as_it_may_last",
        ),
        "... for longer": (API, "after_a_long_outage_the_worker_looks_for_itself_and_defers_again"),
        "The token expired": ("connections", "a_worker_reads_a_token_that_was_replaced_anew_and_once"),
        "Credentials rejected after that": (
            API,
            "credentials_that_stay_refused_fail_the_task_for_good_and_leave_the_job",
        ),
        "Quota exceeded": (API, "a_task_for_which_a_quota_has_no_room_tries_again"),
        "The job is deleted by somebody else": (
            LOST,
            "a_job_that_is_deleted_by_hand_is_a_failure_and_a_retry_makes_another",
        ),
        "The job is gone by TTL after it was seen to have succeeded": (
            LOST,
            "a_job_that_is_gone_when_the_task_resumes_has_succeeded_all_the_same",
        ),
        "... before it was seen (`ttlSecondsAfterFinished` below `poll_interval`, or during an outage)": (
            "operator",
            "a_job_deleted_by_somebody_else_is_a_failure",
        ),
        "Its name belongs to something else": (LOST, "a_name_that_is_taken_is_left_to_who_has_it"),
    },
    "| | when | a mistake in it |": {
        "`on_manifest_created(manifest, operator, context)`": (
            OPERATOR,
            "a_callback_that_fails_before_the_job_fails_the_task_and_makes_none",
        ),
        "`on_job_creation(job, operator, context)`": (OPERATOR, CALLED),
        "`on_operator_resuming(event, operator, context)`": (OPERATOR, CALLED),
        "`on_job_completion(event, operator, context)`": (OPERATOR, CALLED),
    },
    "| | 3.3 | 3.0 to 3.2 | 2.11 |": {
        "A retry finds its job": (RELEASES, "a_worker_that_is_killed_is_followed_by_one_that_goes_on_with_its_job"),
        "Two Airflows with the same DAG, run and task, in one namespace": (
            OPERATOR,
            "two_airflows_that_share_a_cluster_never_meet",
        ),
        "A worker is killed after the request to create its job left it, and before the API server has it": (
            KILLED,
            "a_worker_that_is_killed_while_it_creates_its_job_leaves_no_second_one",
        ),
        'A job that succeeded and went (`on_finish_action="delete"`, a short TTL) before its task had ended': None,
        "A callback's `on_manifest_created` puts the job into another namespace": None,
        "A user ends a deferred task": (RELEASES, "a_task_that_a_user_ends_ends_its_job"),
        "... while no triggerer runs": (
            KILLED,
            "a_triggerer_that_ends_leaves_jobs_and_what_users_asked_for_meanwhile_to_the_next",
        ),
        "`execution_timeout` of a deferred task": (RELEASES, "a_deferred_task_that_takes_too_long_ends_its_job"),
        "A job that succeeded just as `execution_timeout` was over": (
            "trigger",
            "what_became_of_the_job_comes_before_a_deadline_that_has_passed",
        ),
        "The links to a job": (RELEASES, "a_task_returns_the_result_of_its_job_and_shows_its_log"),
        "A task is cleared in the moment in which its worker defers it": None,
        "A user's kill of a worker": None,
        "`airflow mxnet cleanup-jobs`": (
            FENCING,
            "a_job_for_which_no_task_waits_is_found_and_deleted_by_a_command",
        ),
    },
    "| By executor: what differs | LocalExecutor | CeleryExecutor | KubernetesExecutor |": {
        "A user ends the task": (EXECUTORS, "a_task_that_a_user_ends_ends_its_job"),
        "What `on_kill` gets time for": (
            DETACHED,
            "a_job_that_a_killed_worker_could_not_end_is_ended_when_the_api_is_back",
        ),
        "The worker is stopped for a deployment": (
            EXECUTORS,
            "a_worker_whose_processes_are_all_signalled_ends_its_job_and_a_retry_makes_another",
        ),
        "The worker is killed, or its node is lost": (
            EXECUTORS,
            "a_worker_that_is_killed_is_followed_by_one_that_goes_on_with_its_job",
        ),
        "The same task is started twice": (
            EXECUTORS,
            "a_message_that_is_delivered_again_starts_nothing_while_its_task_runs",
        ),
        "What to set": None,
    },
}
"""By a row's first cell its test; None where no test shows what Airflow does there, or there is nothing to show."""


def rows(head: str) -> list[str]:
    """The first cells of the table with this head."""
    table = PAGE.read_text().split(f"\n{head}\n")[1].split("\n\n")[0]
    return [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines()[1:]]


@cache
def functions_in(file: Path) -> set[str]:
    """The functions of a file."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, kinds)}


@pytest.mark.parametrize("head", TABLES)
def test_each_row_has_its_test_or_is_known_to_have_none(head: str) -> None:
    assert rows(head) == list(TABLES[head])


@pytest.mark.parametrize(
    ("file", "test"), sorted({found for table in TABLES.values() for found in table.values() if found})
)
def test_the_test_of_a_row_exists(file: str, test: str) -> None:
    folder = "unit/provider/test_provider" if file.startswith("unit ") else "airflow/test_airflow"
    assert f"test_{test}" in functions_in(ROOT / "tests" / f"{folder}_{file.removeprefix('unit ')}.py")


LOCKS = {"3.3": ROOT / "requirements" / "dev.txt"} | {
    folder.name.removeprefix("airflow-"): folder / "requirements.txt"
    for folder in (ROOT / "tests" / "tools").glob("airflow-[0-9]*")
}
"""By release the lock of the Airflow that tests run on."""


@pytest.mark.parametrize("release", LOCKS)
def test_the_releases_that_the_page_calls_tested_are_those_that_tests_run_on(release: str) -> None:
    (locked,) = re.findall(r"^apache-airflow==(\S+)", LOCKS[release].read_text(), re.MULTILINE)
    assert locked in rows("| Airflow | tested |")
    assert locked.startswith(f"{release}.")


def test_the_page_calls_no_further_release_tested() -> None:
    assert len(rows("| Airflow | tested |")) == len(LOCKS) + 1, "a row more than that of 3.0 and 3.2 has no lock"


def test_the_oldest_versions_are_those_of_the_package() -> None:
    package = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {
        each.partition(">=")[0]: each.partition(">=")[2].partition(",")[0]
        for each in package["optional-dependencies"]["airflow"]
    }
    said = PAGE.read_text().split("## Versions and upgrades\n\n")[1].split("\n\n")[0].replace("\n", " ")
    assert f"Airflow {wanted['apache-airflow']} and newer" in said
    for name in ("apache-airflow-providers-cncf-kubernetes", "apache-airflow-providers-common-compat"):
        assert f"`{name}` {wanted[name]} and newer" in said
    assert f"Python {package['requires-python'].removeprefix('>=')} and newer" in said
