"""What a failed run of an old script is answered with: the environment, package or option that it needs."""

import re
import subprocess
import sys
from datetime import date

import pytest

from mxnet_operator.cli.errors import CommandError
from mxnet_operator.cli.running import failure_hints, proposed_day, rerun
from mxnet_operator.cli.running.failure_hints import build_hint, failure_hint, refuse_what_must_fail
from mxnet_operator.cli.running.removals import REMOVALS, removal_in
from mxnet_operator.cli.running.script import Script
from mxnet_operator.local.projects import PROJECTS

COMMAND = ["mxjob", "run", "train.py", "--workers", "2", "--", "--lr", "0.1"]
ASKED = "mxjob run train.py --workers 2 {} -- --lr 0.1"

# What Python 3.11, MXNet 1.9.1 and the packages of 2026 print, in the image; what removed it, and the options to add.
REMOVED = """\
AttributeError: 'DataFrame' object has no attribute 'as_matrix' => pandas 1.0 removed => --as-of 2019-12
AttributeError: 'Series' object has no attribute 'ix' => pandas 1.0 removed => --as-of 2019-12
AttributeError: module 'pandas' has no attribute 'Panel' => pandas 1.0 removed => --as-of 2019-12
AttributeError: type object 'DataFrame' has no attribute 'from_items'\
  => pandas 1.0 removed DataFrame.from_items => --as-of 2019-12
AttributeError: 'DataFrame' object has no attribute 'append' => pandas 2.0 removed => --as-of 2023-03
TypeError: read_csv() got an unexpected keyword argument 'error_bad_lines'\
  => pandas 2.0 removed an argument => --as-of 2023-03
ImportError: cannot import name 'imread' from 'scipy.misc' (/i/scipy/misc/__init__.py)\
  => SciPy 1.3 removed scipy.misc.imread => --as-of 2019-04 --pip pillow
AttributeError: scipy.misc is deprecated and has no attribute imresize.\
  => SciPy 1.3 removed scipy.misc.imresize => --as-of 2019-04 --pip pillow
ImportError: cannot import name '_status_message' from 'scipy.optimize.optimize' (/i/o.py)\
  => SciPy 1.8 made modules private => --as-of 2022-01
TypeError: object of type <class 'float'> cannot be safely interpreted as an integer.\
  => NumPy 1.18 takes no float => --as-of 2019-11
ModuleNotFoundError: No module named 'sklearn.cross_validation'\
  => scikit-learn 0.20 removed sklearn.cross_validation => --as-of 2018-08
ImportError: cannot import name 'joblib' from 'sklearn.externals' (/i/s.py)\
  => scikit-learn 0.23 removed sklearn.externals.joblib => --as-of 2020-04
ImportError: `load_boston` has been removed from scikit-learn since version 1.2.\
  => scikit-learn 1.2 removed => --as-of 2022-11
ImportError: cannot import name 'autograd' from 'mxnet.gluon' (/i/__init__.py)\
  => MXNet 0.12 removed mxnet.gluon.autograd => --as-of 2017-09
ValueError: Object arrays cannot be loaded when allow_pickle=False => NumPy 1.16.3 => --as-of 2019-03
AttributeError: module 'numpy' has no attribute 'asscalar' => NumPy 1.23 removed => --as-of 2022-05
TypeError: numpy boolean subtract, the `-` operator, is not supported, use => NumPy 1.13 => --as-of 2017-05
AttributeError: Rectangle.set() got an unexpected keyword argument 'normed' => Matplotlib 3.1 => --as-of 2019-04
OSError: 'seaborn' is not a valid package style, path of => Matplotlib 3.8 => --as-of 2023-08
TypeError: Word2Vec.__init__() got an unexpected keyword argument 'size' => gensim 4.0 => --as-of 2021-02
AttributeError: The vocab attribute was removed from KeyedVector => gensim 4.0 => --as-of 2021-02
AttributeError: 'Graph' object has no attribute 'node' => NetworkX 2.4 removed => --as-of 2019-09
AttributeError: module 'networkx' has no attribute 'info' => NetworkX 3.0 removed => --as-of 2022-12
AttributeError: module 'PIL.Image' has no attribute 'ANTIALIAS' => Pillow 10.0 removed => --as-of 2023-06
ImportError: cannot import name 'PILLOW_VERSION' from 'PIL' (/i/P.py) => Pillow 7.0 => --as-of 2019-12
AttributeError: 'Dataset' object has no attribute 'value' => h5py 3.0 removed => --as-of 2020-09
TypeError: load() missing 1 required positional argument: 'Loader' => PyYAML 6.0 => --as-of 2021-09
ImportError: cannot import name 'compare_ssim' from 'skimage.measure' (/i/m.py)\
  => scikit-image 0.18 removed => --as-of 2020-11
AttributeError: module 'librosa' has no attribute 'output' => librosa 0.8 removed => --as-of 2020-06
SyntaxError: Missing parentheses in call to 'print'. Did you mean print(...)? => Python 3 => --python 2.7
TypeError: expected a sequence of integers or a single integer, got '<zip object at 0x7f54>'\
  => Python 3 changed => --python 2.7
ModuleNotFoundError: No module named 'cPickle' => Python 3 removed cPickle => --python 2.7
"""
# What this Python says of itself.
RUN = {
    "xrange(3)": ("Python 3 removed xrange", "--python 2.7"),
    "{}.has_key(1)": ("Python 3 removed dict.has_key", "--python 2.7"),
    "import string; string.letters": ("Python 3 removed string.letters", "--python 2.7"),
    "from itertools import izip": ("Python 3 removed itertools.izip", "--python 2.7"),
    "import urllib; urllib.urlretrieve": ("Python 3 removed urllib.urlretrieve", "--python 2.7"),
    "'a'.decode('utf8')": ("Python 3 removed str.decode", "--python 2.7"),
    "map(int, [1])[0]": ("Python 3 changed", "--python 2.7"),
    "{}.keys()[0]": ("Python 3 changed", "--python 2.7"),
    "range(3) + [1]": ("Python 3 changed", "--python 2.7"),
    "import sys; print >>sys.stderr, 'a'": ("Python 3 changed", "--python 2.7"),
    "sorted([], cmp=1)": ("Python 3 changed", "--python 2.7"),
    "(each for each in []).next()": ("Python 3 changed", "--python 2.7"),
    "iter([1]).next()": ("Python 3 changed", "--python 2.7"),
    "open('/dev/null').next()": ("Python 3 changed", "--python 2.7"),
    "import csv; csv.reader([]).next()": ("Python 3 changed", "--python 2.7"),
    "import csv; next(csv.reader([b'a']))": ("Python 3 changed", "--python 2.7"),
    "zip([1]).sort()": ("Python 3 changed", "--python 2.7"),
    "range(3).append(1)": ("Python 3 changed", "--python 2.7"),
    "map(int, []) + map(int, [])": ("Python 3 changed", "--python 2.7"),
    "[1] + range(3)": ("Python 3 changed", "--python 2.7"),
    "float(map(int, []))": ("Python 3 changed", "--python 2.7"),
    "file('a')": ("Python 3 removed file", "--python 2.7"),
    "import string; string.split('a b')": ("Python 3 removed string.split", "--python 2.7"),
    "import types; types.StringType": ("Python 3 removed types.StringType", "--python 2.7"),
    "from sets import Set": ("Python 3 removed sets", "--python 2.7"),
    "import time; time.clock()": ("Python 3.8 removed time.clock", "--python 3.7"),
    "from fractions import gcd": ("Python 3.9 removed fractions.gcd", "--python 3.8"),
    "import array; array.array('b').tostring()": ("Python 3.9 removed array.array.tostring", "--python 3.8"),
    "import threading; threading.Thread().isAlive()": ("Python 3.9 removed Thread.isAlive", "--python 3.8"),
    "from collections import Mapping": ("Python 3.10 removed collections.Mapping", "--python 3.9"),
    "import collections; collections.Iterable": ("Python 3.10 removed collections.Iterable", "--python 3.9"),
    "import inspect; inspect.getargspec(len)": ("Python 3.11 removed inspect.getargspec", "--python 3.10"),
    "open('/dev/null', 'rU')": ("Python 3.11 removed an argument", "--python 3.10"),
}
# What Python 3 says of old code, and of new code too: only the day tells them apart.
OF_ITS_DAY = (
    "import io; io.BytesIO().write('a')",
    "open('/dev/null', 'w').write(b'a')",
    "import struct; struct.pack('4s', 'abcd')",
    "import hashlib; hashlib.md5('a')",
    "import pickle; pickle.loads(b'\\x80\\x02U\\x01\\xffq\\x00.')",
    "sorted([None, 1])",
    "[0] * (4 / 2)",
)
WITHOUT_A_HINT = (
    "TypeError: a bytes-like object is required, not 'NoneType'",
    "AttributeError: 'DataLoader' object has no attribute 'next'",
    "TypeError: float() argument must be a string or a real number, not 'list'",
    "AttributeError: 'HTMLParser' object has no attribute 'foo'",
    "AttributeError: 'Queue' object has no attribute 'foo'",
    "NameError: name 'trainer' is not defined",
    "AttributeError: 'DataFrame' object has no attribute 'foo'",
    "AttributeError: module 'numpy' has no attribute 'foo'",
    "ValueError: too many values to unpack (expected 2)",
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a script, which is the current one; `COMMAND` runs the script."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").touch()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", COMMAND)
    fits_day(monkeypatch, lambda *_: None)
    return folder


def fits_day(monkeypatch, day):
    """`day` takes the place of what looks at the history of a folder."""
    for module in (failure_hints, rerun):
        monkeypatch.setattr(module, "runnable_day", day)


def job(**container):
    worker = {"replicas": 2, "template": {"spec": {"containers": [{"name": "mxnet", "image": "a", **container}]}}}
    return {"spec": {"mxReplicaSpecs": {"Worker": worker}}}


def hint(message, *, words=("train.py",), manifest=None):
    return failure_hint(message, manifest or job(), Script.of(words))


def test_what_a_release_removed_is_answered_with_the_environment_that_has_it(folder):
    for row in REMOVED.splitlines():
        message, release, options = (each.strip() for each in row.split(" => "))
        said, _, command = hint(f"Traceback (most recent call last):\n{message}").partition(": mxjob")
        assert said.startswith(release), (message, said)
        assert f"mxjob{command}" == ASKED.format(options), message


def test_what_this_python_says_of_old_code_is_answered_with_an_older_one(folder):
    for code, (release, options) in RUN.items():
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        said = hint(ended.stderr)
        assert said.startswith(release), (code, said, ended.stderr)
        assert said.endswith(ASKED.format(options)), (code, said)


def test_what_is_said_of_new_code_too_is_answered_with_python_2_on_old_days_only(folder, monkeypatch):
    for code in OF_ITS_DAY:
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        for day, python in {"2017-05-03": "--python 2.7 ", "2021-05-03": ""}.items():
            fits_day(monkeypatch, lambda *_, day=day: date.fromisoformat(day))
            assert hint(ended.stderr).endswith(ASKED.format(f"{python}--as-of {day}")), (code, day, ended.stderr)
    (folder / "train.py").write_text("f'{a}'")
    fits_day(monkeypatch, lambda *_: date(2017, 5, 3))
    assert hint(ended.stderr).endswith(ASKED.format("--as-of 2017-05-03"))


def test_no_environment_is_proposed_for_a_mistake_of_the_script(folder):
    assert {message: removal_in(message) for message in WITHOUT_A_HINT} == dict.fromkeys(WITHOUT_A_HINT)


def test_every_row_has_its_source_and_a_month_before_the_release():
    for each in REMOVALS:
        assert re.fullmatch(r"[\w.-]+\.(?:org|io|com)/\S+", each.without.split(", ")[2]), each
        assert each.names or each.what, each
        assert bool(each.message) <= bool(each.what), each


@pytest.mark.parametrize(
    ("message", "day", "options"),
    [
        ("AttributeError: 'DataFrame' object has no attribute 'ix'", "2017-05-03", "--as-of 2017-05-03"),
        ("AttributeError: 'DataFrame' object has no attribute 'ix'", "2021-05-03", "--as-of 2019-12"),
        ("ImportError: cannot import name 'imread' from 'scipy.misc'", "2017-05-03", "--as-of 2017-05-03 --pip pillow"),
        ("AttributeError: module 'time' has no attribute 'clock'", "2017-05-03", "--as-of 2017-05-03"),
        ("AttributeError: module 'time' has no attribute 'clock'", "2020-05-03", "--python 3.7"),
        ("NameError: name 'xrange' is not defined", "2017-05-03", "--python 2.7 --as-of 2017-05-03"),
    ],
)
def test_the_last_commit_s_day_is_proposed_where_the_name_was_there_then(folder, monkeypatch, message, day, options):
    fits_day(monkeypatch, lambda *_: date.fromisoformat(day))
    assert hint(message).endswith(f": {ASKED.format(options)}")


def test_an_option_that_was_given_is_replaced(folder, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["mxjob", "run", "train.py", "--as-of=2020", "--pip", "a", "--as-of", "2021", "b"])
    said = hint("AttributeError: 'DataFrame' object has no attribute 'ix'")
    assert said.endswith(": mxjob run train.py --pip a b --as-of 2019-12")


def test_a_missing_module_is_answered_with_its_project_and_those_that_would_be_missing_next(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder.parent))
    (folder / "train.py").write_text(
        "import os, cv2, yaml.nodes, unknown, data\nfrom PIL import Image\nimport sklearn\n"
        "try:\n    import h5py\nexcept ImportError:\n    h5py = None\nclass A:\n  def f():\n    import nltk\n"
    )
    (folder / "data.py").write_text("import pandas as pd, matplotlib.pyplot, six\n")
    (folder / "requirements.txt").write_text("pyyaml>=3 # config\n")
    monkeypatch.setattr(sys, "argv", [*COMMAND[:3], "--pip", "matplotlib==3.5", "--pip=six"])
    said = hint("ModuleNotFoundError: No module named 'cv2'")
    packages = "--pip opencv-python-headless --pip Pillow --pip nltk --pip pandas"
    assert said == f"cv2 isn't in the image: mxjob run train.py --pip matplotlib==3.5 --pip=six {packages}"


def test_modules_in_a_folder_that_the_script_adds_to_its_path_are_read_too(folder):
    (folder / "train.py").write_text(
        "import sys, os, cv2\nsys.path.append(os.path.join(os.path.dirname(__file__), 'common'))\nimport faces\n"
    )
    (folder / "common").mkdir()
    (folder / "common" / "faces.py").write_text("import skimage, attr\n")
    (folder / "common" / "attr.py").touch()
    said = hint("ModuleNotFoundError: No module named 'cv2'")
    assert said.endswith(ASKED.format("--pip opencv-python-headless --pip scikit-image"))


def test_a_project_that_is_not_known_is_not_proposed(folder):
    said = hint("ModuleNotFoundError: No module named 'unknown.part'")
    assert said == ("unknown.part isn't in the image, and the package that has it may have another name: --pip PACKAGE")
    url = "git+https://example.com/own@v1#egg=unknown"
    (folder / "requirements.txt").write_text(f"six\n{url}\n")
    said = hint("ModuleNotFoundError: No module named 'unknown.part'")
    assert said == f"unknown.part is on no index: copy its source beside the script, from {url}"
    assert hint("ImportError: No module named yaml").endswith(ASKED.format("--pip PyYAML"))  # Python 2's words
    assert not set(PROJECTS) & set(sys.stdlib_module_names)


def test_a_module_of_the_user_s_is_named_and_no_package_proposed(folder, monkeypatch):
    (folder / "lib").mkdir()
    (folder / "lib" / "one.py").touch()
    (folder / "scripts").mkdir()
    (folder / "scripts" / "main.py").touch()
    (folder / "yaml.py").touch()
    missing = "ModuleNotFoundError: No module named '{}'"
    assert hint(missing.format("yaml")).startswith(f"{folder}/yaml.py isn't in the image: .dockerignore or .gitignore")
    assert hint(missing.format("lib.two")) == f"{folder}/lib has no two: is it another lib than the script's?"
    monkeypatch.setattr(sys, "argv", ["mxjob", "run", "scripts/main.py"])
    beside = hint(missing.format("lib"), words=["scripts/main.py"])
    assert beside == (
        f"{folder}/lib isn't beside the script, where Python looks: mxjob run scripts/main.py --env PYTHONPATH=."
    )
    below = hint(missing.format("one"), words=["scripts/main.py"])
    assert below.endswith(": mxjob run scripts/main.py --env PYTHONPATH=lib")
    (folder / "scripts" / "main.py").write_text("import lib.one\n")
    (folder / "lib" / "one.py").write_text("import cv2\n")
    beside = hint(missing.format("lib"), words=["scripts/main.py"])
    assert beside.endswith(": mxjob run scripts/main.py --env PYTHONPATH=. --pip opencv-python-headless")
    (folder.parent / "other").mkdir()
    monkeypatch.chdir(folder.parent / "other")
    outside = hint(missing.format("lib.one"), words=[str(folder / "scripts" / "main.py")])
    assert outside == (
        f"{folder}/lib/one.py isn't in the image, which has the files of {folder}/scripts:"
        " mxjob run scripts/main.py --mount ../project:/modules:ro --env PYTHONPATH=/modules"
        " --pip opencv-python-headless"
    )


GPU = (
    "MXNetError: Operator _zeros is not implemented for GPU.",
    "MXNetError: Compile with USE_CUDA=1 and ENABLE_CUDA_RTC=1 to have CUDA",
    "MXNetError: This call is only supported for MXNet built with CUDA support.",
    "mxnet.base.MXNetError: src/storage/storage.cc:63: Please compile with USE_CUDA=1 to enable GPU",
)


def test_what_needs_no_other_environment_is_answered_too(folder, monkeypatch):
    (folder / "train.py").write_text("context = mx.gpu(0)\n")
    for has_driver, options in ((False, "--env MXJOB_GPU=cpu"), (True, "--gpus-per-worker 1")):
        for module in (failure_hints, rerun):
            monkeypatch.setattr(module, "has_nvidia_driver", lambda has_driver=has_driver: has_driver)
        for message in GPU:
            assert hint(message).endswith(ASKED.format(options)), message
    with_gpu = job(resources={"limits": {"nvidia.com/gpu": 1}})
    assert "mxjob/mxnet:1.9.1-cu112" in hint(GPU[0], manifest=with_gpu)
    (folder / "train.py").write_text("kv = mx.kv.create('dist_sync')\n")
    alone = "MXNetError: Check failed: node.hostname.size():"
    assert hint(alone).endswith(f"--workers 2, or a server for one worker: {ASKED.format('--servers 1')}")
    gang = {"spec": {"mxReplicaSpecs": {**job()["spec"]["mxReplicaSpecs"], "Scheduler": job()}}}
    assert hint(alone, manifest=gang) == ""
    notebook = hint("NameError: name 'get_ipython' is not defined")
    packages = "--pip ipython --pip ipykernel --pip matplotlib"
    assert notebook.endswith(f": mxjob run --workers 2 {packages} -- python -m IPython train.py -- --lr 0.1")
    downloaded = hint(
        "requests.exceptions.ConnectionError: HTTPConnectionPool(host='data.mxnet.io', port=80): Max retries exceeded"
        " with url: /data/mnist/train-labels-idx1-ubyte.gz (Caused by NameResolutionError(...))"
    )
    assert downloaded.startswith("the download of data.mxnet.io/data/mnist/train-labels-idx1-ubyte.gz failed: ")
    assert downloaded.endswith(ASKED.format("--mount ./data:data"))
    weights = "HTTPSConnectionPool(host='apache-mxnet.s3.amazonaws.com', port=443): Max retries exceeded with url: {}"
    weights = hint(weights.format("/gluon/models/resnet50_v1-2a903ab2.zip"))
    assert weights.endswith(ASKED.format("--mount '~/.mxnet:~/.mxnet'"))
    assert hint("urllib.error.URLError: <urlopen error [Errno -2] Name or service not known>").startswith(
        "the download failed: "
    )
    monkeypatch.setattr(sys, "argv", [*COMMAND[:3], "--mount", "./data:data"])
    assert hint("urllib.error.URLError: <urlopen error [Errno -2] Name or service not known>").endswith(
        "where the script looks: --mount FOLDER:PATH"
    )
    monkeypatch.setattr(sys, "argv", COMMAND)
    onnx = hint("ImportError: Onnx and protobuf need to be installed. Instructions to install")
    assert onnx.endswith(ASKED.format("--pip 'onnx<1.15'"))


def test_an_image_of_the_user_s_own_is_not_answered_with_another_environment(folder):
    assert failure_hint("NameError: name 'xrange' is not defined", job(), None) == ""
    assert failure_hint("ModuleNotFoundError: No module named 'cv2'", job(), None) == ""
    assert failure_hint("NameError: name 'get_ipython' is not defined", job(), None) == ""


OLD = date(2018, 4, 10)


def test_one_hint_for_an_old_folder_has_the_day_and_all_packages(folder, monkeypatch):
    fits_day(monkeypatch, lambda *_: OLD)
    (folder / "train.py").write_text("import pandas, numpy\nimport util\n")
    (folder / "util.py").write_text("import cv2\n")
    packages = "--as-of 2018-04-10 --pip pandas --pip opencv-python"
    assert hint("ModuleNotFoundError: No module named 'pandas'").endswith(ASKED.format(packages))
    (folder / "train.py").write_text("import pandas as pd, os.path\nfrom util import f\nprint 'old'\n")
    of_python_2 = hint("SyntaxError: Missing parentheses in call to 'print'. Did you mean print(...)?")
    assert "--python 2.7 --as-of 2018-04-10" in of_python_2
    assert "--pip pandas" in of_python_2
    unknown = hint("ValueError: kth(=-10) out of bounds (10)")
    assert unknown.startswith("the last commit of this folder is old; with MXNet and the packages of 2018-04-10: ")
    assert "--as-of 2018-04-10" in unknown
    assert "--pip pandas" in unknown
    assert hint("usage: train.py [-h]\ntrain.py: error: unrecognized arguments: --lr") == ""
    (folder / "requirements.txt").write_text("mxnet-mkl == 1.3.0b1\n")
    assert "--as-of" not in hint("ModuleNotFoundError: No module named 'pandas'")
    (folder / "requirements.txt").unlink()
    monkeypatch.setattr(sys, "argv", [*COMMAND[:3], "--mxnet", "1.1.0"])
    assert hint("ValueError: kth(=-10) out of bounds (10)") == ""


def test_folders_beside_the_script_s_own_are_named_with_their_mounts(folder, monkeypatch):
    (folder / "train.py").write_text("DATA = '../data/a.txt'\nimport util\nopen(DATA)\n")
    (folder / "util.py").write_text("OUT, NONE = \"../models\", '../none/a'\n")
    for name in ("data", "models"):
        (folder.parent / name).mkdir()
    missing = "FileNotFoundError: [Errno 2] No such file or directory: '../data/a.txt'"
    assert hint(missing).endswith(ASKED.format("--mount ../data:../data --mount ../models:../models"))
    monkeypatch.setattr(sys, "argv", [*COMMAND[:3], "--mount", "../data:../data"])
    assert hint(missing).endswith(": mxjob run train.py --mount ../data:../data --mount ../models:../models")
    (folder / "util.py").unlink()
    assert hint(missing) == ""


def test_a_link_to_a_folder_elsewhere_is_mounted(folder):
    for name in ("data", "common"):
        (folder.parent / "all" / name).mkdir(parents=True)
        (folder / name).symlink_to(f"../all/{name}")
    (folder / "here").symlink_to(folder)
    (folder / "train.py").write_text("import common.net\nopen('data/a.txt')\n")
    mounts = ASKED.format("--mount ../all/common:common --mount ../all/data:data")
    assert hint("FileNotFoundError: [Errno 2] No such file or directory: 'data/a.txt'").endswith(mounts)
    missing = hint("ModuleNotFoundError: No module named 'common'")
    assert missing == f"{folder}/common is a link out of the folder, which the image doesn't have: {mounts}"


def test_what_a_name_of_the_text_needs_is_proposed_with_the_package_that_lacks(folder):
    (folder / "train.py").write_text("import h5py\nfrom scipy import misc\nmisc.imread('a.png')\n")
    missing = "ModuleNotFoundError: No module named 'h5py'"
    assert hint(missing).endswith(ASKED.format("--pip h5py --pip pillow"))
    (folder / "train.py").write_text("import h5py, cv2\ncv2.imread('a.png')\n")
    assert "pillow" not in hint(missing)


def test_the_module_of_python_m_is_read_as_a_script_is(folder, monkeypatch):
    (folder / "tool").mkdir()
    (folder / "tool" / "train.py").write_text("from . import data\nimport tool.arguments\nopen('../data')\n")
    (folder / "tool" / "data.py").write_text("import pandas\n")
    (folder / "tool" / "arguments.py").write_text("import yaml\n")
    (folder / "data").mkdir()  # not beside the current folder, where the module runs
    monkeypatch.setattr(sys, "argv", ["mxjob", "run", "--", "python", "-m", "tool.train"])
    said = hint("ModuleNotFoundError: No module named 'pandas'", words=["python", "-m", "tool.train"])
    assert said.endswith(": mxjob run --pip pandas --pip PyYAML -- python -m tool.train")
    (folder / "tool" / "train.py").write_text("import tool.data\n")
    (folder / "tool" / "data.py").write_text("print 'old'\n")
    with pytest.raises(CommandError, match=r"the script is Python 2: mxjob run --python 2\.7 -- python -m tool\.train"):
        refuse_what_must_fail(Script.of(["python", "-m", "tool.train"]), needs_driver=False)


def test_another_file_of_requirements_names_the_package_and_its_version(folder):
    (folder / "requirements").mkdir()
    (folder / "requirements" / "all.txt").write_text("-r base.txt\nsacrebleu==1.4.14 # old\nown_name>=2\n\n")
    (folder / "train.py").write_text("import sacrebleu, own_name\n")
    assert hint("ModuleNotFoundError: No module named 'own_name'").endswith(
        ASKED.format("--pip 'own_name>=2' --pip sacrebleu==1.4.14")
    )
    assert hint("ModuleNotFoundError: No module named 'sacrebleu'").endswith(ASKED.format("--pip sacrebleu==1.4.14"))


def test_a_missing_package_of_a_script_that_calls_xrange_is_answered_with_python_2_as_well(folder):
    missing = "ModuleNotFoundError: No module named 'yaml'"
    old = "import yaml\nfor i in xrange(3):\n    pass\n"
    (folder / "train.py").write_text(old)
    assert hint(missing).endswith(ASKED.format("--python 2.7 --pip PyYAML"))
    assert hint("ImportError: cannot import name 'imread' from 'scipy.misc'").endswith(
        ASKED.format("--python 2.7 --pip pillow --pip PyYAML")
    )
    for both in ("xrange = range\n", "from six.moves import xrange\n", "from past.builtins import *\n"):
        (folder / "train.py").write_text(both + old)
        assert "2.7" not in hint(missing), both


def test_what_the_script_would_miss_next_is_in_every_command(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder.parent))
    monkeypatch.setattr(rerun, "has_nvidia_driver", lambda: False)
    monkeypatch.setattr(rerun.shutil, "which", lambda _: None)
    monkeypatch.setattr(rerun.os, "geteuid", lambda: 0)
    (folder.parent / ".art").mkdir()
    (folder / "train.py").write_text("import art\nfrom tensorboard import FileWriter, summary\ncontext = mx.gpu(0)\n")
    (folder / "README.md").write_text("Run `pip install --upgrade tensorboard, own-name==1.2` first.\n")
    packages = "--pip adversarial-robustness-toolbox --pip Pillow"
    rest = "--mount '~/.art:~/.art' --env MXJOB_GPU=cpu"
    for name, pips in {
        "art": f"{packages} --pip tensorboard==1.0.0a6",
        "tensorboard": f"--pip tensorboard==1.0.0a6 {packages}",
        "own_name": f"--pip own-name==1.2 {packages} --pip tensorboard==1.0.0a6",
    }.items():
        said = hint(f"ModuleNotFoundError: No module named '{name}'")
        assert sorted(said.partition(": ")[2].split()) == sorted(ASKED.format(f"{pips} {rest}").split()), name
    names = "import os.path as path\nfrom tensorboard import summary as s, FileWriter\nfrom pygame import (\n    draw)"
    (folder / "train.py").write_text(f"{names}\nfrom . import own\nprint 'old'\n")
    with pytest.raises(CommandError, match=r": mxjob .*--pip pygame --pip tensorboard==1\.0\.0a6 -- --lr 0\.1$"):
        refuse_what_must_fail(Script.of(["train.py"]), needs_driver=False)
    (folder / "train.py").write_text("context = mx.Context('gpu', 0)\n")
    assert hint("ModuleNotFoundError: No module named 'yaml'").endswith("--pip PyYAML --env MXJOB_GPU=cpu -- --lr 0.1")
    (folder / "train.py").write_text("mx.viz.plot_network(net).render('net')\n# gpu(0)\n")
    drawn = hint("ModuleNotFoundError: No module named 'yaml'")
    assert drawn.endswith(": apt-get install --yes graphviz && " + ASKED.format("--pip PyYAML"))
    monkeypatch.setattr(rerun.os, "geteuid", lambda: 1000)
    dot = "ExecutableNotFound: failed to execute ['dot', '-Tpdf'], make sure the Graphviz executables are on your"
    (folder / "train.py").write_text("")
    assert hint(dot).endswith(": sudo apt-get install --yes graphviz && " + ASKED.replace(" {}", ""))
    sound, screen = "OSError: sndfile library not found", "ImportError: libGL.so.1: cannot open shared object file"
    for message, debian in {sound: "libsndfile1", screen: "libgl1"}.items():
        assert f": sudo apt-get install --yes {debian} && mxjob run" in hint(message)
    monkeypatch.setattr(rerun.shutil, "which", lambda _: "/usr/bin/dot")
    (folder / "train.py").write_text("mx.viz.plot_network(net).render('net')\n")
    assert "apt-get" not in hint("ModuleNotFoundError: No module named 'yaml'")


def test_a_module_in_a_folder_that_the_script_names_above_its_own_is_mounted(folder, monkeypatch):
    (folder.parent / "common").mkdir()
    (folder / "train.py").write_text("sys.path.append(os.path.join(here, '../common'))\nimport get_data\n")
    said = hint("ModuleNotFoundError: No module named 'get_data'")
    assert said.endswith(ASKED.format("--mount ../common:../common"))
    (folder / "nets").mkdir()
    (folder / "nets" / "vgg.py").write_text("import layers\n")
    (folder / "nets" / "layers.py").touch()
    (folder / "train.py").write_text("import nets.vgg\n")
    said = hint("ModuleNotFoundError: No module named 'layers'")
    assert said == "Python 3 doesn't find layers beside the module that imports it: " + ASKED.format("--python 2.7")


OPENED = (
    'save_params("models/a")\n[0] src/io/local_filesys.cc: Check failed: Open "./models/a": No such file',
    "in save_checkpoint\nOSError: [Errno 2] No such file or directory: 'models/a-0001.params'",
    'mx.callback.do_checkpoint(prefix)\nMXNetError: fail to open "models/a-symbol.json"',
)


def test_a_folder_that_the_script_saves_into_is_made_before(folder):
    asked = ASKED.replace(" {}", "")
    for message in OPENED:
        assert hint(message) == f"the script saves into models, which doesn't exist: mkdir -p models && {asked}", (
            message
        )
    assert hint("np.loadtxt(path)\nFileNotFoundError: No such file or directory: 'models/a'") == ""
    (folder / "models").mkdir()
    assert [hint(message) for message in OPENED] == [""] * len(OPENED)
    literal = "net.save_parameters('./out/net/epoch.params')\nmodule.save_checkpoint('models/a', 1)\n"
    (folder / "train.py").write_text(literal + "save(f'{folder}/a')\nopen('data/a')\nexport('/tmp/a/b')\n")
    missing = "ModuleNotFoundError: No module named 'yaml'"
    assert hint(missing).endswith(f": mkdir -p out/net && {ASKED.format('--pip PyYAML')}")
    (folder / "train.py").write_text(literal + "os.makedirs('out/net')\n")
    assert hint(missing).endswith(f"image: {ASKED.format('--pip PyYAML')}")


def test_an_example_in_a_package_s_own_repository_gets_the_package_of_the_last_commit(folder, monkeypatch):
    fits_day(monkeypatch, lambda _folder, _python, first: max(first or OLD, OLD))
    monkeypatch.setattr(proposed_day, "_last_commit", lambda each: date(2021, 4, 7) if each == folder.parent else OLD)
    (folder / "train.py").write_text("import dgl\n")
    (folder.parent / ".git").mkdir()
    missing = "ModuleNotFoundError: No module named 'dgl'"
    assert hint(missing).endswith(ASKED.format("--as-of 2018-04-10 --pip dgl"))
    (folder.parent / "python" / "dgl").mkdir(parents=True)
    (folder.parent / "python" / "dgl" / "__init__.py").touch()
    assert hint(missing).endswith(ASKED.format("--as-of 2021-04-07 --pip dgl"))
    (folder / "train.py").write_text("import yaml\n")
    assert "--as-of 2018-04-10" in hint("ModuleNotFoundError: No module named 'yaml'")
    (folder.parent / "python" / "mxnet").mkdir()
    for version, day in {"1.3.0": "2018-09-12", "0.7.0": "2018-04-10"}.items():
        (folder.parent / "python" / "mxnet" / "libinfo.py").write_text(f'import os\n__version__ = "{version}"\n')
        assert f"--as-of {day} " in hint("ModuleNotFoundError: No module named 'yaml'"), version


def test_a_build_that_fails_is_answered_with_the_whole_command(folder, monkeypatch):
    ran = Script.of(["train.py"])
    (folder / "requirements.txt").write_text("mxnet==1.6.0\nopencv_python==4.1.2.30\n")
    (folder / "train.py").write_text("import cv2\n")
    text = "numpy==1.16.5 has no wheel for Python 3.8: --python 3.7; or"
    assert build_hint(text, ran) == "run " + ASKED.format("--python 3.7")
    assert build_hint("uploaded after 2019-01-01: --as-of 2019-03-02; or --python", ran) == "run " + ASKED.format(
        "--as-of 2019-03-02"
    )
    assert build_hint("The disk is full.", ran) == ""
    fits_day(monkeypatch, lambda *_: date(2021, 8, 17))
    conflict = "error: These packages can't be added to mxjob/mxnet:1.9.1 (numpy==1.16.4):"
    assert build_hint(conflict, ran) == ""  # the MXNet that is pinned has chosen the environment
    (folder / "requirements.txt").write_text("numpy==1.16.4\nopencv-python\n")
    assert build_hint(conflict, ran) == "with packages of their day: " + ASKED.format("--python 3.7 --as-of 2021-08-17")
    (folder / "requirements.txt").write_text("numpy==1.21.1\nopencv-python\n")
    assert build_hint(conflict, ran).endswith(ASKED.format("--as-of 2021-08-17"))
    assert build_hint("The disk is full.", ran) == ""


def test_a_module_of_the_parent_folder_is_mounted_and_the_command_kept(folder, monkeypatch):
    (folder / "transforms.py").write_text("def load():\n    from PIL import Image\n")
    (folder / "sub").mkdir()
    (folder / "sub" / "main.py").write_text(
        "import transforms\n"
        "try:\n    import librosa\nexcept ImportError:\n    raise ImportError('pip install librosa')\n"
    )
    monkeypatch.chdir(folder / "sub")
    monkeypatch.setattr(sys, "argv", ["mxjob", "run", "main.py", "--workers", "2", "--", "--epochs", "2"])
    text = (folder / "sub" / "main.py").read_text()
    (folder / "sub" / "main.py").write_text(f"sys.path.append(os.path.join(here, '..'))\n{text}")
    ahead = hint("ModuleNotFoundError: No module named 'librosa'", words=["main.py"])
    mounted = "--mount ..:/modules:ro --env PYTHONPATH=/modules --pip librosa --pip Pillow"
    assert ahead.endswith(f": mxjob run main.py --workers 2 {mounted} -- --epochs 2")
    (folder / "sub" / "main.py").write_text(text)
    said = hint("ModuleNotFoundError: No module named 'transforms'", words=["main.py"])
    again = "mxjob run main.py --workers 2 --mount ..:/modules:ro --env PYTHONPATH=/modules"
    again += " --pip Pillow --pip librosa -- --epochs 2"
    assert said.endswith(f": {again}")


def test_no_day_before_the_first_usable_mxnet_or_without_its_python_is_proposed(tmp_path, monkeypatch):
    def proposes(day, pythons):
        monkeypatch.setattr(proposed_day, "proposed_day", lambda _: day)
        have = lambda version: tmp_path if version in pythons else None  # noqa: E731
        monkeypatch.setattr("mxnet_operator.local.images.environment.installed_interpreter", have)
        return proposed_day.runnable_day(tmp_path)

    monkeypatch.setattr(sys, "argv", ["mxjob", "run", "train.py"])
    assert proposes(date(2016, 5, 1), {"3.6"}) == date(2017, 8, 31)
    monkeypatch.setattr(sys, "argv", COMMAND)
    assert proposes(date(2016, 5, 1), {"3.6"}) == date(2018, 2, 20)
    assert proposes(OLD, {"3.6"}) == OLD
    assert proposes(OLD, {"3.11"}) is None
    assert proposes(date(2021, 5, 1), set()) == date(2021, 5, 1)  # uv downloads Python 3.8
    assert proposes(None, {"3.6"}) is None
