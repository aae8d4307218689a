"""Stand-in for systemd-logind, on a D-Bus of the node's own: what a kubelet and an administrator ask of it.

It stands for the machine, and not for what is under test. As logind does, it announces that the machine shuts down,
then waits for all who hold an inhibitor lock: the end of a pipe, which they close.
"""

import os
import select
from pathlib import Path

from jeepney import (
    DBusAddress,
    HeaderFields,
    Message,
    MessageType,
    message_bus,
    new_error,
    new_method_call,
    new_method_return,
    new_signal,
)
from jeepney.io.blocking import DBusConnection, open_dbus_connection
from jeepney.wrappers import unwrap_msg
from waiting import SECONDS

_NAME = "org.freedesktop.login1"
_MANAGER = DBusAddress("/org/freedesktop/login1", bus_name=_NAME, interface=f"{_NAME}.Manager")
_MICROSECONDS = 1_000_000


def address(folder: Path) -> str:
    """Where the bus of the node with this folder listens; only root may enter the folder."""
    return f"unix:path={folder}/bus"


def bus_configuration(folder: Path) -> str:
    """dbus-daemon's configuration (XML)."""
    return f"""<busconfig>
  <type>system</type>
  <listen>{address(folder)}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow own="{_NAME}"/>
    <allow send_destination="*"/>
    <allow receive_sender="*"/>
  </policy>
</busconfig>
"""


class Logind:
    """Stand-in for logind on a bus."""

    def __init__(self, folder: Path) -> None:
        self._connection = _connection(folder)
        self._locks: list[int] = []
        unwrap_msg(self._connection.send_and_get_reply(message_bus.RequestName(_NAME)))

    def serve(self) -> None:
        """Answer whoever calls, for ever."""
        while True:
            message = self._connection.receive()
            if message.header.message_type is MessageType.method_call:
                self._answer(message)

    def _answer(self, call: Message) -> None:
        match call.header.fields[HeaderFields.member], call.body:
            case "Inhibit", _:
                ours, theirs = os.pipe()
                self._locks.append(ours)
                self._connection.send(new_method_return(call, "h", (theirs,)))
                os.close(theirs)
            case "Get", (_, "InhibitDelayMaxUSec"):
                self._connection.send(new_method_return(call, "v", (("t", SECONDS * _MICROSECONDS),)))
            case "PowerOff", _:
                self._connection.send(new_signal(_MANAGER, "PrepareForShutdown", "b", (True,)))
                self._wait_for_locks()
                self._connection.send(new_method_return(call))
            case _:
                self._connection.send(new_error(call, "org.freedesktop.DBus.Error.UnknownMethod"))

    def _wait_for_locks(self) -> None:
        while self._locks:
            lock = self._locks.pop()
            select.select([lock], [], [], SECONDS)  # to read there is the end of the pipe, and nothing before
            os.close(lock)


def power_off(folder: Path) -> None:
    """Shut the machine down, as `systemctl poweroff` does, until nobody delays it any longer."""
    with _connection(folder) as connection:
        unwrap_msg(connection.send_and_get_reply(new_method_call(_MANAGER, "PowerOff", "b", (False,)), timeout=SECONDS))


def _connection(folder: Path) -> DBusConnection:
    return open_dbus_connection(address(folder), enable_fds=True, auth_timeout=SECONDS)
