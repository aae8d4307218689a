"""What a program of ours exits with when it can't do what it should."""

import pytest

from mxnet_operator.cli.errors import CommandError, Exit, run_app


def ending(error):
    """A command line whose command raises this."""

    def app(prog_name, standalone_mode):
        raise error

    return app


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (CommandError("no such job", code=Exit.API), 3, "error: no such job"),
        (KeyboardInterrupt(), 130, ""),
        (ZeroDivisionError("a mistake of ours"), 70, "ZeroDivisionError: a mistake of ours"),
    ],
    ids=["said", "interrupted", "unexpected"],
)
def test_an_error_has_the_code_of_its_cause(capfd, error, code, said):
    with pytest.raises(SystemExit) as ended:
        run_app(ending(error), "mxjob")
    assert ended.value.code == code
    told = capfd.readouterr().err
    assert said in told
    assert bool(said) is bool(told)
