"""A span of time is written alike on every command line and in an Argo step."""

import pytest
import typer

from mxnet_argo import refusals as argo
from mxnet_operator.cli.output import times
from mxnet_operator.readers.durations import seconds_of

READ = {
    "90s": 90,
    "15s": 15,
    "10m": 600,
    "2h": 7200,
    "1h30m": 5400,
    "1.5h": 5400,
    ".5m": 30,
    "500ms": 0.5,
    "1m500ms": 60.5,
    "30m1h": 5400,
    "250us": 0.00025,
    "0s": 0,
}


@pytest.mark.parametrize(("text", "seconds"), READ.items())
def test_what_go_reads_is_read_by_mxjob_the_controller_and_argos_steps(text, seconds):
    assert seconds_of(text) == times.duration(text) == pytest.approx(seconds)
    assert argo.seconds(text) == -(-seconds // 1)


def test_a_number_alone_is_seconds_but_for_argo_which_could_not_read_it():
    assert seconds_of("90") == times.duration("90") == 90
    with pytest.raises(ValueError, match="Argo can't read '90'"):
        argo.seconds("90")


@pytest.mark.parametrize("text", ["", "soon", "1d", "-5s", "5 s", "1h 30m", "5S", "1e3s", "\u0663s", "s", ".s", "1h30"])
def test_what_go_does_not_read_is_rejected_by_all(text):
    for read, error in (
        (seconds_of, ValueError),
        (times.duration, typer.BadParameter),
        (argo.seconds, ValueError),
    ):
        with pytest.raises(error):
            read(text)
