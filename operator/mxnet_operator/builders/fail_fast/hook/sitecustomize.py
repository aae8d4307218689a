"""Ends a failing MXNet worker at once, with its exit code: by itself it would wait in the KVStore's exit barrier for ever.
And lets a replica that is a container's first process end on SIGTERM, which it would ignore.
And frees KVStores that would outlive the interpreter: their threads abort a finished training with 134.
And runs a script that has mx.gpu() in its code without a GPU (MXJOB_GPU=cpu).
And carries a result that is longer than Kubernetes keeps in the log (MXJOB_RESULT_FILE says where the result is).
The files beside this one let an attempt go on from a checkpoint, notice a stall, end a training that diverges, and keep
a script that sets DMLC_* itself in its job.

Python runs it at start-up, because its folder comes first in PYTHONPATH. Python 2.7 to 3.13, CPython, any image: so
plain old syntax and no imports but the standard library's. MXJOB_FAILFAST=off turns it off.

After a failure the interpreter destroys the KVStore before any atexit function gets a say, so the failure must be
seen earlier: an uncaught exception in sys.excepthook, and an uncaught SystemExit when the interpreter, and not a
function of the script, reads its `code`.
"""
# mypy: ignore-errors
import os
import sys

CLEAN_UP_SECONDS = 9
LAST_RESORT_SECONDS = 10  # the clean-up blocks without letting go of the interpreter's lock
KEPT = 4096  # bytes of a termination message
LONGEST_RESULT = 256 * 1024  # as in mxnet_operator.readers.long_result, where this is read
RESULT_PART = 768
FAILURES = []
WATCHES = []


def run_as_child_of_pid_1():
    """Go on in a child, of which this process does what a PID 1 has to: pass signals on, wait, end as the child did.

    The kernel drops signals for which PID 1 has no handler, and a handler in Python waits for MXNet to return, which a
    blocked process never does. In a child SIGTERM has its usual effect, and a script's own handler too.
    """
    import signal
    child = os.fork()
    if child == 0:
        if sys.version_info[0] == 2:
            import imp
            for _ in "site", "sitecustomize":  # the imports under way, of which a fork makes Python 2 lose count
                imp.acquire_lock()
        return

    def pass_on(number, frame):
        try:
            os.kill(child, number)
        except OSError:  # it has just ended
            pass

    for name in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2"):
        signal.signal(getattr(signal, name), pass_on)
    while True:
        try:
            ended, status = os.wait()
        except OSError:  # Python 2 doesn't wait on after a signal
            continue
        if ended == child:
            os._exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))


def run_hidden_sitecustomize():
    """Run the sitecustomize that this file hides, if the image has one."""
    here = os.path.dirname(os.path.abspath(__file__))
    paths = [path for path in sys.path if os.path.abspath(path or ".") != here]
    this = sys.modules.get("sitecustomize")
    try:
        if sys.version_info[0] == 2:
            import imp
            try:
                found = imp.find_module("sitecustomize", paths)
            except ImportError:
                return
            imp.load_module("sitecustomize", *found)
            return
        from importlib.machinery import PathFinder
        from importlib.util import module_from_spec
        spec = PathFinder.find_spec("sitecustomize", paths)
        if spec is None or spec.loader is None:
            return
        sys.modules["sitecustomize"] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules["sitecustomize"])
    except Exception:  # as the site module treats a sitecustomize that fails: say so, and go on
        sys.modules["sitecustomize"] = this
        sys.excepthook(*sys.exc_info())


def flush():
    """Write out what the script has printed, as far as its files can."""
    for name in "stdout", "stderr", "__stdout__", "__stderr__":
        try:
            getattr(sys, name).flush()
        except BaseException:
            pass


def leave_on_failure():
    """From now on leave through os._exit wherever an uncaught failure would end this process."""
    import atexit
    import ctypes
    import gc
    import time
    try:
        import faulthandler
    except ImportError:  # Python 2
        faulthandler = None
    try:
        from _thread import start_new_thread
    except ImportError:
        from thread import start_new_thread
    me = os.getpid()
    codes = []

    def end():
        flush()
        os._exit(codes[0])

    def end_in_time():
        time.sleep(CLEAN_UP_SECONDS)
        try:
            faulthandler.dump_traceback(file=2)  # the descriptor: the script may have closed its files
        except BaseException:
            pass
        end()

    def leave(code):
        stop_watch()
        FAILURES.append(code)
        if "mxnet" not in sys.modules or os.getpid() != me:
            return  # without MXNet, or in a forked child, there is no barrier to hang in
        if not codes:  # else the clean-up below failed in its turn
            codes.append(code)
            for step in (
                lambda: start_new_thread(end_in_time, ()),
                lambda: faulthandler.dump_traceback_later(LAST_RESORT_SECONDS, exit=True, file=2),  # with 1
                atexit._run_exitfuncs,
            ):
                try:
                    step()
                except BaseException:
                    pass
        end()

    def code_of(kind):
        return 130 if issubclass(kind, KeyboardInterrupt) else 1

    print_exception = sys.excepthook

    def excepthook(kind, value, traceback):
        try:
            print_exception(kind, value, traceback)
        finally:
            leave(code_of(kind))

    def exception_of_a_replaced_excepthook():
        stop_watch()
        traceback = getattr(sys, "last_traceback", None)
        # The outermost frame of an interactive or library's own report has a caller; the interpreter's has none.
        if not codes and traceback is not None and traceback.tb_frame.f_back is None:
            leave(code_of(sys.last_type))
        if not codes:  # after a failure it would wait for the others, for ever
            free_kvstores()

    def free_kvstores():
        # A class of the script that is registered in MXNet keeps the script's globals, so nothing else would free them.
        kind = getattr(sys.modules.get("mxnet.kvstore"), "KVStore", None)
        for each in gc.get_objects() if kind is not None and os.getpid() == me else ():
            if issubclass(type(each), kind) and getattr(each, "handle", None):
                handle, each.handle = each.handle, None  # which MXNet frees without an effect
                sys.modules["mxnet.base"]._LIB.MXKVStoreFree(handle)

    class WatchedCode(object):
        """The attribute `code` as it was, but for who reads it when nobody has caught the exception."""

        def __init__(self, original):
            self.original = original

        def __get__(self, error, kind):
            value = self.original.__get__(error, kind)
            if error is not None and value is not None and sys._getframe().f_back is None:  # asked by no function
                if not isinstance(value, int):
                    say(value)
                    leave(1)
                elif value & 0xFF:
                    leave(value & 0xFF)
            return value

        def __set__(self, error, value):
            self.original.__set__(error, value)

    def say(value):
        if "mxnet" in sys.modules and os.getpid() == me:
            try:
                sys.stderr.write(str(value) + "\n")
            except BaseException:  # there is no such file any more, or it can't take these characters
                pass

    def python_exit(*status):
        # The one in C leaves no SystemExit object whose code could be read.
        if len(status) > 1:
            c_exit(*status)
        raise SystemExit(*(status[0] if status and isinstance(status[0], tuple) else status))

    c_exit = sys.exit
    python_exit.__doc__ = c_exit.__doc__
    attributes = gc.get_referents(SystemExit.__dict__)[0]
    attributes["code"] = WatchedCode(attributes["code"])
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(SystemExit))
    sys.exit = python_exit
    sys.excepthook = excepthook
    atexit.register(exception_of_a_replaced_excepthook)  # the first to be registered, so the last to run


def log_long_result_at_exit():
    """When the program succeeds: write a result that a termination message can't hold to the log, and leave its hash."""
    import atexit
    me = os.getpid()
    path = os.environ["MXJOB_RESULT_FILE"]
    # Not for the programs that this one starts, but for one that it becomes (execv), which has its process id.
    if os.environ.setdefault("MXJOB_RESULT_PID", str(me)) != str(me):
        return

    def write():
        if FAILURES or os.getpid() != me or not os.path.isfile(path) or os.path.getsize(path) <= KEPT:
            return
        from base64 import b64encode
        from hashlib import sha256
        with open(path, "rb") as result:
            text = result.read(LONGEST_RESULT + 1)
        digest = sha256(text).hexdigest()
        parts = [text[start:start + RESULT_PART] for start in range(0, len(text), RESULT_PART)]
        sys.stdout.flush()
        for number, part in enumerate(parts if len(text) <= LONGEST_RESULT else ()):
            line = "mxjob-result %s %d/%d %s\n" % (digest, number + 1, len(parts), b64encode(part).decode())
            os.write(1, ("" if number else "\n").encode() + line.encode())
        reference = '{"mxjobResult": {"bytes": %d, "sha256": "%s"}}' % (os.path.getsize(path), digest)
        with open(path, "wb") as message:
            message.write(reference.encode())

    atexit.register(write)  # before any other, so that it runs after all


def resume():
    import mxjob_resume
    mxjob_resume.resume()


def keep_place():
    from mxjob_place import Place
    sys.meta_path.insert(0, Place())


def watch_for_stalls():
    from mxjob_stall import Watch
    WATCHES.append(Watch(flush))
    sys.meta_path.insert(0, WATCHES[0])


def watch_for_divergence():
    import mxjob_divergence
    mxjob_divergence.watch(flush)


def stop_watch():
    for watch in WATCHES:
        watch.stop()


class OnCPU(object):
    """Finder on sys.meta_path that finds nothing, and makes mx.gpu(i) mean mx.cpu(i) once MXNet knows contexts."""

    def find_spec(self, name, path=None, target=None):
        kind = getattr(sys.modules.get("mxnet.context"), "Context", None)
        if kind is not None and name.startswith("mxnet.kvstore"):
            kind.devstr2type["gpu"] = kind.devstr2type["cpu"]

    find_module = find_spec


def attempt(step):
    try:
        step()
    except Exception as problem:  # the program matters more
        sys.stderr.write("the fail-fast hook can't be installed: %r\n" % (problem,))


ROLE = os.environ.get("DMLC_ROLE") if os.environ.get("MXJOB_FAILFAST") != "off" else None
if ROLE and os.getpid() == 1:
    attempt(run_as_child_of_pid_1)
if ROLE == "worker" and "MXJOB_RESUME" in os.environ:
    attempt(resume)
run_hidden_sitecustomize()
if os.environ.get("MXJOB_GPU") == "cpu":
    sys.meta_path.insert(0, OnCPU())
if ROLE:
    attempt(keep_place)
if ROLE == "worker":
    if "MXJOB_RESULT_FILE" in os.environ:
        attempt(log_long_result_at_exit)
    if "MXJOB_FAIL_ON_DIVERGENCE" in os.environ:
        attempt(watch_for_divergence)
    attempt(watch_for_stalls)
    attempt(leave_on_failure)
