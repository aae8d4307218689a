"""The list of jobs: one order, filter, state and page, which the page's address has."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from mxnet_operator.dashboard import job_list
from mxnet_operator.dashboard.job_list import View

NOW = datetime.now(UTC)
TRACEBACK = "mxjob b is failed. worker-0 exited with code 1:\nTraceback:\n  <line>\nKeyError: 'w'\n"


def job(name, state, *, minutes=0, restarts=0, message="", seconds=60):
    created = NOW - timedelta(minutes=minutes)
    conditions = [{"type": state, "status": "True", "message": message}]
    times = {"startTime": created.isoformat(), "completionTime": (created + timedelta(seconds=seconds)).isoformat()}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MXJob",
        "metadata": {"name": name, "namespace": "team", "uid": f"u-{name}", "creationTimestamp": created.isoformat()},
        "spec": {"mxReplicaSpecs": {}},
        "status": {"state": state, "restarts": restarts, "conditions": conditions, **times},
    }


JOBS = [
    job("c", "Succeeded", minutes=3, seconds=5),
    job("b", "Failed", minutes=1, restarts=2, message=TRACEBACK, seconds=7),
    job("a", "Failed", minutes=2, seconds=900),
]


def shown(jobs, **query):
    found = job_list.parts(jobs, {}, View.of(query))
    return found, re.findall(r'<th scope="row"><a href="/jobs/team/(\w+)/', found["jobs"])


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({}, "b a c"),
        ({"sort": "-age"}, "c a b"),
        ({"sort": "name"}, "a b c"),
        ({"sort": "-restarts"}, "b a c"),
        ({"sort": "duration"}, "c b a"),
        ({"state": "Failed"}, "b a"),
        ({"filter": "team KEYERROR"}, "b"),
        ({"filter": "a", "state": "Succeeded"}, "c"),
        ({"sort": "__class__", "page": "-1"}, "b a c"),
        ({"page": "\u0663"}, "b a c"),
        ({"page": "9" * 400}, "b a c"),
    ],
)
def test_the_address_chooses_order_state_and_words(query, names):
    assert " ".join(shown(JOBS, **query)[1]) == names


def test_a_state_can_be_clicked_and_keeps_filter_and_order():
    found, _ = shown(JOBS, filter="team", sort="name", page="2")
    assert (
        'href="/?state=Failed&amp;filter=team&amp;sort=name"><span class="state failed">Failed</span></a>'
        in (found["facts"])
    )
    assert 'href="/?filter=team&amp;sort=-name">Name' in found["jobs"]
    assert re.findall(r"<dd>(\d+)</dd>", shown(JOBS, state="Failed")[0]["facts"]) == ["3", "2", "1"]
    assert re.findall(r"<dd>(\d+)</dd>", shown(JOBS, filter="keyerror")[0]["facts"]) == ["1", "1"]


def test_a_page_has_100_jobs_and_leads_to_the_others():
    many = [job(f"j{number:03}", "Succeeded", minutes=number) for number in range(230)]
    pages = [shown(many, page=str(number)) for number in (1, 2, 3, 9)]
    assert [len(names) for _, names in pages] == [100, 100, 30, 30]
    assert pages[1][1][0] == "j100"
    assert "101 to 200 of 230" in pages[1][0]["jobs"]
    assert [('page=2">Next' in each["jobs"], "Previous" in each["jobs"]) for each, _ in pages] == [
        (True, False),
        (False, True),
        (False, True),
        (False, True),
    ]


def test_a_failed_row_begins_with_the_last_line_of_the_traceback():
    found, _ = shown(JOBS, filter="keyerror")
    why = "KeyError: &#x27;w&#x27; - mxjob b is failed. worker-0 exited with code 1:"
    assert f'<td class="long" title="{why}">{why}</td>' in found["jobs"]


def test_what_the_address_says_is_escaped():
    evil = '"><script>'
    view = View.of({"filter": evil, "state": evil, "sort": evil})
    found = job_list.parts(JOBS, {}, view)
    assert "<script>" not in "".join([*found.values(), *job_list.body(found, evil, view)])
