"""Formats in which a job can be written: one file each, and its row here.

A format's file has its kind, the fields of its spec, its rules, what it means as v1, its status words, its exit codes.
`job_formats.py` reads jobs by these rows, `crd.py` and `schemas.py` build the definitions from them.
"""

from collections.abc import Mapping
from typing import Final

from mxnet_operator.api.formats.definition import Definition
from mxnet_operator.api.formats.fioravanzo import FIORAVANZO
from mxnet_operator.api.formats.flat_v1 import FLAT_V1
from mxnet_operator.api.formats.format import Format
from mxnet_operator.api.formats.mlkube import MLKUBE
from mxnet_operator.api.formats.mxnetjob import MXNETJOB
from mxnet_operator.api.formats.v1 import V1
from mxnet_operator.api.formats.v1alpha1 import V1ALPHA1
from mxnet_operator.api.formats.v1beta1 import V1BETA1
from mxnet_operator.api.kind import Kind

FORMATS: Final[tuple[Format, ...]] = (V1, FLAT_V1, V1BETA1, V1ALPHA1, MXNETJOB, FIORAVANZO, MLKUBE)
_DEFINITIONS: Final[Mapping[str, Definition]] = {each.kind.name: each.definition for each in FORMATS}


def definition_of(kind: Kind) -> Definition:
    """Return the contents of a kind's CustomResourceDefinition."""
    return _DEFINITIONS[kind.name]
