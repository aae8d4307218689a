"""Notices a worker that stands still and says where; after MXJOB_STALL_TIMEOUT seconds, if set, ends it with 138.

A worker stands still while it and its children use less than 1 % of a CPU and it writes nothing: ps-lite waits so, for
ever, for a process that is gone or will never answer. A worker that waits inside MXNet exits a little later than
others. So the first failure, which counts, is the cause, wherever the cause is a worker.

Watched is a process that imports MXNet, and none of its descendants, until its script has ended. It may wait as long as
it takes for the gang to come together and for the other workers at the end: KVStore's `create` and `__del__`. Of the
first it says so after a minute, and where: who hasn't come is seen by comparing the workers.
"""

# mypy: ignore-errors
import os
import sys
import time

try:
    from _thread import get_ident, start_new_thread
except ImportError:  # Python 2
    from thread import get_ident, start_new_thread

STALLED = 138  # retried under restartPolicy ExitCode
NOTICED_AFTER = 300
GANG_NOTICED_AFTER = 60
SHORTEST_PERIOD, LONGEST_PERIOD = 0.2, 2
GRACE = 3
WATCHED = "MXJOB_STALL_WATCHED"
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


class Watch(object):
    """Watch over the process whose main thread makes it; `flush` writes out what the script has printed."""

    def __init__(self, flush):
        self.flush = flush
        self.main = get_ident()
        self.limit = float(os.environ.get("MXJOB_STALL_TIMEOUT") or "inf")
        self.is_over = False

    # The two methods of a finder on sys.meta_path, in Python 3 and 2: it finds nothing, and learns of each import.
    def find_spec(self, name, path=None, target=None):
        if name == "mxnet" and WATCHED not in os.environ:
            import traceback

            if "MXJOB_RESUME" in os.environ:
                import mxjob_resume

                mxjob_resume.say_not_resumed()
            os.environ[WATCHED] = str(os.getpid())
            self.traceback = traceback  # in Python 2 the thread could wait for the lock of this import
            start_new_thread(self.run, ())

    find_module = find_spec

    def stop(self):
        """Watch no more: the script has ended, and may wait for the others as long as they take."""
        self.is_over = True

    def run(self):
        notice = min(NOTICED_AFTER, self.limit)
        period = max(SHORTEST_PERIOD, min(LONGEST_PERIOD, notice / 20))
        idle, waited, (cpu, written) = 0, 0, used()
        while not self.is_over:
            time.sleep(period)
            # Periods are counted, and not the time: of a process that was stopped, none has passed.
            idle += period
            now_cpu, now_written = used()
            frame = sys._current_frames().get(self.main)
            waited = waited + period if waits_for_gang(frame) else 0
            if GANG_NOTICED_AFTER <= waited < GANG_NOTICED_AFTER + period and not self.is_over:
                self.say(waited, frame)
            if abs(now_cpu - cpu) > 0.02 + 0.01 * idle or now_written != written or not may_stall(frame):
                idle, cpu, written = 0, now_cpu, now_written
                continue
            if notice <= idle < min(notice + period, self.limit) and not self.is_over:
                self.say(idle, frame)
                cpu, written = used()
            if idle >= self.limit + (GRACE if is_of_mxnet(frame) else 0) and not self.is_over:
                start_new_thread(self.end, (frame,))
                time.sleep(GRACE)  # nobody may read what it writes
                os._exit(STALLED)

    def end(self, frame):
        self.flush()
        self.say(self.limit, frame)
        os._exit(STALLED)

    def say(self, seconds, frame):
        caller = frame
        stack = "".join(self.traceback.format_stack(frame))
        while is_of_library(caller) and caller.f_back is not None:
            caller = caller.f_back
        where = "%s:%d, in " % (caller.f_code.co_filename, caller.f_lineno)
        if waits_for_gang(frame):
            where += "MXNet's create: has every worker created a distributed KVStore?"
        elif is_of_mxnet(frame):
            where += "MXNet's %s: do all workers make as many batches?" % frame.f_code.co_name
        else:
            where += frame.f_code.co_name
        text = "%smxjob: stalled for %d s, without CPU or output, at %s\n" % (stack, seconds, where)
        os.write(2, text.encode("utf-8", "replace") if sys.version_info[0] > 2 else text)


def may_stall(frame):
    """Return whether a main thread in this frame, None at the interpreter's end, counts as standing still."""
    if frame is None or waits_for_gang(frame) or (is_of_mxnet(frame, "kvstore") and frame.f_code.co_name == "__del__"):
        return False
    while frame is not None and os.path.basename(frame.f_code.co_filename) != "pdb.py":
        frame = frame.f_back
    return frame is None


def waits_for_gang(frame):
    return frame is not None and is_of_mxnet(frame, "kvstore") and frame.f_code.co_name == "create"


def folder_of_mxnet():
    return os.path.dirname(getattr(sys.modules.get("mxnet"), "__file__", None) or "/no/mxnet/yet") + os.sep


def is_of_mxnet(frame, module=""):
    return frame.f_code.co_filename.startswith(folder_of_mxnet() + module)


def is_of_library(frame):
    path = frame.f_code.co_filename
    return is_of_mxnet(frame) or path.startswith((os.path.dirname(os.__file__), "<frozen")) or "-packages/" in path


def used():
    """Return the CPU seconds of this process and its descendants, and the bytes that it has written."""
    try:
        with open("/proc/self/io") as counters:
            written = dict(line.split(": ") for line in counters)["wchar"]
        return sum(os.times()[:4]) + sum(map(cpu_of, children("self"))), written
    except (OSError, IOError, KeyError, ValueError):
        return 0, object()  # unlike any other: where it can't be known, a worker never stands still


def children(process):
    for thread in os.listdir("/proc/%s/task" % process):
        with open("/proc/%s/task/%s/children" % (process, thread)) as found:
            for child in found.read().split():
                yield child
                for each in children(child):
                    yield each


def cpu_of(process):
    return sum(map(int, stat_of(process)[11:15])) / float(CLOCK_TICKS)  # with that of its children which have ended


def state_of(process):
    return stat_of(process)[0]


def stat_of(process):
    with open("/proc/%s/stat" % process) as stat:
        return stat.read().rpartition(")")[2].split()
