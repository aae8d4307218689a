"""What a script's text shows before its image is built: Python 2, imports that must fail, no kvstore."""

import sys

import pytest

from mxnet_operator.cli.running.failure_hints import trains_alone
from mxnet_operator.cli.running.script import Script
from mxnet_operator.cli.running.script_text import ScriptText

# Lines, and the options with which they run.
OLD = {
    "print 'a'": ("--python", "2.7"),
    "print 'a' % 1,": ("--python", "2.7"),
    "exec 'a' in d": ("--python", "2.7"),
    "raise ValueError, 'a'": ("--python", "2.7"),
    "try: pass\nexcept (A, B), e: pass": ("--python", "2.7"),
    "a <> b": ("--python", "2.7"),
    "a = `b`": ("--python", "2.7"),
    "a = 10L": ("--python", "2.7"),
    "a = 0xFFL": ("--python", "2.7"),
    "a = 0777": ("--python", "2.7"),
    "a = ur'b'": ("--python", "2.7"),
    "def f(a, (b, c)): pass": ("--python", "2.7"),
    "f = lambda (a, b): a": ("--python", "2.7"),
    "if a:\n        b = 1\n\tc = 2": ("--python", "2.7"),
    "import sys\nprint >>sys.stderr, 'a', 1": ("--python", "2.7"),
    "# -*- coding: latin-1 -*-\nprint 'a'": ("--python", "2.7"),
    "import cPickle as pickle": ("--python", "2.7"),
    "from urllib2 import urlopen": ("--python", "2.7"),
    "from itertools import izip": ("--python", "2.7"),
    "pool.map(f, async=True)": ("--python", "3.6"),
    "a.async": ("--python", "3.6"),
    "from scipy.misc import imread, comb": ("--as-of", "2019-04"),
    "from sklearn.cross_validation import train_test_split": ("--as-of", "2018-08"),
    "import sklearn.grid_search": ("--as-of", "2018-08"),
    "from collections import OrderedDict, Mapping": ("--python", "3.9"),
    "from fractions import gcd": ("--python", "3.8"),
}
NEW = (
    "print('a')",
    "print('a') % 1",
    "from __future__ import print_function\nprint('a', file=f)",
    "try:\n    import cPickle as pickle\nexcept ImportError:\n    import pickle",
    "import sys\nif sys.version_info[0] == 2:\n    import urllib2",
    "def f():\n    from scipy.misc import imread",
    "from scipy.misc import derivative",
    "import urllib.request",
    "from . import cPickle",
    "from collections import OrderedDict\nfrom collections.abc import Mapping",
    "async def f(): pass",
    "a = {'b' 1}",  # a mistake in every Python
    "%matplotlib inline",
    "a = '\\d'",
    "a\0b",
    "",
)


@pytest.fixture
def script(tmp_path):
    """Writes files beside the script `train.py`; returns what is certain of it."""

    def write(text, **modules):
        (tmp_path / "train.py").write_text(text)
        for name, content in modules.items():
            path = tmp_path.joinpath(*f"{name}.py".split("__"))
            path.parent.mkdir(exist_ok=True)
            path.write_text(content)
        return ScriptText(tmp_path, tmp_path / "train.py", [tmp_path]).certain_failure

    return write


def test_text_of_an_older_python_is_found_with_its_line(script):
    found = {text: script(text) for text in OLD}
    assert {text: each and each.removal.options() for text, each in found.items()} == OLD
    lines = {text: each.place for text, each in found.items()}
    assert lines["import sys\nprint >>sys.stderr, 'a', 1"] == "train.py, line 2: print >>sys.stderr, 'a', 1"
    assert found["print 'a'"].why == "the script is Python 2"
    assert found["a.async"].why == "Python 3.7 made async a keyword"
    assert found["import sklearn.grid_search"].why == "scikit-learn 0.20 removed sklearn.grid_search"


def test_nothing_is_certain_of_text_that_may_run(script):
    assert {text: script(text) for text in NEW} == dict.fromkeys(NEW)


def test_the_script_s_own_modules_are_read_and_hide_others(script):
    assert script("import net", net="print 'a'").place == "net.py, line 1: print 'a'"
    assert script("from nets import conv", nets__conv="import cPickle").place.startswith("nets/conv.py, line 1")
    assert script("import Queue", Queue="") is None
    assert script("import a", a="import b", b="import train, cPickle").place == "b.py, line 1: import train, cPickle"
    assert script("import pkg.one", pkg__one="from .two import x", pkg__two="x = 0777").place.startswith("pkg/two.py")
    assert script("try:\n    import old\nexcept SyntaxError:\n    pass", old="print 'a'") is None


def test_nothing_of_a_script_is_executed(script, tmp_path):
    mark = tmp_path / "mark"
    assert script(f"open({str(mark)!r}, 'w')\nimport other", other=f"open({str(mark)!r}, 'w')") is None
    assert not mark.exists()
    assert "other" not in sys.modules


@pytest.mark.parametrize(
    ("files", "words", "replicas_and_alone"),
    [
        ({"train.py": "mod.fit(kvstore='local')"}, ["train.py"], (2, True)),
        ({"train.py": "mod.fit(kvstore='local')"}, ["train.py"], (1, False)),
        ({"train.py": "mx.kv.create('dist_sync')"}, ["train.py"], (2, False)),
        ({"train.py": "mx.kv.create(args.kv)"}, ["train.py", "--kv", "dist_async"], (2, False)),
        ({"train.py": "", "conf/a.yaml": "kv: dist_sync"}, ["train.py"], (2, False)),
        ({"train.py": "", "README.md": "dist_sync", ".git/a.py": "dist"}, ["train.py"], (2, True)),
        ({"train.py": "import horovod.mxnet as hvd"}, ["train.py"], (2, False)),
        ({"train.py": ""}, ["python", "-m", "sockeye.train"], (2, False)),
        ({"train.py": "", "large.json": "x" * (2**20 + 1)}, ["train.py"], (2, False)),
    ],
)
def test_workers_that_train_alone_for_certain_are_said_to(tmp_path, monkeypatch, files, words, replicas_and_alone):
    replicas, alone = replicas_and_alone
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    worker = {"replicas": replicas, "template": {"spec": {"containers": [{"name": "mxnet"}]}}}
    job = {"spec": {"mxReplicaSpecs": {"Scheduler": {}, "Worker": worker}}}
    said = trains_alone(Script.of(words), job)
    assert bool(said) == alone, said
    without = {"spec": {"mxReplicaSpecs": {"Worker": worker}}}  # --servers 0 asks for it
    assert trains_alone(Script.of(words), without) == ""
    worker["template"]["spec"]["containers"][0]["env"] = [{"name": "KV", "value": "dist_sync"}]
    assert trains_alone(Script.of(words), job) == ""
