"""What a cluster holds on to: its home, its lock, its addresses."""

import contextlib
import os
import signal
import stat
import subprocess
import sys

import pytest

from mxnet_operator.local.claims import AlreadyRunningError, HomeLock, claim_subnet, lock_holder
from mxnet_operator.local.home import (
    UnsafeHomeError,
    cluster_files,
    make_cluster_folder,
    mxjob_home,
    write_private,
)

HOLD_LOCK = (
    "import sys; from pathlib import Path; from mxnet_operator.local.claims import HomeLock;"
    "HomeLock(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_the_home_is_named_by_the_environment_or_is_the_users_data_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("MXJOB_HOME", str(tmp_path))
    assert mxjob_home() == tmp_path

    monkeypatch.delenv("MXJOB_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert mxjob_home() == tmp_path / "data/mxjob"


def test_a_new_home_is_its_owners_alone(tmp_path):
    files = make_cluster_folder(tmp_path / "home")

    assert (mode(tmp_path / "home"), mode(files.root)) == (0o700, 0o700)


def test_a_home_into_which_others_may_write_is_refused(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home").chmod(0o777)

    with pytest.raises(UnsafeHomeError, match="others may write"):
        make_cluster_folder(tmp_path / "home")


def test_a_home_that_is_a_link_is_rejected_with_where_it_leads_to(tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "home").symlink_to(tmp_path / "real")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")

    with pytest.raises(UnsafeHomeError, match=f"is a link.*MXJOB_HOME={tmp_path}/real"):
        make_cluster_folder(tmp_path / "home")
    with pytest.raises(UnsafeHomeError, match="is a link"):
        make_cluster_folder(tmp_path / "dangling")
    assert list((tmp_path / "real").iterdir()) == []


@pytest.mark.parametrize("above", ["open", "open/private", "link", "link/below"])
def test_a_home_below_a_folder_into_which_all_may_write_is_rejected(tmp_path, above):
    (tmp_path / "open").mkdir()
    (tmp_path / "open/private").mkdir(mode=0o700)
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "link").symlink_to("open/private")

    with pytest.raises(UnsafeHomeError, match=rf"all may write into {tmp_path}/\S*open; chmod o-w it"):
        make_cluster_folder(tmp_path / above / "home")


@pytest.mark.parametrize("mode_above", [0o1777, 0o775, 0o2770, 0o3777, 0o755])
def test_a_home_that_nobody_else_can_replace_is_taken(tmp_path, mode_above):
    (tmp_path / "above").mkdir()
    (tmp_path / "above").chmod(mode_above)
    (tmp_path / "tmp").symlink_to("above")  # as macOS has its /tmp

    assert make_cluster_folder(tmp_path / "above/home").root.is_dir()
    assert make_cluster_folder(tmp_path / "tmp/other/home").root.is_dir()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize("given_away", ["theirs", "link"])
def test_a_home_below_what_another_user_made_in_a_sticky_folder_is_rejected(tmp_path, given_away):
    (tmp_path / "sticky").mkdir()
    (tmp_path / "sticky").chmod(0o1777)
    (tmp_path / "mine").mkdir()
    (tmp_path / "sticky/theirs").mkdir()
    (tmp_path / "sticky/link").symlink_to(tmp_path / "mine")
    os.chown(tmp_path / "sticky" / given_away, 12345, -1, follow_symlinks=False)

    with pytest.raises(UnsafeHomeError, match=rf"{given_away} belongs to another user \(uid 12345\)"):
        make_cluster_folder(tmp_path / "sticky" / given_away / "home")


def test_a_private_file_replaces_one_that_was_open_to_all_and_follows_no_link(tmp_path):
    path, elsewhere = tmp_path / "file", tmp_path / "elsewhere"
    elsewhere.write_text("untouched")
    path.symlink_to(elsewhere)

    write_private(path, b"secret")

    assert (path.read_bytes(), mode(path), path.is_symlink()) == (b"secret", 0o600, False)
    assert elsewhere.read_text() == "untouched"


def test_the_lock_names_its_holder_until_it_is_released(tmp_path):
    path = tmp_path / "lock"
    assert lock_holder(path) is None

    with contextlib.closing(HomeLock(path)):
        assert lock_holder(path) == os.getpid()
        with pytest.raises(AlreadyRunningError, match=f"pid {os.getpid()}"):
            HomeLock(path, patience=0)

    assert lock_holder(path) is None


def test_a_killed_holder_leaves_no_lock(tmp_path):
    path = tmp_path / "lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD_LOCK, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout.readline() == b"held\n"
    assert lock_holder(path) == holder.pid

    holder.send_signal(signal.SIGKILL)
    holder.communicate()

    assert lock_holder(path) is None
    HomeLock(path).close()


def test_two_clusters_never_share_a_range_of_addresses_and_a_home_keeps_its_own(tmp_path):
    first, claim = claim_subnet(tmp_path)
    second, other_claim = claim_subnet(tmp_path)
    assert first != second

    claim.close()
    other_claim.close()

    again, claim = claim_subnet(tmp_path)
    claim.close()
    assert again == first


def test_looking_for_a_cluster_makes_no_folder(tmp_path):
    assert lock_holder(cluster_files(tmp_path / "home").lock) is None
    assert not (tmp_path / "home").exists()
