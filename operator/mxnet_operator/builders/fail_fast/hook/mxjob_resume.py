"""Lets a new attempt go on from the newest complete checkpoint, though the script knows nothing of attempts.

MXJOB_RESUME is runPolicy.resume in JSON, present after the first attempt. The checkpoint's arguments are appended to
the command of the container's first Python process that runs a script and has every option that the path names.

A checkpoint is complete when each rank that the path names has its file, and no `.params` file breaks off: a process
killed while it saves leaves half a file. Where no rank but 0 has a file with its number, all ranks write and load rank
0's. Files from before the job are another job's. All workers choose alike, because they read the same folder while none
trains. One that starts anew first moves what the attempts before have saved into a folder beside it.
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
    pattern, since = os.path.normpath(pattern), asked["since"] - SKEW_SECONDS
    epoch, paths = newest(pattern, since)
    if epoch is None:
        start_anew(pattern, since)
        return
    say("goes on after epoch %d, from %s" % (int(epoch), ", ".join(paths)))
    os.environ["MXJOB_RESUME_EPOCH"] = str(int(epoch))
    if asked["args"]:
        args = [with_options(word, words) or word for word in asked["args"]]
        values = ("{epoch}", epoch), ("{epoch+1}", str(int(epoch) + 1)), ("{checkpoint}", paths[0])
        for name, value in values:
            args = [word.replace(name, value) for word in args]
        os.execv(sys.executable, words + args)


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
    of_ranks = saved_by_ranks(pattern, since)
    for epoch in sorted(set(of_ranks[0]).intersection(*of_ranks[1:]), reverse=True):
        files = [of_rank[epoch] for of_rank in of_ranks]
        if all(is_whole(path) for _, path in files):
            return files[0][0], [path for _, path in files]
    return None, []


def saved_by_ranks(pattern, since):
    """Return the `epochs` of each rank that has files of its own: of rank 0 alone, where no other has any."""
    others = range(1, int(os.environ.get("DMLC_NUM_WORKER", "1"))) if "rank}" in pattern else ()
    # Rank 0's are looked at last, and moved first: of files that another worker moves, all never look like rank 0's.
    found = [epochs(with_rank(pattern, rank), since) for rank in others]
    are_named = "{-rank}" not in pattern or any(has_files(pattern, rank) for rank in others)
    return [epochs(with_rank(pattern, 0), since)] + (found if are_named else [])


def has_files(pattern, rank):
    """Return whether a rank has any file with its number, such as a symbol without parameters."""
    head = pattern.partition("{epoch}")[0]
    start = with_rank(head, rank) if "{-rank}" in head else with_rank(pattern, rank)
    return bool(glob.glob(as_glob(start) + "*"))


def start_anew(pattern, since):
    """Say why no checkpoint can be loaded, and keep what the script would now overwrite."""
    start = re.split(r"[{*]", pattern)[0].rstrip("-_.")
    found = kin(pattern, start, since)
    if not found:
        others = glob.glob(os.path.join(os.path.dirname(as_glob(start)), "*.params"))
        there = ", ".join(sorted(path for path in others if (modified(path) or 0) >= since)[:3])
        more = "; there is %s" % there if there else " (does the folder outlive a pod?)"
        say("starts anew: nothing of this job is at %s%s" % (pattern, more))
        return
    why, folder = why_incomplete(pattern, since, found), os.path.dirname(start)
    kept = os.path.join(folder, "before-attempt-%s" % os.environ.get("MXJOB_ATTEMPT"))
    for path in found:
        try:
            move(path, os.path.join(kept, os.path.relpath(path, folder or ".")))
        except (IOError, OSError) as error:
            say("can't start anew without losing %s, which can't be moved: %s" % (path, error))
            os._exit(1)
    say("starts anew: %s; what was saved is now in %s" % (why, kept))


def kin(pattern, start, since):
    """Return the files of this job that the pattern means or that begin as it does, those of rank 0 first."""
    found = [path for of_rank in saved_by_ranks(pattern, since) for _, path in of_rank.values()]
    if os.path.basename(start):
        found += [path for path in glob.glob(as_glob(start) + "*") if not path[len(start) :][:1].isalnum()]
    found = [path for path in found if os.path.isfile(path) and (modified(path) or 0) >= since]
    return sorted(set(found), key=found.index)


def why_incomplete(pattern, since, found):
    of_ranks = saved_by_ranks(pattern, since)
    all_epochs = set().union(*of_ranks)
    if not all_epochs:
        return "%s is there, but nothing at %s" % (found[0], pattern)
    newest_epoch = max(all_epochs)
    digits, there = next(each[newest_epoch] for each in of_ranks if newest_epoch in each)
    for rank, each in enumerate(of_ranks):
        if newest_epoch not in each:
            return "%s is there, but not %s" % (there, with_rank(pattern, rank).replace("{epoch}", digits))
        if not is_whole(each[newest_epoch][1]):
            return "%s breaks off" % each[newest_epoch][1]
    return "%s was being saved" % there


def move(path, target):
    """Move a file, unless another worker does."""
    try:
        os.makedirs(os.path.dirname(target))
    except OSError as error:
        if error.errno != errno.EEXIST:
            raise
    while os.path.exists(target):  # of an earlier job in this folder
        target += "~"
    try:
        os.rename(path, target)
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise


def with_rank(pattern, rank):
    return pattern.replace("{rank}", str(rank)).replace("{-rank}", "-%d" % rank if rank else "")


def epochs(pattern, since):
    """Return the files that match the pattern and are of this job, with the digits in their names, by epoch."""
    parts = pattern.split("{epoch}")
    regexes = [re.escape(part).replace(r"\*", "[^/]*") for part in parts]
    wanted = re.compile(regexes[0] + r"(\d+)" + r"\1".join(regexes[1:]) + r"\Z")
    found = []
    for match in map(wanted.match, glob.glob("*".join(map(as_glob, parts)))):
        written = modified(match.group(0)) if match else None
        if written is not None and written >= since:
            found.append((written, match))
    found.sort(key=lambda each: each[0])  # of several files of an epoch, the newest
    return dict((int(match.group(1)), (match.group(1), match.group(0))) for _, match in found)


def as_glob(text):
    return re.sub(r"([?[])", r"[\1]", text)


def modified(path):
    """Return when a file was written; None where another worker has just moved it."""
    try:
        return os.path.getmtime(path)
    except OSError:
        return None


def is_whole(path):
    """Return whether a file doesn't break off; of a format other than MXNet's nothing is known."""
    if not path.endswith(".params"):
        return True
    try:
        with open(path, "rb") as file:
            return read_list(file)
    except (IOError, OSError, struct.error, IndexError, OverflowError):  # it ends before its last field, or was moved
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
