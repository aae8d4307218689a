"""A port is bound from the moment it is chosen, so that two test runs at once never choose the same."""

import socket
import subprocess
import sys

from guarded_program import GuardedProgram
from program_processes import Programs, held_port

LISTEN = """
import socket, sys
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind(("127.0.0.1", int(sys.argv[1])))
server.listen()
print(server.accept()[0].recv(2))
"""


def test_nobody_else_is_given_a_held_port() -> None:
    with held_port() as held:
        port = held.getsockname()[1]
        sockets = [held_port() for _ in range(2000)]
        given = {each.getsockname()[1] for each in sockets}
        for each in sockets:
            each.close()
        assert port not in given
        assert len(given) == 2000


def test_a_program_listens_on_a_held_port_and_is_reached() -> None:
    with held_port() as held:
        port = held.getsockname()[1]
        with GuardedProgram([sys.executable, "-c", LISTEN, str(port)], stdout=subprocess.PIPE) as program:
            while True:
                try:
                    with socket.create_connection(("127.0.0.1", port)) as connection:
                        connection.send(b"hi")
                    break
                except ConnectionRefusedError:
                    assert program.poll() is None
            assert program.communicate()[0] == "b'hi'\n"


def test_ports_of_programs_are_theirs_until_they_stop(tmp_path) -> None:
    programs = Programs({}, tmp_path)
    first, second = programs.port(), programs.port()
    assert first != second
    programs.stop()
    again = Programs({}, tmp_path)
    assert again.port(first) == first
    again.stop()
