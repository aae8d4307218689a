"""Projects of the package index by the name under which a script imports them, or a module that needs another one.

With those that such a project imports and doesn't ask for, after a blank.
Only what MXNet scripts import, each looked up in the project's own documentation: a guessed name may be a stranger's.
"""

from typing import Final

IN_THE_IMAGE: Final = frozenset({"graphviz", "mxnet", "numpy", "requests", "scikit-learn", "scipy", "sklearn"})
"""Modules and projects that the images of MXNet have."""
_OF_THE_SAME_NAME: Final = (
    "albumentations boto3 captcha click colorama d2l d2lzh dgl dill easydict editdistance fire gensim gluoncv "
    "gluonnlp gluonts gym h5py imageio imgaug ipykernel ipywidgets jieba joblib librosa lmdb lxml matplotlib mxboard "
    "networkx nibabel nltk numba openpyxl pandas plotly portalocker prettytable psutil pyarrow pycocotools "
    "pydicom sacrebleu sacremoses seaborn sentencepiece SimpleITK simplejson six soundfile spacy tabulate "
    "tensorboard tensorboardX termcolor terminaltables torch torchvision tqdm visdom xgboost xlrd yacs"
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
    "git": "GitPython",
    "IPython": "ipython",
    # IPython's set_matplotlib_formats imports it.
    "IPython.display": "ipython ipykernel",
    "Levenshtein": "python-Levenshtein",
    "mpl_toolkits": "matplotlib",
    # MXNet 1.9.1 imports onnx.mapping, which onnx 1.15 removed.
    "onnx": "onnx<1.15",
    "PIL": "Pillow",
    # setuptools 82 removed it.
    "pkg_resources": "setuptools<82",
    "pylab": "matplotlib",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "skvideo": "scikit-video",
    # github.com/apache/mxnet/issues/9743: MXNet's own, before TensorFlow's took its name.
    **dict.fromkeys(("tensorboard.FileWriter", "tensorboard.SummaryWriter"), "tensorboard==1.0.0a6"),
    "tqdm.notebook": "ipywidgets",
    "yaml": "PyYAML",
    "zmq": "pyzmq",
}
NEWEST_PYTHON_OF_NUMPY: Final = {
    **dict.fromkeys(("1.11", "1.12", "1.13"), "3.6"),
    **dict.fromkeys(("1.14", "1.15", "1.16"), "3.7"),
    **dict.fromkeys(("1.17", "1.18"), "3.8"),
}
"""The newest Python for which the index has wheels of a numpy; of later ones, MXNet's own Pythons have them."""
