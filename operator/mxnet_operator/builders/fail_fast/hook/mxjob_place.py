"""Keeps a process that sets DMLC_* itself, as tutorials for two terminals do, in the place that its pod has in the job.

With a role or an address of its own, it would wait for processes that never come. So the pod's values are put back when
MXNet reads them: at its import, and when a KVStore is created. A script which has started processes by then may have
started a scheduler and servers of its own. Its values stay, and so do those of such processes.
"""
# mypy: ignore-errors
import os
import sys

from mxjob_stall import children, state_of


class Place(object):
    """Finder on sys.meta_path that finds nothing, and learns of each import."""

    def __init__(self):
        self.process = os.getpid()
        self.given = dict((name, value) for name, value in os.environ.items() if name.startswith("DMLC_"))
        self.lines = {}
        self.is_watched = False
        note_changes(self)

    def find_spec(self, name, path=None, target=None):
        if name == "mxnet":
            self.put_back()
        elif name.startswith("mxnet.kvstore") and "mxnet.base" in sys.modules and not self.is_watched:
            self.is_watched = True
            try:
                self.watch(sys.modules["mxnet.base"]._LIB)
            except Exception:  # not MXNet's library
                pass

    find_module = find_spec

    def watch(self, library):
        """Put back whenever MXNet looks up the function that creates a KVStore. A function around it would be a frame."""
        place, kind, create = self, library.__class__, library.MXKVStoreCreate

        class Library(kind):
            @property
            def MXKVStoreCreate(self):
                place.put_back()
                return create

        library.__class__ = Library

    def put_back(self):
        changed = [name for name in sorted(self.given) if os.environ.get(name) != self.given[name]]
        if not changed or os.getpid() != self.process:
            return
        told = ", ".join(self.told(name) for name in changed)
        if has_children():
            say("%s. They stay, since the script has started processes: what it joins is not this job" % told)
            self.given = {}
            return
        for name in changed:
            os.environ[name] = self.given[name]
        say("%s. The pod's values are used: delete what sets others" % told)

    def told(self, name):
        found = os.environ.get(name)
        what = "deletes %s" % name if found is None else "sets %s=%s" % (name, found)
        return "%s %s (of this pod: %s)" % (self.lines.get(name, "the script"), what, self.given[name] or "empty")


def has_children():
    try:
        return any(state_of(child) != "Z" for child in children("self"))
    except (IOError, OSError):  # one has just ended, or the kernel doesn't tell
        return False


def note_changes(place):
    """Remember which line of the script sets or deletes a variable of the pod."""
    kind = os.environ.__class__

    def note(name):
        if name in place.given:
            caller = sys._getframe(2)
            while caller.f_back is not None and caller.f_code.co_filename.startswith((os.path.dirname(os.__file__), "<frozen")):
                caller = caller.f_back
            place.lines[name] = "%s:%d" % (os.path.basename(caller.f_code.co_filename), caller.f_lineno)

    class Environment(kind):
        def __setitem__(self, name, value):
            note(name)
            kind.__setitem__(self, name, value)

        def __delitem__(self, name):
            note(name)
            kind.__delitem__(self, name)

    os.environ.__class__ = Environment


def say(text):
    sys.stderr.write("mxjob: %s\n" % text)
    sys.stderr.flush()
