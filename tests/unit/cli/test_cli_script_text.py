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
def text_of(tmp_path):
    """Writes files beside the script `train.py`; returns what they show."""

    def write(text, **modules):
        (tmp_path / "train.py").write_text(text)
        for name, content in modules.items():
            path = tmp_path.joinpath(*f"{name}.py".split("__"))
            path.parent.mkdir(exist_ok=True)
            path.write_text(content)
        return ScriptText(tmp_path, tmp_path / "train.py", [tmp_path])

    return write


@pytest.fixture
def script(text_of):
    """Writes files beside the script `train.py`; returns what is certain of it."""
    return lambda text, **modules: text_of(text, **modules).certain_failure


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


def test_modules_that_functions_import_are_read_and_not_certain(text_of):
    text = text_of("class A:\n    def f(self):\n        import old", old="import pandas\nprint 'a'")
    assert text.imports == {"pandas"}
    assert text.certain_failure is None


def test_nothing_of_a_script_is_executed(script, tmp_path):
    mark = tmp_path / "mark"
    assert script(f"open({str(mark)!r}, 'w')\nimport other", other=f"open({str(mark)!r}, 'w')") is None
    assert not mark.exists()
    assert "other" not in sys.modules


# Text that parses in Python 3, by whether it runs in Python 2 only.
DIVIDED = {
    "for i in range(n / 2): pass": True,
    "for i in range(1, len(a) / 2 + 1): pass": True,
    "from nets import *\nhalf = a[: n / 2]": True,
    "net = get_net(batch_size=args.batch_size / len(devices))": True,
    "conv = Convolution(num_filter=width / 4)": True,
    "xrange(3)": True,
    "total = reduce(add, sizes)": True,
    "for name, value in params.iteritems(): pass": True,
    "import pandas\nfor name, column in table.iteritems(): pass": False,
    "import six\nsix.iteritems(params)": False,
    "from functools import reduce\nreduce(add, sizes)": False,
    "def file(name): pass\nfile('a')": False,
    "labels = labels.long()": False,
    "from __future__ import division\nfor i in range(n / 2): pass": False,
    "for i in range(n // 2): pass": False,
    "for i in range(int(n / 2)): pass": False,
    "speed = batch_size / (time.time() - begin)": False,
    "print_speed(batch_size / elapsed)": False,
    "train(learning_rate=rate / 10)": False,
    "xrange = range\nxrange(3)": False,
}
ONLY_IN_3 = (
    "f'{a}'",
    "a: int = 1",
    "def f(a: int): pass",
    "def f(*, a): pass",
    "async def f(): pass",
    "class A:\n    def f(self):\n        super().f()",
    "def f():\n    def g():\n        nonlocal a",
)


def test_a_division_that_counts_is_python_2_and_newer_syntax_is_python_3(text_of):
    assert {text: text_of(text).is_python_2 for text in DIVIDED} == DIVIDED
    assert [text for text in DIVIDED if text_of(text).is_python_3] == []
    assert [text for text in ONLY_IN_3 if not text_of(text).is_python_3] == []
    assert text_of("import net", net="for i in range(n / 2): pass").is_python_2
    assert not text_of("f'{a}'\nfor i in range(n / 2): pass").is_python_2


def test_a_module_that_imports_the_one_beside_it_by_name_is_python_2(text_of):
    assert text_of("import nets.vgg", nets__vgg="from common import conv", nets__common="").is_python_2
    assert text_of("import nets.vgg", nets__vgg="def f():\n    import common", nets__common="").is_python_2
    for text, beside in {
        "from __future__ import absolute_import\nimport common": "common",  # another project's module
        "from .common import conv": "common",
        "import logging": "logging",
        "import pandas": "pandas",
        "from nets.common import conv": "common",
    }.items():
        assert not text_of("import nets.vgg", nets__vgg=text, **{f"nets__{beside}": ""}).is_python_2, text
    assert not text_of("import common\nimport nets.vgg", nets__vgg="import common", common="").is_python_2
    on_path = "import sys\nsys.path.append('nets')\nimport vgg"
    assert not text_of(on_path, nets__vgg="import common", nets__common="").is_python_2


def test_folders_above_and_in_the_home_are_found_but_not_mxnet_s_sources(text_of, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    sources = tmp_path.parent / "python" / "mxnet"
    for path in (
        sources,
        tmp_path.parent / "tests" / "common",
        *(tmp_path / "home" / n for n in (".mxnet", ".art", "d", "scikit_learn_data")),
    ):
        path.mkdir(parents=True, exist_ok=True)
    (sources / "base.py").touch()
    above = "sys.path.insert(0, '../python')\nsys.path.append('../tests/common')\n"
    assert list(text_of(above).beside) == ["../tests"]
    assert list(text_of("open('../../none/a')\nopen('~/none')").beside) == []
    assert list(text_of("import art.utils\nopen('~/d/a.txt')").beside) == ["~/.art", "~/d"]
    assert list(text_of("from mxnet import gluon\ngluon.data.vision.MNIST()").beside) == ["~/.mxnet"]
    assert list(text_of("import gluonts").beside) == ["~/.mxnet"]
    assert list(text_of("os.path.join('~', '.mxnet', 'datasets')").beside) == ["~/.mxnet"]
    assert list(text_of("from sklearn.datasets import fetch_mldata").beside) == ["~/scikit_learn_data"]
    assert list(text_of("import mxnet").beside) == []
    (tmp_path.parent / "data").mkdir(exist_ok=True)
    assert list(text_of("import d2lzh as d2l").beside) == ["../data"]


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
