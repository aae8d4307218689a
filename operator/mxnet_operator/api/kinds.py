"""The kinds of custom resource in which a job can be written: MXJob, and the three of its predecessors.

Two of them are called MXJob and have the plural `mxjobs`, as it was; the group tells them apart.
"""

from typing import Final

import msgspec

from mxnet_operator.api import names


class Kind(msgspec.Struct, frozen=True):
    """A resource of the API server, as its CustomResourceDefinition names it."""

    group: str
    kind: str
    plural: str
    singular: str
    versions: tuple[str, ...]
    """All that are served, the newest first."""
    stored: str
    """The version that the API server stores, and that the controller reads and writes."""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ("mxnet",)
    """`kubectl get mxnet` lists jobs of every kind that is installed."""

    @property
    def name(self) -> str:
        """The name of its definition: `mxjobs.kubeflow.org`."""
        return f"{self.plural}.{self.group}"

    @property
    def api_version(self) -> str:
        """The group with the stored version: `kubeflow.org/v1`."""
        return f"{self.group}/{self.stored}"


MXJOB: Final = Kind(
    names.GROUP,
    names.KIND,
    names.PLURAL,
    names.SINGULAR,
    ("v1", "v1beta1", "v1alpha1"),
    "v1",
    (names.SHORT_NAME,),
)
"""training-operator's, kubeflow/mxnet-operator's (examples/seeds/001-kubeflow-mxnet-operator) and jzp1025/mx-operator's
(examples/seeds/004-jzp1025)."""
MXNETJOB: Final = Kind(names.GROUP, "MXNetJob", "mxnetjobs", "mxnetjob", ("v1alpha1",), "v1alpha1")
"""The proposal's to Kubeflow (examples/seeds/000-mxnetjob-proposal)."""
FIORAVANZO: Final = Kind("fioravanzo.org", "MXJob", "mxjobs", "mxjob", ("v1alpha1",), "v1alpha1")
"""StefanoFioravanzo/mx-operator's (examples/seeds/003-fioravanzo)."""
MLKUBE: Final = Kind("mxnet.mlkube.io", "MxJob", "mxjobs", "mxjob", ("v1beta1",), "v1beta1")
"""deepinsight/mxnet-operator's (examples/seeds/002-deepinsight)."""

ALL: Final = (MXJOB, MXNETJOB, FIORAVANZO, MLKUBE)
LEGACY: Final = (FIORAVANZO, MLKUBE)
"""What the overlay `legacy` installs: beside them, plain `kubectl get mxjobs` means the first group by name."""


def kind_of(api_version: str, kind: str) -> Kind | None:
    """The kind that a manifest's header names in a version that is served, or None."""
    group, _, version = api_version.partition("/")
    return next((k for k in ALL if (k.group, k.kind) == (group, kind) and version in k.versions), None)
