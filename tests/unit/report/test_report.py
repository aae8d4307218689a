"""The report: complete in one file, escaped, and readable by those who can't see its pictures."""

import builtins
import json
import os
import re
import subprocess
import sys

import matplotlib
import pytest

from mxnet_operator import report
from mxnet_operator.api import names
from mxnet_operator.api.replica_types import TYPES, ReplicaType

AT = "2026-11-21T12:00:{:02}Z"


def replica(kind, index, started=None, finished=None, exit_code=None):
    return {
        "pod": f"digits-{kind}-{index}",
        "type": kind,
        "index": index,
        "created_at": AT.format(0),
        "started_at": None if started is None else AT.format(started),
        "finished_at": None if finished is None else AT.format(finished),
        "exit_code": exit_code,
    }


def job(**fields):
    return {
        "name": "digits",
        "namespace": "default",
        "uid": "uid-of-digits",
        "state": "Succeeded",
        "started_at": AT.format(0),
        "completed_at": AT.format(12),
        "duration_s": 12.0,
        "message": "MXJob digits is successfully completed.",
        "replicas": [replica("scheduler", 0, 1, 11, 0), replica("server", 0, 1, 11, 0), replica("worker", 0, 2, 12, 0)],
        "result": {
            "accuracy": 0.9917,
            "epochs": 3,
            "validation_accuracy": [0.9, 0.97, 0.9917],
            "train_accuracy": [0.8, 0.95, 0.99],
        },
        **fields,
    }


def test_a_report_shows_the_facts():
    page = report.html(job(), threshold=0.98)
    for fact in ("digits", "Succeeded", "99.17%", "12 s", "1 scheduler, 1 server, 1 worker", "reaches the 98%"):
        assert fact in page


def test_a_report_refers_to_nothing_outside_itself():
    page = report.html(job(), threshold=0.98)
    assert re.findall(r"""(?:src|href)=["'](?!data:)[^"']*""", page) == []
    assert "@import" not in page
    assert "url(#failed)" not in page or 'id="failed"' in page
    assert "<script" not in page


def test_the_pictures_are_described_in_words():
    page = report.html(job(), threshold=0.98)
    assert "Validation accuracy goes from 90.0% after epoch 1 to 99.2% after epoch 3." in page
    assert "The threshold of 98% is first reached after epoch 3." in page
    assert re.search(r'<svg [^>]*aria-label="[^"]*worker-0 started at 12:00:02, ran for 10 s, exit code 0', page)
    assert all(re.findall(r'<img [^>]*alt="(.+?)"', page))


def test_every_value_is_escaped():
    evil = '<script>alert("x")</script>&'
    replicas = [{**replica("worker", 0, 1, 2, 0), "pod": evil, "type": evil}]
    page = report.html(job(name=evil, namespace=evil, message=evil, state=evil, replicas=replicas))
    assert "<script" not in page
    assert "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;&amp;" in page


def test_a_failed_replica_stands_out_in_colour_pattern_and_words():
    page = report.html(job(state="Failed", replicas=[replica("worker", 0, 1, 5, 3), replica("worker", 1, 1)]))
    assert page.count('fill="url(#failed)"') == 1
    assert page.count("exit code 3") >= 2
    assert "not finished" in page


def test_a_replica_that_was_stopped_is_not_shown_as_failed():
    page = report.html(job(replicas=[{**replica("tunerserver", 0, 1, 11, 143), "outcome": "stopped"}]))
    assert "url(#failed)" not in page
    assert "exit code 143" not in page
    assert page.count("stopped") >= 2


def test_a_replica_that_failed_without_an_exit_code_stands_out_too():
    page = report.html(job(state="Failed", replicas=[{**replica("worker", 0, 1), "outcome": "failed"}]))
    assert page.count('fill="url(#failed)"') == 1
    assert "not finished" not in page


def test_a_new_replica_type_has_the_colour_of_its_role(monkeypatch):
    monkeypatch.setitem(TYPES, "Evaluator", ReplicaType(name="Evaluator", works=True))
    monkeypatch.setitem(names._BY_LOWER_CASE, "evaluator", "Evaluator")
    worker, evaluator = (report.html(job(replicas=[replica(each, 0, 1, 5, 0)])) for each in ("worker", "evaluator"))
    [colour] = re.findall(r'class="dot" style="background:(#\w+)"', worker)
    assert re.findall(r'class="dot" style="background:(#\w+)"', evaluator) == [colour]


def test_an_accuracy_below_the_threshold_is_said_to_miss_it():
    result = {"accuracy": 0.9, "epochs": 1, "validation_accuracy": [0.9]}
    page = report.html(job(result=result), threshold=0.98)
    assert "misses the 98%" in page
    assert "never reached" in page


@pytest.mark.parametrize("result", [None, "done", 0.98, {"validation_accuracy": "high", "epochs": "many"}, []])
def test_a_result_without_a_history_is_no_error(result):
    assert "reported no accuracy" in report.html(job(result=result))


@pytest.mark.parametrize("replicas", [[], [replica("worker", 0)], [{**replica("worker", 0), "created_at": None}]])
def test_replicas_that_never_ran_are_no_error(replicas):
    page = report.html(job(replicas=replicas, started_at=None, completed_at=None, duration_s=None))
    assert "NaN" not in page


def test_a_thinned_history_keeps_its_epochs():
    run = report.Run.of(job(result={"epochs": 10, "every": 4, "validation_accuracy": [0.1, 0.2, 0.3]}))
    assert run.history("validation_accuracy") == ((2, 0.1), (6, 0.2), (10, 0.3))


def test_the_same_job_gives_the_same_report():
    assert report.html(job(), threshold=0.98) == report.html(job(), threshold=0.98)


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    real_import = builtins.__import__

    def no_matplotlib(name, *args, **kwargs):
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_matplotlib)
    with pytest.raises(report.MissingMatplotlibError, match=r"mxnet-operator\[report\]"):
        report.html(job())


TUNED = {
    "untuned_ms": 1.332,
    "tuned_ms": 0.126,
    "trials_ms": [0.5, 0.2, 0.126],
    "trials_on": [0, 1, 0],
    "servers": {"tunerserver-0": 2, "tunerserver-1": 1},
}


def test_a_tuning_is_shown_before_and_after_with_who_measured_what():
    page = report.html(job(result=TUNED, replicas=[replica("tuner", 0, 1, 11, 0)]))

    assert "0.126 ms" in page
    assert "1.33 ms before: 10.6 times as fast" in page
    words = "3 trials: 2 on tunerserver-0, 1 on tunerserver-1."
    assert f"One run takes 1.33 ms before and 0.126 ms after the tuning: it is 10.6 times as fast. {words}" in page
    assert "reported no accuracy" not in page


@pytest.mark.parametrize("change", [{"tuned_ms": 0}, {"trials_ms": []}, {"trials_ms": ["fast"]}, {"untuned_ms": None}])
def test_a_result_that_is_no_tuning_is_not_drawn_as_one(change):
    assert "times as fast" not in report.html(job(result={**TUNED, **change}))


def test_the_speed_of_a_training_is_drawn_and_told_with_its_accuracy():
    speeds = {"samples_per_second": [100.0, None, 140.0]}
    with_speed = report.html(job(result={**job()["result"], **speeds}))

    assert "The worker trained on 100 to 140 samples per second." in with_speed
    assert len(re.findall("<img", with_speed)) == 1
    assert "The worker trained on" in report.html(job(result={"epochs": 3, **speeds}))


@pytest.mark.parametrize("lost", [None, float("nan"), float("-inf")])
@pytest.mark.parametrize("title", ["train_accuracy", "validation_accuracy"])
def test_a_training_that_diverged_has_a_gap_and_a_mark_where_it_did(lost, title):
    page = report.html(job(result={"epochs": 4, title: [0.5, lost, lost, 0.7]}))
    words = {"train_accuracy": "Training", "validation_accuracy": "Validation"}[title]
    assert f"{words} accuracy is not a number after epochs 2 to 3: the training diverged." in page
    assert "<dt>Diverged</dt><dd>epoch 2</dd>" in page
    run = report.Run.of(job(result={"epochs": 4, title: [0.5, lost, lost, 0.7]}))
    assert (run.history(title), run.diverged(title)) == (((1, 0.5), (4, 0.7)), (2, 3))
    assert picture(run) != picture(report.Run.of(job(result={"epochs": 4, title: [0.5, 0.6, 0.6, 0.7]})))


def test_a_training_that_never_had_a_number_has_a_report():
    page = report.html(job(result={"epochs": 2, "accuracy": None, "train_accuracy": [None, None]}), threshold=0.9)
    assert "Training accuracy is not a number after epochs 1 to 2" in page
    assert "nan%" not in page


def picture(run):
    return re.findall(r'<img src="([^"]*)', report.html(run))


NAMED = {**TUNED, "servers": {"$\\undefined{$": 2, "_tunerserver-1": 1}}
SETTINGS = {
    "LaTeX, which is not installed": {"text.usetex": True},
    "another font": {"font.family": "no such font", "font.size": 40},
    "a style of the user's": {"axes.grid": True, "axes.facecolor": "black", "lines.linewidth": 9},
    "a mode of the figure": {"savefig.bbox": "tight", "figure.autolayout": True, "savefig.dpi": 7},
    "text as text": {"svg.fonttype": "none", "svg.hashsalt": None, "axes.unicode_minus": False},
}


@pytest.mark.parametrize("result", [job()["result"], TUNED, NAMED], ids=["accuracy", "tuning", "names"])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_the_users_settings_of_matplotlib_change_nothing(settings, result):
    plainly = report.html(job(result=result))
    with matplotlib.rc_context(settings):
        before = dict(matplotlib.rcParams)
        assert report.html(job(result=result)) == plainly
        assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize(
    ("backend", "settings"),
    [
        ("module://matplotlib_inline.backend_inline", "text.usetex: True"),
        ("no-such-backend", "axes.grid: perhaps"),
        ("tkagg", "no.such.key: 1"),
        ("svg", "backend: qtagg"),
    ],
)
def test_no_backend_and_no_file_of_settings_keeps_a_report_from_being_drawn(tmp_path, backend, settings):
    (tmp_path / "matplotlibrc").write_text(f"{settings}\n")
    code = (
        "import os, sys, json; from mxnet_operator import report; page = report.html(json.loads(sys.argv[1]));"
        "assert 'data:image/svg+xml' in page; import matplotlib; own = os.environ['MPLBACKEND'];"
        "assert own != 'svg' or matplotlib.get_backend() == own; print(own)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(job())],
        env={**os.environ, "MPLBACKEND": backend, "MATPLOTLIBRC": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, backend), done.stderr
