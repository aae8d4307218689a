"""The report: complete in one file, escaped, and readable by those who can't see its pictures."""

import re

import msgspec
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
    for fact in ("digits", "Succeeded", "99.17%", "12s", "1 scheduler, 1 server, 1 worker", "reaches the 98%"):
        assert fact in page


def test_a_report_names_what_the_job_kept_or_says_that_it_kept_nothing():
    kept = report.html(job(files=["worker-1 wrote digits-0001.params", "claim models at /models"]))
    assert "<li><code>worker-1 wrote digits-0001.params</code></li><li><code>claim models at /models" in kept
    assert "wrote no files that outlive their pods" in report.html(job(files=[]))
    assert "outlive their pods" not in report.html(job())


def test_a_report_refers_to_nothing_outside_itself():
    page = report.html(job(), threshold=0.98)
    assert re.findall(r"""(?:src|href)=["'](?!data:)[^"']*""", page) == []
    assert "@import" not in page
    assert "url(#failed)" not in page or 'id="failed"' in page
    assert "<script" not in page


def test_percentages_of_the_script_stay_as_they_are():
    page = report.html(job(result={"epochs": 2, "validation_accuracy": [90, 97.5]}))
    assert "Validation accuracy goes from 90 after epoch 1 to 97.5 after epoch 2." in page


def test_the_pictures_are_described_in_words():
    page = report.html(job(), threshold=0.98)
    assert "Validation accuracy goes from 90% after epoch 1 to 99.17% after epoch 3." in page
    assert "The threshold of 98% is first reached after epoch 3." in page
    assert re.search(r'<svg [^>]*aria-label="[^"]*worker-0 started at 12:00:02, ran for 10s, exit code 0', page)
    assert (
        'aria-label="Chart of accuracy over epochs. Last: validation accuracy 0.9917, training accuracy 0.99."' in page
    )


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
    [colour] = re.findall(r'class="dot (\w+)"', worker)
    assert re.findall(r'class="dot (\w+)"', evaluator) == [colour]
    assert f".{colour} " in worker


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
    run = msgspec.convert(job(result={"epochs": 10, "every": 4, "validation_accuracy": [0.1, 0.2, 0.3]}), report.Run)
    assert run.history("validation_accuracy") == ((2, 0.1), (6, 0.2), (10, 0.3))


def test_the_same_job_gives_the_same_report():
    assert report.html(job(), threshold=0.98) == report.html(job(), threshold=0.98)


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
    assert titles(with_speed) == ["accuracy", "samples/s"]
    assert "The worker trained on" in report.html(job(result={"epochs": 3, **speeds}))


@pytest.mark.parametrize("lost", [None, float("nan"), float("-inf")])
@pytest.mark.parametrize("title", ["train_accuracy", "validation_accuracy"])
def test_a_training_that_diverged_has_a_gap_and_a_mark_where_it_did(lost, title):
    page = report.html(job(result={"epochs": 4, title: [0.5, lost, lost, 0.7]}))
    words = {"train_accuracy": "Training", "validation_accuracy": "Validation"}[title]
    assert f"{words} accuracy is not a number after epochs 2 to 3: the training diverged." in page
    assert "<dt>Diverged</dt><dd>epoch 2</dd>" in page
    run = msgspec.convert(job(result={"epochs": 4, title: [0.5, lost, lost, 0.7]}), report.Run)
    assert (run.history(title), run.diverged(title)) == (((1, 0.5), (4, 0.7)), (2, 3))
    assert page.count('<path class="lost"') == 2
    assert "<polyline" not in page


def test_a_training_that_never_had_a_number_has_a_report():
    page = report.html(job(result={"epochs": 2, "accuracy": None, "train_accuracy": [None, None]}), threshold=0.9)
    assert "Training accuracy is not a number after epochs 1 to 2" in page
    assert "nan%" not in page


def titles(page):
    return re.findall(r"<h3>(.*?)</h3>", page)


def values(page, name):
    return re.findall(rf"<title>{name}, epochs trained \d+: (.*?)</title>", page)


def test_figures_of_each_unit_have_a_chart_of_their_own():
    result = {
        "epochs": 2,
        "validation_accuracy": [0.5, 0.75],
        "train_loss": [7.5, 2.25],
        "perplexity": [900.0, 120.0],
        "time_cost": [8.0, 9.0],
        "samples_per_second": [100.0, 110.0],
    }
    page = report.html(job(result=result))
    assert titles(page) == ["accuracy", "loss", "perplexity", "samples/s", "seconds"]
    assert values(page, "validation accuracy") == ["50%", "75%"]
    assert values(page, "training loss") == ["7.5", "2.25"]
    assert values(page, "perplexity") == ["900", "120"]


def test_without_an_accuracy_the_last_loss_is_the_first_fact():
    page = report.html(job(result={"epochs": 2, "train_loss": [7.5, 2.25], "validation_loss": [8.0, 3.5]}))
    assert '<dt>Validation loss</dt><dd>3.5</dd><dd class="quiet">after epoch 2</dd>' in page


def test_a_figure_of_the_log_is_drawn_whatever_its_name_and_one_of_the_result_only_by_a_usual_name():
    page = report.html(job(result={"epochs": 2, "bleu": [1.0, 2.0], "layer_sizes": [64, 32]}, from_log=["bleu"]))
    assert titles(page) == ["bleu"]


def test_a_traceback_in_the_message_keeps_its_lines():
    message = "Worker 0 exited with code 1:\n  File <train.py>\nValueError"
    page = report.html(job(state="Failed", message=message))
    assert "<p>Worker 0 exited with code 1:</p>" in page
    assert "  File &lt;train.py&gt;\nValueError</pre>" in page


def test_the_last_line_of_a_failure_comes_first_and_once_where_it_is_all():
    def said(message, state="Failed"):
        header = report.html(job(state=state, message=message)).partition("</h1>")[2].partition("</header>")[0]
        return re.findall(r"<(pre|p|code)\b[^>]*>([^<]*)", header)

    ended = "worker-0 exited with code 1:"
    assert said(f"{ended}\nTraceback:\n  f()\nKeyError: &amp;\n\n") == [
        ("p", ""),
        ("code", "KeyError: &amp;amp;"),
        ("p", ended),
        ("pre", "Traceback:\n  f()\nKeyError: &amp;amp;"),
    ]
    assert said(f"{ended}\nKeyError") == [("p", ""), ("code", "KeyError"), ("p", ended)]
    assert said("one\ntwo", state="Running") == [("p", "one"), ("pre", "two")]


def attempt(second, message):
    return {"ended_at": AT.format(second), "message": message}


def test_attempts_that_ended_in_a_restart_have_bands_and_rows_with_their_reason():
    attempts = [attempt(4, "worker-0 exited with code 137:\nlost <it>"), attempt(9, "the node was drained")]
    page = report.html(job(restarts=2, attempts=attempts, replicas=[replica("worker", 0, 10, 12, 0)]))
    assert "<dt>Restarts</dt><dd>2</dd>" in page
    rows = re.findall(r'<th scope="row">(\d)</th><td>([\d:]+)</td><td>(\d+s)</td>', page)
    assert rows == [("1", "12:00:04", "4s"), ("2", "12:00:09", "5s"), ("3", "12:00:12", "3s")]
    assert "<code>lost &lt;it&gt;</code>" in page
    [drawing] = re.findall(r'<svg [^>]*aria-label="Time line.*?</svg>', page, re.DOTALL)
    bands = re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"[^>]*url\(#failed\)', drawing)
    assert [round(float(width) / float(bands[0][1]), 1) for _, width in bands] == [1.0, 1.3]
    assert "2 restarts" in drawing


def test_attempts_whose_events_have_expired_are_counted_and_not_invented():
    page = report.html(job(restarts=3, attempts=[attempt(4, "the node was drained")]))
    assert "<dt>Restarts</dt><dd>3</dd>" in page
    assert re.findall(r'<th scope="row">(\d)</th><td>[\d:]+</td><td>([^<]*)</td>', page) == [("3", ""), ("4", "8s")]
    assert "Earlier attempts have no event" in page
    for unknown in (report.html(job()), report.html(job(restarts=0))):
        assert 'id="attempts" hidden' in unknown
    assert "<dt>Restarts</dt>" not in report.html(job())


def test_a_report_shows_command_image_and_versions():
    program = {"type": "worker", "image": "a&b", "command": "python t.py '<x>'", "versions": "Python 3.11, mxnet 1.9.1"}
    page = report.html(job(programs=[program]))
    assert "<code>python t.py &#x27;&lt;x&gt;&#x27;</code>" in page
    assert "<code>a&amp;b</code>" in page
    assert "Python 3.11, mxnet 1.9.1" in page
    assert 'id="program" hidden' in report.html(job())


def test_large_figures_are_short_and_have_room():
    page = report.html(job(result={"epochs": 2, "samples_per_second": [115900.0, 2500000.0]}))
    assert "trained on 115.9k to 2.5M samples per second." in page
    small = report.html(job(result={"epochs": 2, "train_loss": [0.0012312, 0.0012388]}))
    edges = re.findall(r'<text class="quiet" x="(\d+)"[^>]*text-anchor="end">([^<]*)', small)
    assert edges
    assert all(int(edge) >= 10 * len(label) for edge, label in edges), edges


def test_the_time_line_of_a_large_job_draws_the_failed_replicas_and_40_at_most():
    replicas = [replica("worker", index, 1, 5, 3 if index == 499 else 0) for index in range(500)]
    [drawn] = re.findall(r'<svg [^>]*aria-label="Time line[^>]*>.*?</svg>', report.html(job(replicas=replicas)))
    assert drawn.count("<g>") == 40
    assert "worker-499" in drawn
