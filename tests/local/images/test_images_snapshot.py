"""What an image of a script's folder holds: the files, their limit, and the name that comes of their content."""

import os
import re
import time

import pytest

from mxnet_operator.api.names import OUTPUT_MARK
from mxnet_operator.local.images.folder import LIMIT_BYTES
from mxnet_operator.local.images.snapshot import take_snapshot
from mxnet_operator.local.images.store import BASE_IMAGE, KEPT_SNAPSHOTS, ImageStore, ReadyImage
from mxnet_operator.local.images.uv_process import ImageError


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "my project"
    for name in ("train.py", "common/fit.py", "data/train.rec", "data/small.csv", "logs/a.log", "a.log", ".git/HEAD"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return folder


def names(folder):
    return set(take_snapshot(folder).files)


EVERYTHING = {"train.py", "common/fit.py", "data/train.rec", "data/small.csv", "logs/a.log", "a.log"}


@pytest.mark.parametrize(
    ("file", "text", "left_out"),
    [
        (".gitignore", "data/\n", {"data/train.rec", "data/small.csv"}),
        (".gitignore", "*.log\n# a comment\n", {"a.log", "logs/a.log"}),
        (".gitignore", "/*.log\n", {"a.log"}),
        (".gitignore", "data/*\n!data/small.csv\n", {"data/train.rec"}),
        (".gitignore", "data\n!data/small.csv\n", {"data/train.rec", "data/small.csv"}),
        ("data/.gitignore", "*\n", {"data/train.rec", "data/small.csv"}),
        (".dockerignore", "*.log\n", {"a.log"}),
        (".dockerignore", "**/*.log\n", {"a.log", "logs/a.log"}),
        (".dockerignore", "data\n!data/small.csv\n", {"data/train.rec"}),
        (".dockerignore", "/data/\n ./logs \n", {"data/train.rec", "data/small.csv", "logs/a.log"}),
    ],
)
def test_the_ignore_file_says_which_files_are_left_out(folder, file, text, left_out):
    """That of Git only where the folder is too large with what it ignores."""
    rules = {".gitignore", ".dockerignore", "data/.gitignore"}
    (folder / file).write_text(text)
    if file != ".dockerignore":
        assert names(folder) - rules == EVERYTHING
        with (folder / "huge").open("wb") as huge:
            huge.truncate(LIMIT_BYTES + 1)
        with (folder / ".gitignore").open("a") as ignored:
            ignored.write("/huge\n")
    assert names(folder) - rules == EVERYTHING - left_out


def test_a_folder_of_checkpoints_is_there_and_empty_and_a_virtual_environment_is_not(folder):
    for name in ("parser/checkpoints/old.params", "venv/pyvenv.cfg", "venv/lib/site.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    taken = take_snapshot(folder)
    assert "parser/checkpoints" in taken.folders
    assert not [each for each in (*taken.files, *taken.folders) if each.startswith(("venv", "parser/checkpoints/"))]
    assert taken.withheld == ("parser/checkpoints", "venv")


def test_a_dockerignore_counts_alone_and_what_is_left_out_is_named_by_its_entry(folder):
    (folder / ".gitignore").write_text("train.py\n")
    (folder / ".dockerignore").write_text("data\nlogs\n!logs/a.log\n")
    snapshot = take_snapshot(folder)
    assert "train.py" in snapshot.files
    assert (snapshot.left_out, snapshot.rules) == (("data",), ".dockerignore")


WITHHELD = {".env", ".env.local", "common/key.pem", "id_rsa", "id_ed25519.pub", "checkpoints/a", "outside"}


@pytest.fixture
def with_keys(folder, tmp_path):
    (folder / "checkpoints").mkdir()
    for name in (*WITHHELD - {"outside"}, "id_map.txt"):
        (folder / name).write_text(name)
    (tmp_path / "big").write_text("big")
    (tmp_path / "my project too").mkdir()
    (folder / "outside").symlink_to("../my project too")
    (folder / "common/inside").symlink_to("../train.py")
    return folder


def test_keys_and_links_out_of_the_folder_are_withheld_unless_a_rule_names_them(with_keys):
    table = [
        (".gitignore", "*.log\n", set()),
        (".gitignore", "/*\n!/common\n!*.py\n", set()),
        (".dockerignore", "*\n!common\n!train.py\n", set()),
        (".dockerignore", "*\n!common/*\n", set()),
        (".dockerignore", "!.env\n", {".env"}),
        (".gitignore", "!*.pem\n!/checkpoints/\n!outside\n", {"common/key.pem", "checkpoints/a", "outside"}),
    ]
    for file, text, taken_back in table:
        (with_keys / file).write_text(text)
        taken = take_snapshot(with_keys)
        assert WITHHELD & {*taken.files} == taken_back, text
        assert "common/inside" in taken.files, text
        assert "id_map.txt" in taken.files or "*\n" in text
        (with_keys / file).unlink()


def test_what_is_withheld_is_named_and_not_what_a_rule_leaves_out(with_keys):
    (with_keys / ".dockerignore").write_text(".env\n")
    taken = take_snapshot(with_keys)
    assert {*taken.withheld} == WITHHELD - {".env", "checkpoints/a"} | {"checkpoints"}
    assert taken.left_out == (".env",)


def test_a_container_gets_all_that_a_snapshot_has(with_keys, tmp_path):
    (with_keys / ".gitignore").write_text("!checkpoints\n")
    store, work = ImageStore(tmp_path / "home"), tmp_path / "work"
    image = store.add_snapshot(take_snapshot(with_keys), "p", BASE_IMAGE, [])
    ReadyImage(tmp_path, tmp_path, image.folder, is_snapshot=True).copy_folder(work)
    assert (work / "checkpoints/a").exists()


def test_what_an_earlier_run_brought_home_is_no_part_of_the_image(folder):
    (folder / "out" / "worker-0").mkdir(parents=True)
    (folder / "out" / "worker-0" / "m.params").touch()
    assert "out/worker-0/m.params" in take_snapshot(folder).files
    (folder / "out" / OUTPUT_MARK).touch()
    taken = take_snapshot(folder)
    assert not [each for each in (*taken.files, *taken.folders) if each.startswith("out")]


def test_a_folder_of_data_is_refused_with_its_name_and_what_leaves_it_out(folder):
    with (folder / "data" / "train.rec").open("wb") as file:
        file.truncate(2 * LIMIT_BYTES)
    with pytest.raises(ImageError, match="data \\(512 MiB\\)") as refused:
        take_snapshot(folder)
    assert "echo data >> .dockerignore" in str(refused.value)
    (folder / ".gitignore").write_text("a.log\n")
    with pytest.raises(ImageError, match=r"echo data >> \.gitignore"):
        take_snapshot(folder)
    (folder / ".gitignore").write_text("data\n")
    assert "train.py" in names(folder)


def test_the_name_of_an_image_is_that_of_its_content(folder, tmp_path):
    store = ImageStore(tmp_path / "home")

    def name(*packages):
        return store.add_snapshot(take_snapshot(folder), "p", BASE_IMAGE, packages).name

    first = name()
    assert name() == first
    assert name("six") != first
    (folder / "train.py").write_text("other")
    second = name()
    assert second != first
    (folder / "train.py").chmod(0o755)
    assert name() not in {first, second}


def test_an_image_keeps_its_files_when_the_folder_changes(folder, tmp_path):
    store = ImageStore(tmp_path / "home")
    (folder / "inside").symlink_to("train.py")
    (folder / ".dockerignore").write_text("!outside\n")
    (folder / "outside").symlink_to("../big")
    (tmp_path / "big").write_text("big")
    image = store.add_snapshot(take_snapshot(folder), "p", BASE_IMAGE, [])
    (folder / "train.py").write_text("changed")
    assert (image.folder / "train.py").read_text() == "train.py"
    assert (image.folder / "inside").read_text() == "train.py"
    assert (image.folder / "outside").read_text() == "big"
    assert not (image.folder / ".git").exists()


def test_only_the_copies_used_last_are_kept_and_those_that_a_job_needs(folder, tmp_path):
    store = ImageStore(tmp_path / "home")
    made = []
    for number in range(KEPT_SNAPSHOTS + 3):
        (folder / "train.py").write_text(str(number))
        made.append(store.add_snapshot(take_snapshot(folder), "p", BASE_IMAGE, []))
        os.utime(made[-1].folder, (number, number))
    again = store.add_snapshot(take_snapshot(folder), "p", BASE_IMAGE, [])
    assert again == made[-1]
    os.utime(made[1].folder)  # used again, last of all

    unused = store.unused_snapshots({made[2].name}, keep=KEPT_SNAPSHOTS)
    store.drop_snapshots(unused)

    assert unused == [made[0].folder, made[3].folder]
    assert [store.resolve(each.name) for each in made[:4]] == [None, made[1], made[2], None]
    assert len(list((tmp_path / "home" / "snapshots").iterdir())) == KEPT_SNAPSHOTS + 1


def test_a_copy_that_is_added_again_is_the_one_used_last(folder, tmp_path):
    store = ImageStore(tmp_path / "home")
    first = store.add_snapshot(take_snapshot(folder), "p", BASE_IMAGE, [])
    os.utime(first.folder, (0, 0))
    before = time.time()
    store.add_snapshot(take_snapshot(folder), "p", BASE_IMAGE, [])
    assert first.folder.stat().st_mtime >= before - 1


def test_a_home_that_can_not_be_written_is_not_blamed_on_the_script_s_folder(folder, tmp_path):
    (tmp_path / "home").touch()
    with pytest.raises(NotADirectoryError) as refused:
        take_snapshot(folder).copy(tmp_path / "home" / "snapshots" / "p-1")
    assert refused.value.filename == str(tmp_path / "home" / "snapshots" / "p-1")
    taken = take_snapshot(folder)
    (folder / "train.py").unlink()
    with pytest.raises(ImageError, match=re.escape(f"{folder / 'train.py'}: No such file")):
        taken.copy(tmp_path / "other")


def test_a_link_out_of_the_folder_to_a_python_file_is_copied_as_the_file(folder, tmp_path):
    (tmp_path / "utils.py").write_text("a = 1\n")
    (folder / "utils.py").symlink_to("../utils.py")
    (folder / "gone.py").symlink_to("../none.py")
    snapshot = take_snapshot(folder)
    assert snapshot.withheld == ("gone.py",)
    digest = snapshot.digest()
    snapshot.copy(tmp_path / "copy")
    assert not (tmp_path / "copy" / "utils.py").is_symlink()
    assert (tmp_path / "copy" / "utils.py").read_text() == "a = 1\n"
    (tmp_path / "utils.py").write_text("a = 2\n")
    assert take_snapshot(folder).digest() != digest
