"""Lets a new attempt go on from the newest complete checkpoint, though the script knows nothing of attempts.

MXJOB_RESUME is runPolicy.resume in JSON, present after the first attempt. The checkpoint's arguments are appended to
the command of the container's first Python process that runs a script and has every option that the path names.

A checkpoint is complete when each rank that the path names has its file, and no `.params` file breaks off: a process
killed while it saves leaves half a file. Files from before the job are another job's. All workers choose alike, because
they read the same folder while none trains.
"""
# mypy: ignore-errors
import errno
import glob
import json
import os
import re
import socket
import struct
import sys
import tempfile

PLACEHOLDER = re.compile(r"\{(epoch|-?rank|--[\w-]+)\}")
SKEW_SECONDS = 60  # by which the clocks of the API server and of the folder's server may differ
LIST_MAGIC = 0x112
DENSE_MAGICS = (0xF993FAC9, 0xF993FACA)
TYPE_SIZES = (4, 8, 2, 1, 4, 1, 8, 1, 2, 2, 4, 8, 2)  # by MXNet's number of the type


def resume():
    """Become the same command with the arguments that load the newest complete checkpoint, if this is the script."""
    with open("/proc/self/cmdline", "rb") as command:
        words = [decoded(word) for word in command.read().split(b"\0")[:-1]]
    asked = json.loads(os.environ["MXJOB_RESUME"])
    pattern = with_options(asked["checkpoint"], words)
    if pattern is None or not runs_script(words, has_options=pattern != asked["checkpoint"]):
        return  # one of its children, or another one after it, may be the script
    del os.environ["MXJOB_RESUME"]
    if not is_first(asked["since"]):
        return
    pattern = os.path.normpath(pattern)
    epoch, paths = newest(pattern, asked["since"] - SKEW_SECONDS)
    if epoch is None:
        say("starts anew: nothing complete is at %s (does the folder outlive a pod?)" % pattern)
        return
    say("goes on after epoch %d, from %s" % (int(epoch), ", ".join(paths)))
    os.environ["MXJOB_RESUME_EPOCH"] = str(int(epoch))
    if asked["args"]:
        args = [with_options(word, words) or word for word in asked["args"]]
        os.execv(sys.executable, words + [word.replace("{epoch}", epoch) for word in args])


def decoded(word):
    return os.fsdecode(word) if hasattr(os, "fsdecode") else word


def runs_script(words, has_options):
    """Return whether a Python's command line runs a `.py` file or a module; any file, where it has the options."""
    for previous, word in zip(words, words[1:]):
        if re.match(r"-[a-zA-Z]*m$", previous):
            return word != "pip"
        if re.match(r"-[a-zA-Z]*c$", word) or word == "-":
            return False
        if not word.startswith("-") and previous not in ("-W", "-X"):
            return has_options or word.endswith(".py")
    return False


def with_options(text, words):
    """Return the text with the values of the script's options; None where one isn't there."""
    for name in PLACEHOLDER.findall(text):
        if name.startswith("--"):
            values = [word for previous, word in zip(words, words[1:]) if previous == name]
            values += [word[len(name) + 1 :] for word in words if word.startswith(name + "=")]
            if not values:
                return None
            text = text.replace("{%s}" % name, values[-1])
    return text


def is_first(since):
    """Return whether no other script of this container has resumed, such as one before it in a shell's list."""
    name = "mxjob-resume-%s-%d-%s" % (socket.gethostname(), since, os.environ.get("MXJOB_ATTEMPT"))
    try:
        os.close(os.open(os.path.join(tempfile.gettempdir(), name), os.O_CREAT | os.O_EXCL))
    except OSError as error:
        return error.errno != errno.EEXIST
    return True


def newest(pattern, since):
    """Return the digits of the newest complete epoch and its files, one of each rank; None and nothing without one."""
    ranks = range(int(os.environ.get("DMLC_NUM_WORKER", "1"))) if "rank}" in pattern else [0]
    of_ranks = [epochs(with_rank(pattern, rank), since) for rank in ranks]
    for epoch in sorted(set(of_ranks[0]).intersection(*of_ranks[1:]), reverse=True):
        files = [of_rank[epoch] for of_rank in of_ranks]
        if all(is_whole(path) for _, path in files):
            return files[0][0], [path for _, path in files]
    return None, []


def with_rank(pattern, rank):
    return pattern.replace("{rank}", str(rank)).replace("{-rank}", "-%d" % rank if rank else "")


def epochs(pattern, since):
    """Return the files that match the pattern and are of this job, with the digits in their names, by epoch."""
    parts = pattern.split("{epoch}")
    wanted = re.compile(re.escape(parts[0]) + r"(\d+)" + r"\1".join(map(re.escape, parts[1:])) + r"\Z")
    found = map(wanted.match, glob.glob("*".join(re.sub(r"([*?[])", r"[\1]", part) for part in parts)))
    return dict(
        (int(match.group(1)), (match.group(1), match.group(0)))
        for match in found
        if match and os.path.getmtime(match.group(0)) >= since
    )


def is_whole(path):
    """Return whether a file doesn't break off; of a format other than MXNet's nothing is known."""
    if not path.endswith(".params"):
        return True
    try:
        with open(path, "rb") as file:
            return read_list(file)
    except (struct.error, IndexError, OverflowError):  # it ends before its last field, or has none of the format's
        return False


def read_list(file):
    """Read over what `mx.nd.save` writes, arrays and then their names (MXNet's src/ndarray/ndarray.cc, version 1)."""
    (magic,) = fields(file, "Q")
    if magic != LIST_MAGIC:
        return True
    _, arrays = fields(file, "QQ")
    for _ in range(arrays):
        magic, storage = fields(file, "Ii")
        if magic not in DENSE_MAGICS or storage != 0:  # sparse, or of a release before 1.0
            return True
        shape = fields(file, "%dq" % max(fields(file, "i")[0], 0))
        if shape:
            _, _, kind = fields(file, "iii")
            size = TYPE_SIZES[kind]
            for each in shape:
                size *= each
            skip(file, size)
    for _ in range(fields(file, "Q")[0]):
        skip(file, fields(file, "Q")[0])
    return True


def fields(file, layout):
    return struct.unpack("<" + layout, file.read(struct.calcsize("<" + layout)))


def skip(file, size):
    """Go on after so many bytes, the last of which must be there."""
    if size:
        file.seek(size - 1, 1)
        fields(file, "B")


def say_not_resumed():
    """Say that a process which imports MXNet has not been taken for the script."""
    asked = json.loads(os.environ.pop("MXJOB_RESUME"))
    say("starts anew: its command is no script, or lacks an option that %s names" % asked["checkpoint"])


def say(text):
    sys.stderr.write("mxjob: attempt %s %s\n" % (os.environ.get("MXJOB_ATTEMPT"), text))
    sys.stderr.flush()
