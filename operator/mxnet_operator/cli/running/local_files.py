"""What the replicas of a job wrote on the local cluster, for the commands that show or copy it."""

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mxnet_operator.api import names
from mxnet_operator.cli.daemons.home import usable_files
from mxnet_operator.cli.errors import UsageError
from mxnet_operator.cli.output.terminal import say
from mxnet_operator.cli.running.run_outputs import ReportError
from mxnet_operator.cli.server.connection import local_cluster
from mxnet_operator.kube.resources import is_path_segment
from mxnet_operator.local.kubelet.pod_files import ContainerPaths, Written, job_paths, written

if TYPE_CHECKING:
    from mxnet_operator.local.job_files import LocalJobFiles

exists: Final = os.path.lexists
"""Whether there is a file, folder or link of this name, even a broken link."""


def is_local(server: str) -> bool:
    """Return whether the API server of this URL is the local cluster that runs on this machine for this user."""
    running = local_cluster()
    return running is not None and running[1].server == server


def local_job_files(server: str) -> "LocalJobFiles | None":
    """Return the reader of the local cluster's files, where this API server is the local cluster."""
    if not is_local(server):
        return None
    with usable_files() as files:
        from mxnet_operator.local.images.store import ImageStore  # noqa: PLC0415
        from mxnet_operator.local.job_files import LocalJobFiles  # noqa: PLC0415

        return LocalJobFiles(files.pods, ImageStore(files.root.parent))


def container_paths(job: dict[str, Any], pods: list[dict[str, Any]]) -> dict[str, ContainerPaths]:
    """Return the paths of each replica whose pod has started on this machine, by replica."""
    with usable_files() as files:
        return job_paths(files.pods, job, pods)


def files_written(job: dict[str, Any], pods: list[dict[str, Any]]) -> list[Written]:
    """List what the replicas wrote into their working directories on this machine; it reads files."""
    return written(container_paths(job, pods))


def claim_folder(namespace: str, name: str) -> Path:
    """Return the folder of a claim of the local cluster, which is made for the first pod that uses it."""
    with usable_files() as files:
        return files.claims / namespace / name


def copy(real: Path, final: Path, *, follow: bool) -> None:
    """Copy a file or folder under a temporary name beside `final`, so that a full disk leaves nothing half copied.

    Links within a folder stay links; so does `real` itself, unless `follow`.

    Raises:
        OSError: it can't be copied.
    """
    draft = final.with_name(f".{final.name}.{os.getpid()}.part")
    try:
        if real.is_symlink() and not follow:
            draft.symlink_to(real.readlink())
        elif real.is_dir():
            shutil.copytree(real, draft, symlinks=True)
        else:
            shutil.copy2(real, draft)
        draft.rename(final)
    except OSError:
        if draft.is_dir():
            shutil.rmtree(draft, ignore_errors=True)
        else:
            draft.unlink(missing_ok=True)
        raise


def check_output(output: Path) -> None:
    """Make the folder for `--output`; one with the files of a job that did not succeed is renamed first.

    Raises:
        CommandError: it can't be made, or it has something in it, which is never overwritten (exit code 2).
    """
    try:
        output.mkdir(parents=True, exist_ok=True)
        mark = output / names.OUTPUT_MARK
        if mark.is_file() and is_path_segment(job := mark.read_text("utf-8", "replace").strip()):
            aside = output.absolute().with_name(f"{output.absolute().name}-{job}")
            if not exists(aside) and not output.is_symlink() and not Path.cwd().is_relative_to(output.absolute()):
                output.rename(aside)
                output.mkdir()
                say(f"--output {output}: the files of job {job}, which did not succeed, are in {aside} now")
        is_empty = all(each.name == names.OUTPUT_MARK for each in output.iterdir())
        if is_empty:
            mark.touch()
    except OSError as error:
        raise UsageError(f"--output {output}: {error.strerror or error}") from error
    if not is_empty:
        raise UsageError(
            f"--output {output}: the folder is not empty, and nothing is overwritten", hint="name a new folder"
        )


def bring_home(job: dict[str, Any], replicas_wrote: list[Written], output: Path) -> None:
    """Copy the new files of each replica to `output`, into a folder of its own.

    Raises:
        ReportError: they can't be copied; `output` is left without any of them.
    """
    folders = [output / each.replica for each in replicas_wrote]
    try:
        for each, folder in zip(replicas_wrote, folders, strict=True):
            copy_files(each, folder)
    except OSError as error:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        raise ReportError(
            f"--output {output}: {error.strerror or error}",
            hint=f"the files are still there: mxjob cp {job['metadata']['name']}/REPLICA:PATH DESTINATION",
        ) from error
    say(f"files: {', '.join(map(str, folders))}")


def copy_files(wrote: Written, folder: Path) -> None:
    """Copy them into a folder, as they lie in the working directory; OSError where that fails."""
    for name in wrote.files:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        copy(wrote.folder / name, target, follow=False)
