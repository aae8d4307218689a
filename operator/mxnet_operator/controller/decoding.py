"""Decoder of a job's JSON, in whatever format it was written, to the v1 job that it means.

The expensive part (which format is it, is it valid) is done once for each generation of a job; a job in v1's own
format is then decoded straight into its type at each reconciliation.
"""

import contextlib
from typing import Any

import msgspec

from mxnet_operator.api import conditions, job_formats
from mxnet_operator.api.formats.format import Format
from mxnet_operator.api.formats.mxjob import V1
from mxnet_operator.api.kinds import Kind
from mxnet_operator.api.types import MXJob, MXJobSpec, MXJobStatus, ObjectMeta, RunPolicy
from mxnet_operator.controller.memory import Decoded, JobMemory


class JobRead(msgspec.Struct, frozen=True):
    """Decoded job, as it is stored now.

    `job` is None for one that can't be run, for the reasons in `mistakes`; if that one is over, `job` is what its
    clean-up needs: metadata, status and policies, without replicas. `source` is the job that a format's status is
    written for; `stored` is the status in the format's fields, None where they are `status`'s own.
    """

    metadata: ObjectMeta
    status: MXJobStatus
    format: Format
    source: MXJob | dict[str, Any]
    stored: dict[str, Any] | None
    job: MXJob | None
    mistakes: tuple[str, ...] = ()


class _Header(msgspec.Struct, frozen=True):
    """Fields that even a job has that can't be decoded."""

    metadata: ObjectMeta


class Reader:
    """Decoder of the jobs of one kind."""

    def __init__(self, kind: Kind) -> None:
        self._header = {"api_version": kind.api_version, "kind": kind.kind}

    def read(self, raw: bytes, memory: JobMemory) -> JobRead:
        """Return a decoded job; what holds for its generation is kept in the job's memory."""
        metadata = msgspec.json.decode(raw, type=_Header).metadata
        known = memory.decoded
        if known is None or (known.uid, known.generation) != (metadata.uid, metadata.generation):
            known = memory.decoded = _recognise(metadata, msgspec.json.decode(raw))
        if known.format is V1:
            with contextlib.suppress(msgspec.ValidationError):  # Its status may be of another format yet.
                job = msgspec.json.decode(raw, type=MXJob)
                runs = self._remains(job.metadata, job.status, msgspec.json.decode(raw)) if known.mistakes else job
                return JobRead(job.metadata, job.status, V1, job, None, runs, known.mistakes)
        return self._read(metadata, known, msgspec.json.decode(raw))

    def _read(self, metadata: ObjectMeta, known: Decoded, manifest: dict[str, Any]) -> JobRead:
        stored, mistakes, job = manifest.get("status") or {}, known.mistakes, None
        status = MXJobStatus()
        try:
            status = job_formats.status_from_wire(known.format, stored)
            if not mistakes:
                meant = msgspec.convert({**job_formats.to_v1(manifest), "status": {}}, MXJob)
                job = msgspec.structs.replace(meant, metadata=metadata, status=status, **self._header)
        except msgspec.ValidationError as error:
            mistakes = mistakes or (str(error),)
        if mistakes:
            job = self._remains(metadata, status, manifest)
        return JobRead(metadata, status, known.format, manifest, stored, job, mistakes)

    def _remains(self, metadata: ObjectMeta, status: MXJobStatus, manifest: dict[str, Any]) -> MXJob | None:
        """Return what the clean-up of a finished invalid job needs of it; None for one that is not over."""
        if not conditions.is_terminal(status):
            return None
        spec = MXJobSpec(job_mode="", mx_replica_specs={}, run_policy=_ending_policy(manifest.get("spec")))
        return MXJob(metadata=metadata, status=status, spec=spec, **self._header)


def _ending_policy(spec: Any) -> RunPolicy:
    """Return the policies of an invalid spec for what is over, as far as they are well-formed."""
    fields = spec if isinstance(spec, dict) else {}
    nested = fields.get("runPolicy")
    written = {**fields, **(nested if isinstance(nested, dict) else {})}
    well_formed: dict[str, Any] = {}
    for field in ("cleanPodPolicy", "ttlSecondsAfterFinished"):
        with contextlib.suppress(msgspec.ValidationError):
            msgspec.convert({field: written.get(field)}, RunPolicy)
            well_formed[field] = written.get(field)
    return msgspec.convert(well_formed, RunPolicy)


def _recognise(metadata: ObjectMeta, manifest: dict[str, Any]) -> Decoded:
    mistakes = tuple(error.message for error in job_formats.errors(manifest))
    return Decoded(metadata.uid, metadata.generation, job_formats.format_of(manifest), mistakes)
