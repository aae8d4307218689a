"""The table of removals, on the image's own Python, MXNet and packages: what they lack, and what they have."""

import json
import subprocess

import pytest

from mxnet_operator.cli.running.removals import removal_in, removal_of

LACKS = {
    "from scipy.misc import imread": "SciPy 1.3 removed scipy.misc.imread",
    "import scipy.misc; scipy.misc.imresize": "SciPy 1.3 removed scipy.misc.imresize",
    "from scipy.misc import logsumexp": "SciPy 1.3 removed scipy.misc.logsumexp",
    "from sklearn.cross_validation import train_test_split": "scikit-learn 0.20 removed sklearn.cross_validation",
    "from sklearn.grid_search import GridSearchCV": "scikit-learn 0.20 removed sklearn.grid_search",
    "from sklearn.mixture import GMM": "scikit-learn 0.20 removed sklearn.mixture.GMM",
    "from sklearn.preprocessing import Imputer": "scikit-learn 0.22 removed sklearn.preprocessing.Imputer",
    "from sklearn.datasets import fetch_mldata": "scikit-learn 0.22 removed sklearn.datasets.fetch_mldata",
    "from sklearn.externals import joblib": "scikit-learn 0.23 removed sklearn.externals.joblib",
    "from sklearn.datasets import load_boston": "scikit-learn 1.2 removed sklearn.datasets.load_boston",
    "import numpy; numpy.asscalar": "NumPy 1.23 removed numpy.asscalar",
    "import numpy; numpy.rank": "NumPy 1.18 removed numpy.rank",
    "import numpy; -numpy.array([True])": "NumPy 1.13 took the operator - from booleans",
    "import numpy; numpy.save('a.npy', numpy.array([{}])); numpy.load('a.npy')": (
        "NumPy 1.16.3 loads no pickled objects by itself"
    ),
    "from collections import Mapping": "Python 3.10 removed collections.Mapping",
    "import urllib2": "Python 3 removed urllib2",
}
HAS = (
    "numpy.int",
    "numpy.bool",
    "numpy.object",
    "mxnet.symbol.Cast",
    "mxnet.sym.Concat",
    "mxnet.sym.SliceChannel",
    "mxnet.sym.BatchNorm_v1",
    "mxnet.model.FeedForward",
    "mxnet.rnn.BucketSentenceIter",
    "mxnet.contrib.autograd.train_section",
    "mxnet.contrib.symbol.MultiBoxPrior",
    "mxnet.gluon.Block.save_params",
    "mxnet.gluon.Block.load_params",
    "mxnet.operator.NumpyOp",
    "mxnet.callback.LogValidationMetricsCallback",
    "mxnet.nd.onehot_encode",
    "mxnet.optimizer.ccSGD",
    "mxnet.metric.np",
)
RUN = """
import functools, json, sys, warnings
warnings.simplefilter("ignore")
lacks, has = json.loads(sys.argv[1])
said = {}
for code in lacks:
    try:
        exec(code, {})
    except Exception as error:
        said[code] = "%s: %s" % (type(error).__name__, error)
import mxnet, numpy
for name in has:
    first, *rest = name.split(".")
    functools.reduce(getattr, rest, {"mxnet": mxnet, "numpy": numpy}[first])
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def said(mxnet_python, tmp_path_factory):
    """What each line of `LACKS` fails with; the names of `HAS` are there."""
    command = [mxnet_python, "-c", RUN, json.dumps([list(LACKS), HAS])]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path_factory.mktemp("run"))
    return json.loads(ended.stdout)


def test_what_the_image_lacks_is_found_in_its_own_words(said):
    found = {code: removal_in(said[code]) for code in LACKS}
    assert {code: each and each[1] for code, each in found.items()} == LACKS


def test_what_fails_when_it_is_imported_is_known_before(said):
    imports = {code: code.split() for code in LACKS if code.startswith("from")}
    assert {code: removal_of(f"{words[1]}.{words[3]}")[1] for code, words in imports.items()} == {
        code: LACKS[code] for code in imports
    }
