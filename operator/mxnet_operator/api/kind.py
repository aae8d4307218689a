"""Kind of custom resource in which a job can be written."""

import msgspec


class Kind(msgspec.Struct, frozen=True):
    """Resource of the API server, as its CustomResourceDefinition names it."""

    group: str
    kind: str
    plural: str
    singular: str
    versions: tuple[str, ...]
    """Served versions, the newest first."""
    stored: str
    """Version that the API server stores, and that the controller reads and writes."""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ("mxnet",)
    """Category of every kind: `kubectl get mxnet` lists jobs of every kind that is installed."""
    is_legacy: bool = False
    """Whether only the overlay `legacy` installs it: beside it, plain `kubectl get mxjobs` means the first group."""

    @property
    def name(self) -> str:
        """Name of its CustomResourceDefinition: `mxjobs.kubeflow.org`."""
        return f"{self.plural}.{self.group}"

    @property
    def api_version(self) -> str:
        """Group with the stored version: `kubeflow.org/v1`."""
        return f"{self.group}/{self.stored}"

    def job_key(self, job: str) -> str:
        """Return the key of the job `namespace/name`: jobs of two kinds may have one name."""
        return f"{self.name}/{job}"
