"""Options of `mxjob run` that describe a job, without a manifest or merged over one."""

import functools
import hashlib
import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from mxnet_operator.api import names
from mxnet_operator.api.bundled_objects import job_and_objects
from mxnet_operator.api.conversion import without_server_fields
from mxnet_operator.api.job_formats import submission_errors
from mxnet_operator.api.manifest_text import ManifestError, decoded
from mxnet_operator.api.validation import unknown_fields
from mxnet_operator.cli.command import option
from mxnet_operator.cli.errors import UsageError
from mxnet_operator.cli.manifests import read_documents
from mxnet_operator.cli.running.images import complete_image
from mxnet_operator.cli.running.script import job_prefix, with_python
from mxnet_operator.cli.verbs.validate import mistakes
from mxnet_operator.description import DescriptionError, MXJobDescription, to_manifest

Object = dict[str, Any]

_LABEL_LENGTH: Final = 63
_LABEL: Final = re.compile(rf"(?=.{{1,{_LABEL_LENGTH}}}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?")
"""A label as in RFC 1123, which a volume's name must be; a claim's may have dots and be longer."""
_NOT_OF_A_LABEL: Final = re.compile("[^a-z0-9]+")
_more = functools.partial(option, panel="More about the job")


@dataclass(frozen=True, kw_only=True)
class JobOptions:
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SCRIPT] [-- ARGUMENTS...]",
            help="Python script and its arguments, or any command, which every replica runs.",
        ),
    ] = None
    name: str | None = option(metavar="NAME", help="Job name; default: the manifest's, else generated.")
    image: str | None = option(
        metavar="IMAGE",
        help="Image of every replica; default: one of the script's folder, on the local cluster.",
        autocompletion=complete_image,
    )
    workers: int | None = option(help="Number of Workers; default: 1.")
    servers: int | None = _more(help="Number of parameter Servers; default: as many as Workers, none for a single one.")
    gpus_per_worker: int | None = option(help="GPUs of each Worker.")
    gpu_resource: str | None = _more(metavar="NAME", help="Resource name of the GPUs; default: nvidia.com/gpu.")
    env: list[str] | None = option(
        "--env",
        "-e",
        metavar="NAME[=VALUE]",
        help="Environment variable, without a value that of this shell; repeatable.",
    )
    env_files: list[str] | None = _more(
        "--env-file", metavar="FILE", help="File of environment variables, as docker's; repeatable."
    )
    secrets: list[str] | None = _more(
        "--secret", metavar="NAME", help="Secret whose keys become environment variables; repeatable."
    )
    config_maps: list[str] | None = _more(
        "--config-map", metavar="NAME", help="ConfigMap whose keys become environment variables; repeatable."
    )
    volumes: list[str] | None = option(
        "--volume", metavar="CLAIM:/PATH[:ro]", help="PersistentVolumeClaim and its mount path; repeatable."
    )
    mounts: list[str] | None = option(
        "--mount",
        metavar="FOLDER:PATH[:ro]",
        help="Local cluster only: folder of this machine, and where the script finds it: absolute, relative to the"
        " script's folder, or ~/...; repeatable.",
    )
    node_selector: list[str] | None = _more(metavar="LABEL=VALUE", help="Label that nodes must have; repeatable.")
    image_pull_secrets: list[str] | None = _more(
        "--image-pull-secret", metavar="NAME", help="Secret for the image's registry; repeatable."
    )
    service_account_name: str | None = _more(metavar="NAME", help="ServiceAccount of the pods.")
    queue_name: str | None = _more(metavar="NAME", help="LocalQueue of Kueue for the job.")
    placement: str | None = _more(
        metavar="Pack|Exclusive",
        help="Pack: Workers share nodes. Exclusive: no other MXJob runs on the nodes of the job.",
    )
    backoff_limit: int | None = _more(help="Retries before the job fails.")
    resume: bool | None = _more(
        "--resume",
        help="After a failure, load the newest checkpoint of the script's --model-prefix with --load-epoch, as"
        " MXNet's fit.py does; put it on a --volume or --mount. Other scripts: --checkpoint.",
    )
    checkpoint: str | None = _more(
        metavar="PATTERN", help="--resume from these files, such as 'models/net-{epoch}.params'."
    )
    resume_args: str | None = _more(
        metavar="ARGUMENTS",
        help="Arguments by which the script loads a --checkpoint, such as '--resume {checkpoint} --start-epoch"
        " {epoch}'.",
    )
    fail_on_divergence: bool | None = _more(
        "--fail-on-divergence", help="Fail the job when a worker logs a NaN or infinite figure of an epoch."
    )

    def description(self) -> MXJobDescription | None:
        """Build the description of a job from the options; None where none was given.

        Raises:
            CommandError: an option has a wrong format or value.
        """
        given = {field: value for field, value in vars(self).items() if value not in (None, [])}
        if not given:
            return None
        for text in given.get("node_selector", ()):
            if text.find("=") < 1:
                raise UsageError(f"--node-selector: {text!r} is not NAME=VALUE")
        if "node_selector" in given:
            given["node_selector"] = dict(text.split("=", 1) for text in given["node_selector"])
        if "env" in given or "env_files" in given:
            files = [pair for file in given.pop("env_files", ()) for pair in _variables(file)]
            given["env"] = dict([*files, *(_variable("--env", each) for each in given.get("env", ()))])
        if "command" in given:
            given["command"] = list(with_python(given["command"]))
        if pairs := [*map(_claim, given.pop("volumes", ())), *map(_folder, given.pop("mounts", ()))]:
            given["volumes"] = list({volume["name"]: volume for volume, _ in pairs}.values())
            given["volume_mounts"] = [mount for _, mount in pairs]
        resume: dict[str, Any] = {}
        if "checkpoint" in given:
            resume["checkpoint"] = given.pop("checkpoint")
        if "resume_args" in given:
            resume["args"] = _words(given.pop("resume_args"))
        policy: dict[str, Any] = {"resume": resume} if given.pop("resume", False) or resume else {}
        if given.pop("fail_on_divergence", False):
            policy["failOnDivergence"] = True
        try:
            return MXJobDescription(**given, run_policy=policy or None)
        except DescriptionError as error:
            raise UsageError("\n".join(each.message for each in error.problems)) from error

    def job(self, file: str | None = None, *, allow_unknown: bool = False) -> tuple[Object, list[Object]]:
        """Build the job, merged over the manifest in a file if there is one; also return the objects beside it.

        Raises:
            CommandError: there is no job, or it has a mistake (exit code 2).
        """
        given, objects = (None, []) if file is None else _read_job(file, allow_unknown=allow_unknown)
        description = self.description()
        if description is None:
            if given is None:
                raise UsageError(
                    "no job given", hint="give a script: mxjob run train.py; or a manifest: mxjob run -f job.yaml"
                )
            return given, objects
        if given is not None and given.get("apiVersion") != names.API_VERSION:
            raise UsageError(
                f"options that describe the job need a manifest of {names.API_VERSION}, but this one is of"
                f" {given.get('apiVersion')}",
                hint=f"convert it first: mxjob convert -f {file}",
            )
        try:
            job = to_manifest(description, given)
        except DescriptionError as error:
            raise UsageError("\n".join(each.message for each in error.problems)) from error
        if not job["metadata"].get("name"):
            job["metadata"].setdefault("generateName", f"{job_prefix(self.command or [])}-")
        problems = submission_errors(job)
        if not allow_unknown:
            problems = [*problems, *unknown_fields(job)]
        if problems:
            raise UsageError("\n".join(each.message for each in problems))
        return job, objects


def lacks_model_prefix(command: Sequence[str]) -> bool:
    """Return whether a command is a Python script without the option under which fit.py saves its checkpoints."""
    words = with_python(command)
    return words[:1] == ("python",) and not any(word.startswith("--model-prefix") for word in words)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--resume-args: {text!r}: {str(error).lower()}") from error


def _claim(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parse `CLAIM:/PATH` or `CLAIM:/PATH:ro` into a volume and its mount."""
    claim, mount = _mount("--volume", "CLAIM", text)
    if "/" in claim or claim in {".", "..", "~"}:
        raise UsageError(
            f"--volume: {claim} is a path of this machine, where the name of a PersistentVolumeClaim is expected",
            hint=f"on the local cluster: --mount {text}\non another cluster, copy the files into a claim and mount it:"
            f" --volume data:{mount['mountPath']}",
        )
    name = _volume_name(claim)
    return {"name": name, "persistentVolumeClaim": {"claimName": claim}}, {"name": name, **mount}


def _folder(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parse `FOLDER:PATH` or `FOLDER:PATH:ro` into a volume and its mount."""
    named, mount = _mount("--mount", "FOLDER", text, relative=True)
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise UsageError(f"--mount: {named} is no folder of this machine")
    path = str(folder.resolve())
    name = _volume_name(path)
    return {"name": name, "hostPath": {"path": path, "type": "Directory"}}, {"name": name, **mount}


def _mount(flag: str, source: str, text: str, *, relative: bool = False) -> tuple[str, dict[str, Any]]:
    """Parse `SOURCE:/PATH` or `SOURCE:/PATH:ro` into what is mounted and its mount; a `relative` path may be, too."""
    given, path, *mode = (*text.split(":"), "")[:4] if text.count(":") < 3 else ("", "")
    slash = "" if relative else "/"
    if not given or not path or not path.startswith(slash) or mode not in ([""], ["ro", ""]):
        raise UsageError(f"{flag}: {text!r} is not {source}:{slash}PATH or {source}:{slash}PATH:ro")
    return given, {"mountPath": path, **({"readOnly": True} if mode[0] == "ro" else {})}


def _volume_name(mounted: str) -> str:
    """Return a volume's name for a claim or folder: its own, or one with a hash where that is no label of DNS."""
    if _LABEL.fullmatch(mounted):
        return mounted
    suffix = hashlib.sha256(mounted.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return f"{_NOT_OF_A_LABEL.sub('-', mounted.lower())[: _LABEL_LENGTH - 10].strip('-') or 'volume'}-{suffix}"


def _variable(source: str, text: str) -> tuple[str, str]:
    """Parse `NAME=VALUE`, or `NAME`, whose value is that of this process."""
    name, separator, value = text.partition("=")
    if not name or any(each.isspace() for each in name):
        raise UsageError(f"{source}: {text!r} is neither NAME=VALUE nor NAME")
    if separator:
        return name, value
    if name not in os.environ:
        raise UsageError(
            f"{source}: {name} has no value, and this shell doesn't export it",
            hint=f"give the value: {name}=VALUE; or export it: export {name}",
        )
    return name, os.environ[name]


def _variables(file: str) -> list[tuple[str, str]]:
    """Read a file as `docker run --env-file` does: a variable a line, `#` begins a comment line, quotes are kept."""
    try:
        with open(file, "rb") as opened:  # noqa: PTH123 - the path as written
            lines = decoded(opened.read()).splitlines()
    except (OSError, ManifestError) as error:
        raise UsageError(f"--env-file {file}: {getattr(error, 'strerror', '') or error}") from error
    return [
        _variable(f"--env-file {file}, line {number}", line.lstrip())
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]


def _read_job(file: str, *, allow_unknown: bool) -> tuple[Object, list[Object]]:
    documents = read_documents(file)
    try:
        position, objects = job_and_objects([each.content for each in documents])
    except ManifestError as error:
        raise UsageError(f"{documents[0].source}: {error}") from error
    job = documents[position]
    if found := mistakes(job, allow_unknown=allow_unknown):
        raise UsageError("\n".join(found))
    return without_server_fields(job.content), objects
