"""The logs of containers: what is kept, and what is answered."""

import asyncio
from datetime import UTC, datetime, timedelta

from kubelet_fixtures import make_pod

from mxnet_operator.local.apiserver.logs import LogRequest
from mxnet_operator.local.kubelet.logs import LINE_LIMIT, LogFile, Logs


async def read(log, **query):
    logs = Logs()
    logs.start("uid", "main", log)
    return b"".join([piece async for piece in logs.open("uid", LogRequest("main", **query))])


async def test_output_is_kept_as_it_came_whatever_the_pieces(tmp_path):
    log = LogFile(tmp_path / "log")
    for piece in (b"one\ntw", b"o\n", b"\xff\xfe\n", b"\n", b"no end"):
        log.append(piece)
    log.close()
    assert await read(log) == b"one\ntwo\n\xff\xfe\n\nno end"


async def test_the_file_is_in_the_format_of_the_container_runtime_interface(tmp_path):
    log = LogFile(tmp_path / "log")
    log.append(b"x" * (LINE_LIMIT + 5) + b"\nlast")
    log.close()
    first, second, third = (tmp_path / "log").read_bytes().splitlines()
    assert first.split(b" ")[1:] == [b"stdout", b"P", b"x" * LINE_LIMIT]
    assert second.split(b" ")[1:] == [b"stdout", b"F", b"xxxxx"]
    assert third.split(b" ")[1:] == [b"stdout", b"P", b"last"]
    assert first.split(b" ")[0].endswith(b"000Z")
    assert await read(log) == b"x" * (LINE_LIMIT + 5) + b"\nlast"


async def test_a_line_without_end_does_not_gather_in_memory(tmp_path):
    log = LogFile(tmp_path / "log")
    for _ in range(40):
        log.append(b"y" * 1000)
    assert len(await read(log)) >= 40_000 - LINE_LIMIT
    log.close()
    assert await read(log) == b"y" * 40_000


async def test_tail_since_limit_and_timestamps_choose(tmp_path):
    log = LogFile(tmp_path / "log")
    log.append(b"".join(b"line %d\n" % number for number in range(20_000)))
    log.close()
    assert await read(log, tail_lines=2) == b"line 19998\nline 19999\n"
    assert await read(log, tail_lines=0) == b""
    assert (await read(log, tail_lines=50_000)).count(b"\n") == 20_000
    assert await read(log, limit_bytes=9) == b"line 0\nli"
    assert await read(log, since=datetime(2999, 1, 1, tzinfo=UTC)) == b""
    assert (await read(log, since=datetime.now(UTC) - timedelta(hours=1))).count(b"\n") == 20_000
    stamped = (await read(log, tail_lines=1, timestamps=True)).split(b" ", 1)
    assert stamped[1] == b"line 19999\n"
    assert await read(log, tail_lines=1, since=datetime.fromisoformat(stamped[0].decode())) == b"line 19999\n"


async def test_the_disk_holds_two_files_of_bounded_size_and_the_newest_lines(tmp_path):
    log = LogFile(tmp_path / "log", limit=10_000)
    for number in range(2_000):
        log.append(b"line %d\n" % number)
    log.close()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["log", "log.1"]
    assert sum(each.stat().st_size for each in tmp_path.iterdir()) < 21_000
    lines = (await read(log)).splitlines()
    assert lines[-1] == b"line 1999"
    assert lines == [b"line %d" % number for number in range(2_000 - len(lines), 2_000)]
    assert await read(log, tail_lines=250) == b"".join(each + b"\n" for each in lines[-250:])


async def test_a_follower_that_is_overtaken_goes_on_with_the_oldest_whole_line(tmp_path):
    log = LogFile(tmp_path / "log", limit=2_000)
    following = asyncio.create_task(read(log, follow=True))
    log.append(b"first\n")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    for number in range(500):
        log.append(b"line %d\n" % number)
    log.close()
    first, *rest = (await following).splitlines()
    assert first == b"first"
    assert rest == [b"line %d" % number for number in range(500 - len(rest), 500)]


async def test_a_full_disk_loses_lines_until_there_is_room_again(tmp_path):
    path = tmp_path / "log"
    path.symlink_to("/dev/full")
    log = LogFile(path)
    log.append(b"lost\n")
    assert log.tail() == "lost\n"  # a failure's message needs no disk
    path.unlink()
    log.append(b"kept\n")
    log.close()
    assert await read(log) == b"kept\n"


async def test_followers_get_every_line_across_rotations_and_end_with_the_container(tmp_path):
    log = LogFile(tmp_path / "log", limit=2_000)
    following = asyncio.create_task(read(log, follow=True))
    for number in range(500):
        log.append(b"line %d\n" % number)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    log.close()
    assert (await following).splitlines() == [b"line %d" % number for number in range(500)]


async def test_a_running_container_can_be_followed_through_the_api(node):
    await node.create(make_pod("talk", "mkfifo pipe; echo one; read line < pipe; echo two"))
    pod = await node.running("talk")
    following = asyncio.create_task(node.log("talk", follow=True))
    assert await node.until_log("talk", "one") == "one\n"
    pipe = node.folder / pod["metadata"]["uid"] / "containers/main/workspace/pipe"
    await asyncio.to_thread(pipe.write_text, "go\n")
    assert await following == "one\ntwo\n"
    stamped = await node.log("talk", timestamps=True, tailLines=1)
    assert stamped.endswith("Z two\n")
