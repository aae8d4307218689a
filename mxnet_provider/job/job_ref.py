"""Reference to a job: its name, its uid, and the resource of the API server that it is one of."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from mxnet_operator.api import names


def is_given(name: Any) -> bool:
    """Whether a name or uid says something: a template that found nothing renders as "None"."""
    return name not in (None, "", "None")


class JobRef(msgspec.Struct, frozen=True, kw_only=True):
    """A job, as it is carried through deferral, stored state and XComs.

    The name finds it, and the uid says whether what was found is it. `uid` is empty until the job has been created.
    """

    name: str
    namespace: str
    uid: str = ""
    api_version: str = names.API_VERSION
    kind: str = names.KIND
    plural: str = names.PLURAL

    @classmethod
    def of(cls, job: Mapping[str, Any], plural: str = names.PLURAL) -> "JobRef":
        """Return the reference to a job as it was sent to, or returned by, the API server."""
        metadata = job["metadata"]
        return cls(
            name=metadata["name"],
            namespace=metadata["namespace"],
            uid=metadata.get("uid") or "",
            api_version=job.get("apiVersion") or names.API_VERSION,
            kind=job.get("kind") or names.KIND,
            plural=plural,
        )

    @property
    def group(self) -> str:
        """The API group, such as `kubeflow.org`."""
        return self.api_version.partition("/")[0]

    @property
    def version(self) -> str:
        """The version of the group, such as `v1`."""
        return self.api_version.partition("/")[2]

    @property
    def title(self) -> str:
        """Name of the job in messages."""
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def collection(self) -> str:
        """The path of all such jobs of its namespace on the API server."""
        return f"/apis/{self.api_version}/namespaces/{quote(self.namespace, safe='')}/{self.plural}"

    @property
    def path(self) -> str:
        """Its own path on the API server."""
        return f"{self.collection}/{quote(self.name, safe='')}"
