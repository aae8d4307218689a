"""Projects of the package index by the name under which a script imports them, or a module that needs another one.

With those that such a project imports and doesn't ask for, after a blank.
Only what MXNet scripts import, each looked up in the project's own documentation: a guessed name may be a stranger's.
"""

from typing import Final

IN_THE_IMAGE: Final = frozenset({"graphviz", "mxnet", "numpy", "requests", "scikit-learn", "scipy", "sklearn"})
"""Modules and projects that the images of MXNet have."""
_OF_THE_SAME_NAME: Final = (
    "albumentations altair annoy bokeh boto3 captcha catboost click cloudpickle colorama colormath configobj d2l "
    "d2lzh decorator dgl dill docopt easydict editdistance emoji filterpy fire fuzzywuzzy gensim gluonbook "
    "gluoncv gluonnlp gluonts gym h5py hyperopt imageio imgaug ipdb ipykernel ipywidgets jieba joblib jsonlines "
    "keras librosa lightgbm lmdb lxml matplotlib mido mlflow mlxtend mock moviepy music21 mxboard networkx "
    "nibabel nltk nose numba onnxruntime openpyxl optuna packaging pandas parameterized plac plotly portalocker "
    "pretty_midi prettytable psutil pyarrow pycocotools pydicom pydot pygal pygame pymongo pypinyin pytest "
    "python_speech_features pytz redis regex retrying sacrebleu sacremoses sagemaker seaborn sentencepiece "
    "seqeval SimpleITK simplejson six soundfile spacy statsmodels sympy tabulate tensorboard tensorboardX "
    "tensorflow termcolor terminaltables textblob tifffile toolz torch torchvision tornado tqdm transformers "
    "trimesh tushare ujson visdom wandb wordcloud xgboost xlrd xlwt yacs yfinance"
)
PROJECTS: Final = {
    **{each: each for each in _OF_THE_SAME_NAME.split()},
    "absl": "absl-py",
    # github.com/Trusted-AI/adversarial-robustness-toolbox/issues/2239
    "art": "adversarial-robustness-toolbox Pillow",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "configargparse": "ConfigArgParse",
    "Crypto": "pycryptodome",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "flask": "Flask",
    "git": "GitPython",
    "imblearn": "imbalanced-learn",
    "IPython": "ipython",
    # IPython's set_matplotlib_formats imports it.
    "IPython.display": "ipython ipykernel",
    "Levenshtein": "python-Levenshtein",
    "lru": "lru-dict",
    "mpl_toolkits": "matplotlib",
    # MXNet 1.9.1 imports onnx.mapping, which onnx 1.15 removed.
    "onnx": "onnx<1.15",
    "pandas_datareader": "pandas-datareader",
    "past": "future",
    "PIL": "Pillow",
    # setuptools 82 removed it.
    "pkg_resources": "setuptools<82",
    "png": "pypng",
    "progressbar": "progressbar2",
    "pylab": "matplotlib",
    "pywt": "PyWavelets",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "skopt": "scikit-optimize",
    "skvideo": "scikit-video",
    # github.com/apache/mxnet/issues/9743: MXNet's own, before TensorFlow's took its name.
    **dict.fromkeys(("tensorboard.FileWriter", "tensorboard.SummaryWriter"), "tensorboard==1.0.0a6"),
    "tqdm.notebook": "ipywidgets",
    "unidecode": "Unidecode",
    "xlsxwriter": "XlsxWriter",
    "yaml": "PyYAML",
    "zmq": "pyzmq",
}
NEWEST_PYTHON_OF_NUMPY: Final = {
    **dict.fromkeys(("1.11", "1.12", "1.13"), "3.6"),
    **dict.fromkeys(("1.14", "1.15", "1.16"), "3.7"),
    **dict.fromkeys(("1.17", "1.18"), "3.8"),
}
"""The newest Python for which the index has wheels of a numpy; of later ones, MXNet's own Pythons have them."""
