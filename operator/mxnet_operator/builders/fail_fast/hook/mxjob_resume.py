"""Lets a new attempt go on from the newest complete checkpoint, though the script knows nothing of attempts.

MXJOB_RESUME is runPolicy.resume in JSON, present after the first attempt. The checkpoint's arguments are appended to
the command of the container's first Python process that runs a script and has every option that the path names.

An epoch is complete when each rank that the path names has its file, and each `.params` file can be loaded: a process
killed while it saves leaves half a file. All workers choose alike, because they read the same folder while none trains.
"""

# mypy: ignore-errors
import glob
import json
import os
import re
import subprocess
import sys

PLACEHOLDER = re.compile(r"\{(epoch|-?rank|--[\w-]+)\}")
LOAD = "import sys, mxnet\nfor path in sys.argv[1:]: mxnet.nd.load(path)"


def resume():
    """Become the same command with the arguments that load the newest complete checkpoint, if this is the script."""
    with open("/proc/self/cmdline", "rb") as command:
        words = [decoded(word) for word in command.read().split(b"\0")[:-1]]
    asked = json.loads(os.environ["MXJOB_RESUME"])
    pattern = with_options(asked["checkpoint"], words)
    if pattern is None or not runs_script(words):
        return  # one of its children may be the script
    del os.environ["MXJOB_RESUME"]
    attempt = os.environ.get("MXJOB_ATTEMPT")
    epoch, paths = newest(pattern)
    if epoch is None:
        say("attempt %s starts anew: nothing complete is at %s (does the folder outlive a pod?)" % (attempt, pattern))
        return
    say("attempt %s goes on after epoch %d, from %s" % (attempt, epoch, ", ".join(paths)))
    os.environ["MXJOB_RESUME_EPOCH"] = str(epoch)
    if asked["args"]:
        os.execv(sys.executable, words + [word.replace("{epoch}", str(epoch)) for word in asked["args"]])


def decoded(word):
    return os.fsdecode(word) if hasattr(os, "fsdecode") else word


def runs_script(words):
    """Return whether a Python's command line runs a file or a module, but for pip."""
    for previous, word in zip(words, words[1:]):
        if previous == "-m":
            return word != "pip"
        if word == "-c":
            return False
        if not word.startswith("-") and previous not in ("-W", "-X"):
            return word.endswith(".py")
    return False


def with_options(pattern, words):
    """Return the pattern with the values of the script's options; None where one isn't there."""
    for name in PLACEHOLDER.findall(pattern):
        if name.startswith("--"):
            values = [word for previous, word in zip(words, words[1:]) if previous == name]
            values += [word[len(name) + 1 :] for word in words if word.startswith(name + "=")]
            if not values:
                return None
            pattern = pattern.replace("{%s}" % name, values[-1])
    return pattern


def newest(pattern):
    """Return the newest complete epoch and its files, one of each rank; None and nothing where there is none."""
    has_ranks = "rank}" in pattern
    ranks = range(int(os.environ.get("DMLC_NUM_WORKER", 1))) if has_ranks else [0]
    of_ranks = [epochs(with_rank(pattern, rank)) for rank in ranks]
    for epoch in sorted(set(of_ranks[0]).intersection(*of_ranks[1:]), reverse=True):
        paths = [files[epoch] for files in of_ranks]
        if can_be_loaded([path for path in paths if path.endswith(".params")]):
            return epoch, paths
    return None, []


def with_rank(pattern, rank):
    return pattern.replace("{rank}", str(rank)).replace("{-rank}", "-%d" % rank if rank else "")


def epochs(pattern):
    """Return the files that match the pattern, by epoch."""
    parts = pattern.split("{epoch}")
    wanted = re.compile(re.escape(parts[0]) + r"(\d+)" + r"\1".join(map(re.escape, parts[1:])) + r"\Z")
    found = map(wanted.match, glob.glob("*".join(re.sub(r"([*?[])", r"[\1]", part) for part in parts)))
    return dict((int(match.group(1)), match.group(0)) for match in found if match)


def can_be_loaded(paths):
    """Return whether MXNet loads these files: in a process of its own, which is no worker."""
    env = dict(each for each in os.environ.items() if not each[0].startswith(("DMLC_", "MXJOB_")))
    with open(os.devnull, "r+") as nothing:
        command = [sys.executable, "-c", LOAD] + paths
        return not paths or subprocess.call(command, env=env, stdin=nothing, stdout=nothing, stderr=nothing) == 0


def say(text):
    sys.stderr.write("mxjob: %s\n" % text)
    sys.stderr.flush()
