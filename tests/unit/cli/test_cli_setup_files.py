"""What a project's setup.py, setup.cfg or pyproject.toml asks for, said with the command that gives it."""

import itertools
import sys
from datetime import date

import pytest

from mxnet_operator.cli.running import other_environment as proposing
from mxnet_operator.cli.running.failure_hints import failure_hint
from mxnet_operator.cli.running.other_environment import other_environment
from mxnet_operator.cli.running.script import Script

IMAGE = "and the image has MXNet 1.9.1 and Python 3.11: mxjob run train.py"
OF_2019 = """
from setuptools import setup, find_packages
import setuptools
requirements = ['mxnet>=1.3,<1.6', 'Pandas<1.0', 'numpy', 'scipy<1.3', 'six', 'typing; python_version<"3.5"',
                'futures; python_version<"3.7"', 'x @ git+https://example.invalid/x', '-r other.txt']
setup(name='a', version=open('v').read(), python_requires='>=3.6,<3.8', install_requires=requirements)
"""
PIPS = "--pip 'mxnet>=1.3,<1.6' --pip 'Pandas<1.0' --pip 'scipy<1.3' --pip six"
SAID = (
    # files, requirements.txt, options, day of the folder -> the line
    ({"setup.py": OF_2019}, "", "", None, f"setup.py asks for Python >=3.6,<3.8 and mxnet>=1.3,<1.6, {IMAGE} {PIPS}"),
    (
        {"setup.py": OF_2019},
        "",
        "",
        date(2019, 3, 3),
        f"setup.py asks for Python >=3.6,<3.8 and mxnet>=1.3,<1.6, {IMAGE} {PIPS} --as-of 2019-03-03",
    ),
    (
        {"setup.py": OF_2019},
        "pandas==0.24.1\nmxnet\n",
        "--pip six",
        None,
        f"setup.py asks for Python >=3.6,<3.8, {IMAGE} --pip six --pip 'scipy<1.3' --python 3.7",
    ),
    (
        {"setup.py": OF_2019},
        "mxnet==1.6.0\n",
        "",
        None,
        "setup.py asks for Python >=3.6,<3.8, and the image has MXNet 1.6.0 and Python 3.8: mxjob run train.py"
        " --pip 'Pandas<1.0' --pip 'scipy<1.3' --pip six --python 3.7",
    ),
    (
        {"setup.cfg": "[options]\npython_requires = ==3.6.*\ninstall_requires =\n    six\n    mxnet-cu90 == 1.4.1\n"},
        "",
        "",
        None,
        f"setup.cfg asks for Python ==3.6.* and mxnet-cu90 == 1.4.1, {IMAGE} --pip six"
        " --pip 'mxnet-cu90 == 1.4.1' --python 3.6",
    ),
    (
        {"setup.py": "import mine; mine.setup()", "pyproject.toml": "[project]\nrequires-python = '<3.10,>=3.9.1'\n"},
        "",
        "",
        None,
        f"pyproject.toml asks for Python <3.10,>=3.9.1, {IMAGE} --python 3.9",
    ),
    # What the image fulfils, what no image does, and what nobody can read.
    ({"setup.py": "setup(python_requires='>=3.6', install_requires=['mxnet>=1.3', 'pandas<1'])"}, "", "", None, ""),
    ({"pyproject.toml": "[project]\nrequires-python = '>=3.12'\ndependencies = ['torch']\n"}, "", "", None, ""),
    ({"setup.py": "print 'a'\nsetup(python_requires='<3')"}, "", "", None, ""),
    ({"setup.py": "setup(python_requires=read(), install_requires=['a'] + read())"}, "", "", None, ""),
    ({"setup.cfg": "[options\n", "pyproject.toml": "[project\n"}, "", "", None, ""),
    ({"setup.py": "setup(python_requires='three')"}, "", "", None, ""),
    # What the user chose.
    *(({"setup.py": OF_2019}, "", chosen, None, "") for chosen in ("--mxnet 1.5", "--python 3.8", "--as-of 2020")),
    ({"setup.py": OF_2019}, "# python: 3.11\nsix==1.17.0 --hash=sha256:00\n", "", None, ""),
)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Makes the folder of a script, which is the current one, of the texts of files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MXJOB_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("mxnet_operator.cli.running.other_environment.installed_interpreter", lambda _: sys.executable)

    def make(files, requirements="", options="", day=None):
        for name in ("setup.py", "setup.cfg", "pyproject.toml", "requirements.txt"):
            (tmp_path / name).unlink(missing_ok=True)
        for name, text in {
            **files,
            "train.py": "",
            **({"requirements.txt": requirements} if requirements else {}),
        }.items():
            (tmp_path / name).write_text(text)
        words = options.split()
        monkeypatch.setattr(sys, "argv", ["mxjob", "run", "train.py", *words])
        monkeypatch.setattr(proposing, "runnable_day", lambda _: day)
        return Script.of(["train.py"]), [value for flag, value in itertools.pairwise(words) if flag == "--pip"]

    return make


def test_another_python_or_mxnet_that_a_project_asks_for_is_said_with_the_command(project):
    for *given, line in SAID:
        assert other_environment(*project(*given)) == line, given


def test_a_package_that_fails_to_import_is_proposed_as_the_project_asks_for_it(project):
    script, _ = project({"setup.py": "setup(install_requires=['pandas<1', 'mine>=2'])"})
    for name, asked in (("pandas", "'pandas<1'"), ("mine", "'mine>=2'")):
        said = failure_hint(f"ModuleNotFoundError: No module named '{name}'", {}, script)
        assert said == f"{name} isn't in the image: mxjob run train.py --pip {asked}"
