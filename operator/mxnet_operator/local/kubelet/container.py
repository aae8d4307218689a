"""Lifecycle of one container: prepare it, run it once, record its end.

No container starts again: the pods of jobs have the restartPolicy Never, and the controller makes new ones.
"""

import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mxnet_operator.api.exit_codes import OUT_OF_MEMORY
from mxnet_operator.kube.errors import KubeError
from mxnet_operator.local.events import EventType, now
from mxnet_operator.local.home import full_disk
from mxnet_operator.local.images.store import ReadyImage
from mxnet_operator.local.images.uv_process import BuildError, BuildProgress, ImageError
from mxnet_operator.local.kubelet.environment import ConfigError
from mxnet_operator.local.kubelet.host import Host
from mxnet_operator.local.kubelet.logs import LogFile
from mxnet_operator.local.kubelet.loopback import Pending
from mxnet_operator.local.kubelet.preparation import (
    NoCommandError,
    PodPlace,
    Prepared,
    addressed_environment,
    prepare,
)
from mxnet_operator.local.kubelet.processes import ContainerProcess, MountFailedError
from mxnet_operator.local.kubelet.status import (
    MESSAGE_LIMIT,
    ContainerRecord,
    running,
    start_error,
    terminated,
    waiting,
)
from mxnet_operator.local.kubelet.volumes import MountError
from mxnet_operator.local.waiting import Stop, Stopped
from mxnet_operator.readers.pods import PROCESS

_LOG = logging.getLogger(__name__)

_OUT_OF_MEMORY = "mxjob: the kernel killed this process, because memory ran out; it had up to {:.3g} GiB\n"
_HOW_TO_BUILD = "It isn't built again by itself: mend it, then run `mxjob local image build {image}`."


class Container:
    """Runner of one container; it keeps the container's record up to date and calls `publish` on changes."""

    def __init__(
        self,
        host: Host,
        record: ContainerRecord,
        place: PodPlace,
        *,
        pod: Callable[[], dict[str, Any]],
        stop: Stop,
        publish: Callable[[], None],
    ) -> None:
        self._host = host
        self._pod = pod
        self._record = record
        self._place = place
        self._stop = stop
        self._publish = publish
        self._process: ContainerProcess | None = None

    async def run(self) -> None:
        """Run the container until it ends, or a stop is requested.

        Raises:
            Stopped: a stop was requested before it had ended by itself.
        """
        try:
            prepared = await self._stop.unless(self._prepared())
            await self._execute(prepared)
        except NoCommandError as error:
            self._set(start_error(str(error)))
        except BuildError as error:
            self._set(start_error(f"{error}\n{_HOW_TO_BUILD.format(image=self._record.spec['image'])}"))
            self._event("Warning", "Failed", f"Error: {error}")
        finally:
            self._host.devices.free(self._key)
        if self._stop.requested:
            raise Stopped

    def signal(self, number: int) -> None:
        """Send a signal to the container's processes, if it is running."""
        if self._process is not None:
            self._process.signal_group(number)

    async def _execute(self, prepared: Prepared) -> None:
        # Nothing may be awaited until the process is known: a stop that came meanwhile would reach nobody.
        record = self._record
        log = LogFile(self._place.folder / "logs" / record.name / "0.log")
        self._host.logs.start(self._pod()["metadata"]["uid"], record.name, log)
        record.container_id = f"{PROCESS}{self._key}"
        if prepared.notice:
            log.append(f"mxjob: {prepared.notice}\n".encode())
        process: ContainerProcess | None = None
        try:
            self._process = process = self._host.processes.spawn(
                prepared.argv,
                prepared.environment,
                prepared.folder,
                self._key,
                mounts=prepared.mounts,
                scratch=prepared.scratch,
            )
            await process.started()
        except (OSError, ValueError, MountFailedError) as error:
            why = _why_not_started(prepared, error)
            log.append(f"{why}\n".encode())
            if process is not None:
                await process.wait(log.append, self._host.timing.drain)
                self._process = None
            log.close()
            self._set(start_error(why))
            self._event("Warning", "Failed", f"Error: {why}")
            return
        started_at = now()
        self._set(running(started_at))
        self._event("Normal", "Started", f"Started container {record.name}")
        try:
            exit_status = await process.wait(log.append, self._host.timing.drain)
            if process.is_out_of_memory:
                log.append(_OUT_OF_MEMORY.format(process.most_memory / 2**20).encode())
        finally:
            self._process = None
            log.close()
        message = await asyncio.to_thread(self._termination_message, exit_status, log)
        reason = OUT_OF_MEMORY if process.is_out_of_memory else ""
        self._set(terminated(exit_status, started_at, message, record.container_id, reason=reason))

    async def _prepared(self) -> Prepared:
        """Prepare a run, with retries; the waiting state shows the reason of a failure.

        Raises:
            NoCommandError, BuildError: it can never be prepared.
        """
        pod, record, timing = self._pod, self._record, self._host.timing
        while True:
            try:
                image = await self._image()
                values = await addressed_environment(self._host, pod(), record.spec, self._place, self._waits_for)
                return await prepare(self._host, pod(), record.spec, self._place, image=image, values=values)
            except (ConfigError, MountError) as error:
                self._not_yet("CreateContainerConfigError", str(error))
            except BuildError:
                raise
            except (ImageError, OSError) as error:
                full = full_disk(self._place.folder, error) if isinstance(error, OSError) else ""
                self._not_yet("CreateContainerError", full or str(error))
            except KubeError as error:
                _LOG.info("container %s waits for the API server: %s", record.name, error)
                await asyncio.sleep(timing.api_retry)
                continue
            await asyncio.sleep(timing.setup_retry)

    async def _image(self) -> ReadyImage:
        spec, timing, images = self._record.spec, self._host.timing, self._host.images
        name = str(spec.get("image") or "")
        while True:
            image = images.resolve(name)
            try:
                if image is not None and images.ready(image):
                    self._event("Normal", "Pulled", f'Container image "{name}" already present on machine')
                    return await images.ensure(image)
                if image is None:
                    self._no_image(images.how_to_add(name))
                else:
                    self._event("Normal", "Pulling", f'Building image "{name}", which takes a minute or two')
                    ready = await images.ensure(image, self._building)
                    self._event("Normal", "Pulled", f'Successfully built image "{name}"')
                    return ready
            except BuildError:
                raise
            except ImageError as error:
                self._no_image(str(error))
            await asyncio.sleep(timing.image_retry)
            if "ErrImagePull" in str(self._record.state):
                message = self._record.state["waiting"].get("message", "")
                self._set(waiting("ImagePullBackOff", message))

    def _building(self, progress: BuildProgress) -> None:
        """Show the progress of the image's build in the container's waiting state, in steps worth a write."""
        percent = 5 * (20 * progress.done // progress.total)
        state = waiting("ContainerCreating", f'{percent} % of image "{progress.image}" built ({progress.stage})')
        if self._record.state != state:
            self._set(state)

    def _no_image(self, message: str) -> None:
        # The real kubelet alternates between the two at each try; here the second one stays, with the reason.
        if self._record.state != waiting("ImagePullBackOff", message):
            self._not_yet("ErrImagePull", message)

    def _not_yet(self, reason: str, message: str) -> None:
        if self._record.state != waiting(reason, message):
            self._set(waiting(reason, message))
            self._event("Warning", "Failed", f"Error: {reason}: {message}")

    def _waits_for(self, pending: tuple[Pending, ...]) -> None:
        names = ", ".join(each.name for each in pending)
        self._event("Warning", "WaitingForAddress", f"Container {self._record.name} waits for the address of {names}")

    def _termination_message(self, exit_status: int, log: LogFile) -> str:
        spec = self._record.spec
        path: Path = self._place.folder / "containers" / self._record.name / "termination-log"
        try:
            with path.open("rb") as file:
                file.seek(-min(MESSAGE_LIMIT, file.seek(0, os.SEEK_END)), os.SEEK_END)  # the end, as the kubelet has it
                message = file.read(MESSAGE_LIMIT).decode("utf-8", "replace")
        except OSError:
            message = ""
        if not message and exit_status and spec.get("terminationMessagePolicy") == "FallbackToLogsOnError":
            return log.tail()
        return message

    @property
    def _key(self) -> str:
        return f"{self._pod()['metadata']['uid']}/{self._record.name}"

    def _set(self, state: dict[str, Any]) -> None:
        self._record.state = state
        self._publish()

    def _event(self, kind: EventType, reason: str, message: str) -> None:
        self._host.events.record(self._pod(), kind, reason, message)


def _why_not_started(prepared: Prepared, error: OSError | ValueError | MountFailedError) -> str:
    if isinstance(error, MountFailedError):
        return f"mount: {error}"
    program = prepared.argv[0]
    if isinstance(error, FileNotFoundError):
        where = "no such file or directory" if "/" in program else "executable file not found in $PATH"
        return f'exec: "{program}": {where}'
    return f'exec: "{program}": {error.strerror.lower() if isinstance(error, OSError) and error.strerror else error}'
