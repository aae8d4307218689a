"""TMPDIR is short enough for sockets, and lies where the cluster's home is."""

import os
from pathlib import Path

from kubelet_fixtures import running_node, terminated

from mxnet_operator.local.kubelet.processes import Processes
from mxnet_operator.local.kubelet.short_path import ShortPath

LISTENS = """
import os, tempfile
from multiprocessing import connection, util
address = connection.Listener(family="AF_UNIX").address
print(os.path.realpath(util.get_temp_dir()))
"""
"""Script that does what Gluon's DataLoader does with workers: it listens on a socket of multiprocessing."""


async def test_multiprocessing_finds_room_for_its_sockets_below_a_long_home(tmp_path):
    home = tmp_path / ("h" * 120)
    home.mkdir()
    async with running_node(home) as node:
        pod = await node.run("listens", "python", "-c", LISTENS)
        assert terminated(pod)["exitCode"] == 0, await node.log("listens")
        (line,) = (await node.log("listens")).splitlines()
        folder = node.folder / pod["metadata"]["uid"]
        assert Path(line).parent == folder / "tmp"
        link = ShortPath(node.folder).link
        assert link.readlink() == node.folder
    assert not link.is_symlink()


async def test_a_link_that_was_cleaned_up_or_is_another_user_s_does_not_matter(tmp_path):
    short = ShortPath(tmp_path)
    assert short.ensure() == short.link
    short.link.unlink()
    assert short.ensure() == short.link
    short.link.unlink()
    short.link.symlink_to("/elsewhere")
    if os.geteuid() == 0:
        os.chown(short.link, 65534, 65534, follow_symlinks=False)
        assert short.ensure() == tmp_path
        assert short.link.readlink() == Path("/elsewhere")
        os.chown(short.link, 0, 0, follow_symlinks=False)
    assert short.ensure().readlink() == tmp_path
    short.remove()
    assert not short.link.is_symlink()


async def test_the_link_goes_though_the_kubelet_was_killed(tmp_path):
    short = ShortPath(tmp_path)
    processes = Processes("linked", short.link)
    await processes.start()
    short.ensure()
    reaper = processes._reaper
    reaper.stdin.close()  # as the kernel does with a process that is killed
    assert reaper.wait() == 0
    assert not short.link.is_symlink()
    processes._reaper = None
