"""What old scripts use and newer releases removed: the release, and the environment that still has it.

MXNet itself is hardly here: 1.9.1 has nearly every name that the public scripts of 2016 to 2022 use, `mx.rnn`,
`mx.model.FeedForward` and `mx.symbol.Cast` among them. Nor is `np.int`: the image has numpy 1.23, and 1.24 removed it.
"""

import re
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

_PYTHON_2: Final = "2.7"
_LAZY: Final = r"(?:range|map|zip|filter|dict_\w+)"
"""What Python 3 returns where Python 2 returned lists."""


@dataclass(frozen=True, slots=True)
class Removal:
    """Names that a release removed, or a change of its that failures show in other words.

    Args:
        without: the first release without them, its day, and the release note that says so, by commas.
        names: dotted names (`module.name`, `Class.attribute`, a module, a built-in), separated by blanks.
        message: regular expression of failures that name none of them; `what` says what the release did.
        python: newest Python that has them, if another Python is enough; else packages of the month before are.
        packages: packages that they need beside.
        until: day from which scripts fail so for another reason, as do those that Python 2 can't parse.
    """

    without: str
    names: str = ""
    message: str = ""
    what: str = ""
    python: str = ""
    packages: tuple[str, ...] = ()
    until: date | None = None

    @property
    def release(self) -> str:
        """The first release without them, as "pandas 1.0"."""
        return self.without.split(", ")[0]

    @property
    def released(self) -> date:
        return date.fromisoformat(self.without.split(", ")[1])

    @property
    def as_of(self) -> str:
        """Last month that has them; empty where a Python is enough."""
        return "" if self.python else f"{self.released.replace(day=1) - timedelta(days=1):%Y-%m}"

    @property
    def is_python_2(self) -> bool:
        """Whether Python 2 has them, and no newer one."""
        return self.python == _PYTHON_2

    @property
    def modules(self) -> set[str]:
        """The modules, or types, that had the names."""
        return {each.rpartition(".")[0] for each in self.names.split()}

    @property
    def uses(self) -> re.Pattern[str]:
        """Pattern of text that has one of the names, without its module."""
        return re.compile(rf"\b(?:{'|'.join(each.rpartition('.')[2] for each in self.names.split())})\b")

    def options(self, proposed: date | None = None) -> tuple[str, ...]:
        """Return the options of `mxjob run` that bring the names back, without `packages`.

        `proposed` is the day of the folder's last commit: an environment of that day fits the whole script.
        """
        is_time = proposed is not None and (proposed < self.released or self.is_python_2)
        day = str(proposed) if is_time else self.as_of
        python = "" if is_time and not self.is_python_2 else self.python
        return (*(("--python", python) if python else ()), *(("--as-of", day) if day else ()))


ASYNC: Final = Removal(
    "Python 3.7, 2018-06-27, docs.python.org/3/whatsnew/3.7.html", what="made async a keyword", python="3.6"
)
REMOVALS: Final = (
    Removal(
        "Python 3, 2008-12-03, docs.python.org/3/whatsnew/3.0.html",
        "xrange unicode raw_input basestring long reduce unichr execfile reload cmp file apply intern buffer coerce"
        " StandardError sets md5 exceptions new htmlentitydefs xmlrpclib anydbm tkFileDialog"
        " dict.has_key dict.iteritems dict.itervalues dict.iterkeys collections.OrderedDict.iteritems"
        " collections.OrderedDict.itervalues collections.defaultdict.iteritems Counter.iteritems"
        " dict_keys.sort dict_values.sort str.decode os.getcwdu os.errno sys.maxint sys.setdefaultencoding"
        " string.letters string.maketrans string.join string.lowercase string.uppercase string.replace string.atoi"
        " string.split string.strip string.find operator.div operator.isCallable types.StringType types.ListType"
        " types.IntType types.FloatType types.DictType types.TupleType types.StringTypes types.UnicodeType"
        " itertools.izip itertools.imap itertools.ifilter itertools.izip_longest"
        " urllib.urlretrieve urllib.urlopen urllib.urlencode urllib.quote urllib.unquote urllib.URLopener"
        " cPickle cStringIO StringIO Queue ConfigParser SocketServer BaseHTTPServer SimpleHTTPServer HTMLParser Tkinter"
        " urllib2 urlparse httplib cookielib commands thread __builtin__ copy_reg tkMessageBox",
        message=r"SyntaxError: Missing parentheses in call to '(?:print|exec)'|'cmp' is an invalid keyword argument"
        rf"|'{_LAZY}' object (?:is not subscriptable|does not support item assignment)|type '{_LAZY}' has no len\(\)"
        rf"|operand type\(s\) for \+: '{_LAZY}'|can only concatenate list \(not \"{_LAZY}|got '<{_LAZY} object"
        rf"|argument must be .*, not '{_LAZY}'|'(?:{_LAZY}|generator|enumerate|\w*[_.](?:iterator|reader)|_io\.\w+)'"
        r" object has no attribute '(?:next|sort|append|extend|insert|remove|pop|index|reverse)'"
        r"|operand type\(s\) for >>: 'builtin_function_or_method'|LookupError: '(?:hex|base64)' is not a text encoding"
        r"|iterator should return strings, not bytes",
        what="changed what this line does",
        python=_PYTHON_2,
    ),
    Removal(
        "Python 3, 2008-12-03, peps.python.org/pep-0238",
        message=r"'(?:numpy\.)?float\d*' object cannot be interpreted as an in|int expected instead of float"
        r"|slice indices must be integers|list indices must be integers or slices, not float"
        r"|can't multiply sequence by non-int of type 'float'|integer argument expected, got float"
        r"|only integers, slices \(`:`\).* are valid indices|a sequence of integers or a single integer, got '\d+\.\d",
        what="divides whole numbers into a float",
        python=_PYTHON_2,
        until=date(2020, 1, 1),
    ),
    Removal(
        "Python 3, 2008-12-03, docs.python.org/3/whatsnew/3.0.html",
        message=r"a bytes-like object is required, not 'str'|must be (?:a )?(?:str|bytes)(?: object)?(?:, not|$)"
        r"|'[<>]=?' not supported between instances of|codec can't decode byte"
        r"|(?:Strings|Unicode-objects) must be encoded before hashing",
        what="takes no bytes for text, and orders only what is of one type",
        python=_PYTHON_2,
        until=date(2020, 1, 1),
    ),
    ASYNC,
    Removal(
        "Python 3.8, 2019-10-14, docs.python.org/3/whatsnew/3.8.html",
        "time.clock platform.linux_distribution platform.dist cgi.escape",
        python="3.7",
    ),
    Removal(
        "Python 3.9, 2020-10-05, docs.python.org/3/whatsnew/3.9.html",
        "fractions.gcd base64.encodestring base64.decodestring array.array.tostring array.array.fromstring"
        " Thread.isAlive _MainThread.isAlive HTMLParser.unescape xml.etree.cElementTree"
        " xml.etree.ElementTree.Element.getchildren xml.etree.ElementTree.Element.getiterator",
        python="3.8",
    ),
    Removal(
        "Python 3.10, 2021-10-04, docs.python.org/3/whatsnew/3.10.html",
        "collections.Mapping collections.MutableMapping collections.Sequence collections.MutableSequence"
        " collections.Iterable collections.Iterator collections.Callable collections.Set collections.MutableSet"
        " collections.Hashable collections.Sized collections.Container collections.Generator",
        python="3.9",
    ),
    Removal(
        "Python 3.11, 2022-10-24, docs.python.org/3/whatsnew/3.11.html",
        "inspect.getargspec inspect.formatargspec asyncio.coroutine gettext.lgettext",
        message=r"ValueError: invalid mode: 'r?[bt]?U|Random\.shuffle\(\) takes 2 positional arguments"
        r"|TypeError: Population must be a sequence",
        what="removed an argument that this line has",
        python="3.10",
    ),
    Removal("MXNet 0.12, 2017-10-30, github.com/apache/mxnet/releases/tag/0.12.0", "mxnet.gluon.autograd"),
    Removal(
        "NumPy 1.13, 2017-06-07, numpy.org/doc/stable/release/1.13.0-notes.html",
        message=r"numpy boolean (?:negative|subtract), the `-` operator, is not supported",
        what="took the operator - from booleans",
    ),
    Removal(
        "NumPy 1.16.3, 2019-04-21, numpy.org/doc/stable/release/1.16.3-notes.html",
        message=r"Object arrays cannot be loaded when allow_pickle=False",
        what="loads no pickled objects by itself",
    ),
    Removal(
        "NumPy 1.18, 2019-12-22, numpy.org/doc/stable/release/1.18.0-notes.html",
        "numpy.rank",
        message=r"object of type <class '[\w.]+'> cannot be safely interpreted as an integer",
        what="takes no float for a number of samples",
    ),
    Removal(
        "NumPy 1.23, 2022-06-22, numpy.org/doc/stable/release/1.23.0-notes.html",
        "numpy.asscalar numpy.loads numpy.testing.rand",
    ),
    Removal(
        "SciPy 1.3, 2019-05-17, docs.scipy.org/doc/scipy/release/1.3.0-notes.html",
        "scipy.misc.imread scipy.misc.imresize scipy.misc.imsave scipy.misc.imrotate scipy.misc.imshow"
        " scipy.misc.imfilter scipy.misc.toimage scipy.misc.fromimage scipy.misc.bytescale scipy.ndimage.imread",
        packages=("pillow",),
    ),
    Removal(
        "SciPy 1.3, 2019-05-17, docs.scipy.org/doc/scipy/release/1.3.0-notes.html",
        "scipy.misc.logsumexp scipy.misc.comb scipy.misc.factorial",
    ),
    Removal(
        "SciPy 1.8, 2022-02-05, docs.scipy.org/doc/scipy/release/1.8.0-notes.html",
        message=r"cannot import name '_\w+' from 'scipy\.\w+\.\w+'",
        what="made modules private",
    ),
    Removal(
        "scikit-learn 0.20, 2018-09-26, scikit-learn.org/stable/whats_new/v0.20.html",
        "sklearn.cross_validation sklearn.grid_search sklearn.learning_curve sklearn.mixture.GMM"
        " sklearn.decomposition.RandomizedPCA",
    ),
    Removal(
        "scikit-learn 0.22, 2019-12-03, scikit-learn.org/stable/whats_new/v0.22.html",
        "sklearn.preprocessing.Imputer sklearn.datasets.fetch_mldata",
    ),
    Removal(
        "scikit-learn 0.23, 2020-05-12, scikit-learn.org/stable/whats_new/v0.23.html",
        "sklearn.externals.joblib sklearn.externals.six sklearn.datasets.samples_generator"
        " sklearn.utils.linear_assignment_ sklearn.metrics.jaccard_similarity_score",
    ),
    Removal(
        "scikit-learn 1.2, 2022-12-08, scikit-learn.org/stable/whats_new/v1.2.html",
        "sklearn.datasets.load_boston",
        message=r"`load_boston` has been removed from scikit-learn",
        what="removed sklearn.datasets.load_boston",
    ),
    Removal(
        "pandas 1.0, 2020-01-29, pandas.pydata.org/docs/whatsnew/v1.0.0.html",
        "DataFrame.as_matrix Series.as_matrix DataFrame.ix Series.ix DataFrame.get_value DataFrame.set_value"
        " DataFrame.from_items DataFrame.reindex_axis DataFrame.convert_objects Series.get_values DataFrame.get_values"
        " pandas.Panel pandas.TimeGrouper",
        message=r"concat\(\) got an unexpected keyword argument 'join_axes'|nested renamer is not supported",
        what="removed an argument that this line has",
    ),
    Removal(
        "pandas 2.0, 2023-04-03, pandas.pydata.org/docs/whatsnew/v2.0.0.html",
        "DataFrame.append Series.append DataFrame.iteritems Series.iteritems DataFrame.mad Series.mad"
        " DataFrame.lookup pandas.datetime pandas.np pandas.Int64Index pandas.Float64Index pandas.util.testing",
        message=r"(?:read_csv|read_table)\(\) got an unexpected keyword argument '(?:error_bad_lines|warn_bad_lines)'"
        r"|(?:DataFrame\.drop|concat|DataFrame\.\w+|Series\.\w+)\(\) takes from 1 to 2 positional arguments",
        what="removed an argument that this line has",
    ),
    Removal(
        "Matplotlib 3.1, 2019-05-18, matplotlib.org/stable/api/prev_api_changes/api_changes_3.1.0.html",
        message=r"got an unexpected keyword argument 'normed'",
        what="removed the argument normed",
    ),
    Removal(
        "Matplotlib 3.8, 2023-09-15, matplotlib.org/stable/api/prev_api_changes/api_changes_3.8.0.html",
        message=r"'seaborn[\w-]*' is not a valid package style",
        what="removed the styles of seaborn under their old names",
    ),
    Removal(
        "gensim 4.0, 2021-03-24, github.com/RaRe-Technologies/gensim/wiki/Migrating-from-Gensim-3.x-to-4",
        message=r"Word2Vec\S* got an unexpected keyword argument '(?:size|iter)'|'Word2Vec' object is not subscriptable"
        r"|The (?:vocab|index2word|index2entity) attribute (?:was removed|has been replaced)",
        what="removed names of Word2Vec that this line uses",
    ),
    Removal(
        "NetworkX 2.4, 2019-10-16, networkx.org/documentation/stable/release/release_2.4.html",
        "Graph.node DiGraph.node networkx.connected_component_subgraphs",
    ),
    Removal(
        "NetworkX 3.0, 2023-01-07, networkx.org/documentation/stable/release/release_3.0.html",
        "networkx.from_numpy_matrix networkx.to_numpy_matrix networkx.read_gpickle networkx.write_gpickle"
        " networkx.to_scipy_sparse_matrix networkx.from_scipy_sparse_matrix networkx.info",
    ),
    Removal("Pillow 7.0, 2020-01-02, pillow.readthedocs.io/en/stable/releasenotes/7.0.0.html", "PIL.PILLOW_VERSION"),
    Removal(
        "Pillow 10.0, 2023-07-01, pillow.readthedocs.io/en/stable/releasenotes/10.0.0.html",
        "PIL.Image.ANTIALIAS PIL.Image.LINEAR PIL.Image.CUBIC FreeTypeFont.getsize ImageFont.getsize"
        " ImageDraw.textsize",
    ),
    Removal("h5py 3.0, 2020-10-30, docs.h5py.org/en/stable/whatsnew/3.0.html", "Dataset.value"),
    Removal(
        "protobuf 4, 2022-05-25, github.com/protocolbuffers/protobuf/releases/tag/v21.0",
        message=r"Descriptors cannot (?:not )?be created directly",
        what="rejects the modules that older packages generated",
    ),
    Removal(
        "PyYAML 6.0, 2021-10-13, github.com/yaml/pyyaml/blob/main/CHANGES",
        message=r"load\(\) missing 1 required positional argument: 'Loader'",
        what="removed the default of load's Loader",
    ),
    Removal(
        "scikit-image 0.18, 2020-12-15, scikit-image.org/docs/stable/release_notes/release_0.18.html",
        "skimage.measure.compare_ssim skimage.measure.compare_psnr skimage.measure.compare_mse",
    ),
    Removal("librosa 0.8, 2020-07-22, librosa.org/doc/latest/changelog.html", "librosa.output"),
)

PYTHON_2: Final = REMOVALS[0]
_BY_NAME: Final = {name: each for each in REMOVALS for name in each.names.split()}
_NAMED: Final = re.compile(
    r"cannot import name '(?P<imported>\w+)' from '(?P<of>[\w.]+)'"
    r"|No module named '(?P<missing>[\w.]+)'"
    r"|module '(?P<module>[\w.]+)' has no attribute '(?P<attribute>\w+)'"
    r"|Error: (?P<deprecated>[\w.]+) is deprecated and has no attribute (?P<gone>\w+)"
    r"|'(?P<type>[\w.]+)' (?:object )?has no attribute '(?P<member>\w+)'"
    r"|NameError: name '(?P<builtin>\w+)' is not defined"
)


def removal_of(module: str) -> tuple[Removal, str] | None:
    """Find the removal of what is imported by this dotted name, and say it as `SciPy 1.3 removed scipy.misc.imread`."""
    while module not in _BY_NAME and "." in module:
        module = module.rpartition(".")[0]
    return _said(module)


def removal_in(message: str) -> tuple[Removal, str] | None:
    """Find the removal that a failure's last words show, and say it as `pandas 1.0 removed DataFrame.as_matrix`."""
    for named in reversed(list(_NAMED.finditer(message))):
        if named["missing"]:
            found = removal_of(named["missing"])
        elif named["imported"]:
            found = _said(f"{named['of']}.{named['imported']}")
        else:
            found = _said(".".join(filter(None, named.groups())))
        if found is not None:
            return found
    for each in REMOVALS:
        if each.message and re.search(each.message, message):
            return each, f"{each.release} {each.what}"
    return None


def _said(name: str) -> tuple[Removal, str] | None:
    found = _BY_NAME.get(name)
    return None if found is None else (found, f"{found.release} removed {name}")
