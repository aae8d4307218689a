"""Formats in which a job can be written: a file for each kind, and a row here for each format.

A file has the kind, the fields of its spec, its rules, what they mean as v1, the status words and the exit codes.
`job_formats.py` reads jobs by these rows, `crd.py` and `schemas.py` build the definitions from them.
"""

from collections.abc import Mapping
from typing import Final

from mxnet_operator.api.formats.fioravanzo import FIORAVANZO
from mxnet_operator.api.formats.format import Definition, Format
from mxnet_operator.api.formats.mlkube import MLKUBE
from mxnet_operator.api.formats.mxjob import FLAT_V1, V1, V1ALPHA1, V1BETA1
from mxnet_operator.api.formats.mxnetjob import MXNETJOB
from mxnet_operator.api.kind import Kind

FORMATS: Final[tuple[Format, ...]] = (V1, FLAT_V1, V1BETA1, V1ALPHA1, MXNETJOB, FIORAVANZO, MLKUBE)
_DEFINITIONS: Final[Mapping[str, Definition]] = {each.kind.name: each.definition for each in FORMATS}


def definition_of(kind: Kind) -> Definition:
    return _DEFINITIONS[kind.name]
