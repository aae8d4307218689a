"""Where MXJobs live in the API."""

from typing import Final

from mxnet_operator.api import names
from mxnet_operator.kube.resources import Resource

MXJOBS: Final = Resource(names.GROUP, names.VERSION, names.PLURAL)
