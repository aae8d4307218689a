"""The Airflow task that is one tuning job (`jobMode: MXTune`): a tracker, servers that measure, and the tuner."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from mxnet_provider.exceptions import MXNetManifestError
from mxnet_provider.job import manifest as manifests
from mxnet_provider.job.event import Event
from mxnet_provider.operators.described_job import with_numbers
from mxnet_provider.operators.mxnet_job import MXNetJobOperator

if TYPE_CHECKING:
    from airflow.sdk import Context


class MXNetTuneOperator(MXNetJobOperator):
    """Run an MXJob that tunes a model with TVM, and return what it found.

    The job is a `manifest` of mode MXTune, or `image` and `command`. The parameters reach every replica as variables:
    `MXTUNE_MODEL_URI`, `MXTUNE_TARGET`, `MXTUNE_TRIALS`, `MXTUNE_TUNER`, `MXTUNE_DATABASE_URI`, `MXTUNE_WARM_START`
    (`1` or `0`) and `MXTUNE_EARLY_STOPPING`. A script that takes options gets them in the manifest's
    `args: [--trials, $(MXTUNE_TRIALS)]`.

    The returned value is `MXNetJobOperator`'s, with the Tuner's JSON as `result`. From that JSON it has `artifact_uri`,
    `best_latency_ms` (or `tuned_ms`) and `trials` (a number, or the length of `trials_ms`), else None.

    Args:
        model_uri: What to tune: `MXTUNE_MODEL_URI`. (templated)
        target: TVM target, as the script's TVM takes it: `llvm`, or since TVM 0.27 with options as JSON,
            `{"kind": "llvm", "mcpu": "skylake"}`. (templated)
        trials: Number of schedules to measure. (templated)
        tuner: Tuner of the script, such as `xgb`. (templated)
        database_uri: Where measurements are kept from one try, or run, to the next. (templated)
        warm_start: Begin with the measurements in the database.
        early_stopping: Number of measurements without a gain after which tuning stops. (templated)
        server_key: Without a manifest: key by which the tuner asks the tracker for servers.
        servers: Number of measuring servers, a `Role`, or a ReplicaSpec; unset, 1. `container_resources` and
            `gpus_per_worker` apply to them.
        kwargs: As for `MXNetJobOperator`; `log_replicas` is `["tuner-0"]` if unset.
    """

    template_fields: Sequence[str] = (
        *MXNetJobOperator.template_fields,
        "model_uri",
        "target",
        "trials",
        "tuner",
        "database_uri",
        "early_stopping",
    )
    default_log_replicas: ClassVar[Sequence[str]] = ("tuner-0",)
    result_of: ClassVar[str] = "tuner-0"
    ui_color = "#e4dcf3"

    def __init__(
        self,
        *,
        model_uri: str | None = None,
        target: str | None = None,
        trials: int | str = 1000,
        tuner: str | None = None,
        database_uri: str | None = None,
        warm_start: bool = True,
        early_stopping: int | str | None = None,
        server_key: str = "default",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.model_uri = model_uri
        self.target = target
        self.trials = trials
        self.tuner = tuner
        self.database_uri = database_uri
        self.warm_start = warm_start
        self.early_stopping = early_stopping
        self.server_key = server_key

    def given_manifest(self) -> dict[str, Any]:
        """Return the MXJob as the DAG's author gave it, with what to tune in its environment."""
        if self.manifest is None:
            alone = {"servers": 0, "schedulers": 0}
            servers = self._description(workers=self._servers(), **alone)
            others = self._description(workers=1, container_resources=None, gpus_per_worker=None, **alone)
            manifest = manifests.as_tuning(
                self.described(servers, None), self.described(others, None), key=self.server_key
            )
        else:
            manifest = super().given_manifest()
        spec = manifest.get("spec")
        if isinstance(spec, dict) and spec.get("jobMode") != "MXTune":
            raise MXNetManifestError(f"spec.jobMode: a tuning job's is MXTune, not {spec.get('jobMode')!r}")
        manifests.add_environment(manifest, self._environment())
        return manifest

    def _servers(self) -> Any:
        """Return how many measure, or their role; a job without a manifest has no other roles to be set."""
        for field in ("workers", "schedulers"):
            if getattr(self, field) is not None:
                raise MXNetManifestError(
                    f"{field}: a tuning has none: leave it out, and say with servers=... how many measure"
                )
        self._description()  # Mistakes are raised about `servers`, by this name.
        servers = with_numbers("servers", 1 if self.servers is None else self.servers)
        if (servers.get("replicas") if isinstance(servers, Mapping) else servers) == 0:
            raise MXNetManifestError("servers: a tuning needs at least 1 to measure; leave it out for 1")
        return servers

    def _environment(self) -> dict[str, str]:
        values = {
            "MODEL_URI": self.model_uri,
            "TARGET": self.target,
            "TRIALS": _positive("trials", self.trials),
            "TUNER": self.tuner,
            "DATABASE_URI": self.database_uri,
            "WARM_START": int(self.warm_start),
            "EARLY_STOPPING": _positive("early_stopping", self.early_stopping),
        }
        # A template may leave nothing: `{{ params.database }}` of a run that has none.
        return {f"MXTUNE_{name}": str(value) for name, value in values.items() if value not in (None, "")}

    def _return(self, context: "Context", ended: Event) -> dict[str, Any]:
        returned = super()._return(context, ended)
        return {**returned, **found(returned.get("result"))}


def _positive(name: str, value: int | str | None) -> int | None:
    """Return a number that a template may have written as text; None where it left nothing."""
    if value is None or value == "":
        return None
    text = str(value).strip()
    if not text.isdecimal() or int(text) < 1:
        raise MXNetManifestError(f"{name}: must be a whole number above 0, is {value!r}")
    return int(text)


def found(result: Any) -> dict[str, Any]:
    """Return what a tuner's result says, under the names that tasks downstream use."""
    said: Mapping[str, Any] = result if isinstance(result, Mapping) else {}
    trials = said.get("trials")
    if trials is None and isinstance(said.get("trials_ms"), list):
        trials = len(said["trials_ms"])
    return {
        "artifact_uri": said.get("artifact_uri"),
        "best_latency_ms": said.get("best_latency_ms", said.get("tuned_ms")),
        "trials": trials,
    }
