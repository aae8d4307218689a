"""What pods do to their containers, and what is seen of it: one table for the local kubelet and for a real one.

The scripts are for any POSIX shell: busybox's in the real containers, this machine's in the local ones. `$$` is one
dollar to a kubelet.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SETTINGS = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "settings"},
    "data": {"rate": "0.1"},
    "binaryData": {"raw": "/wD+"},
}
KEYS = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "keys"},
    "stringData": {"id": "me", "password": "p$(rate)w"},
}
OBJECTS = (SETTINGS, KEYS)
"""What the pods refer to; it is made before them."""

Seen = dict[str, Any]


@dataclass(frozen=True)
class Behaviour:
    """A pod of one container `main` that runs a script, and what is seen of it at its end, or while it waits."""

    script: str
    seen: Mapping[str, Any]
    container: Mapping[str, Any] = field(default_factory=dict)
    spec: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def waits(self) -> bool:
        """Whether the pod never ends, since its container waits."""
        return "phase" not in self.seen

    def pod(self, name: str, image: str) -> dict[str, Any]:
        """The manifest, with containers of this image where they name no other."""
        main = {"name": "main", "command": ["sh", "-c", self.script], **self.container}
        spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [main], **self.spec}
        for kind in ("initContainers", "containers"):
            if kind in spec:
                spec[kind] = [{"image": image, **each} for each in spec[kind]]
        metadata = {"name": name, "labels": {"behaviour": "yes", **self.labels}}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _ended(code: int, log: str = "", message: str = "", **more: Any) -> Seen:
    """Of a pod of one container that ran once."""
    words = f"{'Completed' if code == 0 else 'Error'} {code}" + (f": {message}" if message else "")
    return {"phase": "Failed" if code else "Succeeded", "main": words, "log": log, **more}


def _mount(*volumes: Mapping[str, Any]) -> dict[str, Any]:
    """A container and a pod with these volumes, each at a folder of its name in the root."""
    mounts = [{"name": each["name"], "mountPath": f"/{each['name']}"} for each in volumes]
    return {"container": {"volumeMounts": mounts}, "spec": {"volumes": [*volumes]}}


def _variables(**sources: Mapping[str, Any]) -> dict[str, Any]:
    return {"container": {"env": [{"name": name, "valueFrom": source} for name, source in sources.items()]}}


_SHARED = {"name": "shared", "emptyDir": {}}
_IN_SHARED = [{"name": "shared", "mountPath": "/shared"}]

BEHAVIOURS: Mapping[str, Behaviour] = {
    # Of two streams a runtime with a pipe for each, as containerd, may read the second one first.
    "succeeds": Behaviour("echo out; echo out >&2", _ended(0, "out\nout\n")),
    "fails": Behaviour("echo out; exit 3", _ended(3, "out\n")),
    "fails-with-255": Behaviour("exit 255", _ended(255)),
    "is-killed": Behaviour("sh -c 'kill -9 $$$$'; exit $?", _ended(137)),
    "aborts": Behaviour("sh -c 'kill -6 $$$$'; exit $?", _ended(134)),
    "has-no-such-program": Behaviour(
        "", {"phase": "Failed", "main": "StartError 128", "log": None}, container={"command": ["/no/such/program"]}
    ),
    "leaves-a-message": Behaviour("echo lost >/dev/termination-log; exit 4", _ended(4, message="lost")),
    "leaves-a-message-elsewhere": Behaviour(
        "echo kept >/tmp/end", _ended(0, message="kept"), container={"terminationMessagePath": "/tmp/end"}
    ),
    "leaves-its-last-lines": Behaviour(
        "i=0; while [ $i -lt 100 ]; do echo $i; i=$((i+1)); done; exit 5",
        _ended(5, "".join(f"{n}\n" for n in range(100)), "\n".join(map(str, range(20, 100)))),
        container={"terminationMessagePolicy": "FallbackToLogsOnError"},
    ),
    "leaves-no-lines-where-it-succeeds": Behaviour(
        "echo fine",
        _ended(0, "fine\n"),
        container={"terminationMessagePolicy": "FallbackToLogsOnError"},
    ),
    "leaves-too-long-a-message": Behaviour(
        "i=0; while [ $i -lt 5000 ]; do printf x; i=$((i+1)); done >/dev/termination-log", _ended(0, message="x" * 4096)
    ),
    "is-prepared-by-init-containers": Behaviour(
        "cat /shared/steps",
        _ended(0, "one\ntwo\n", one="Completed 0", two="Completed 0"),
        container={"volumeMounts": _IN_SHARED},
        spec={
            "volumes": [_SHARED],
            "initContainers": [
                {"name": name, "command": ["sh", "-c", f"echo {name} >>/shared/steps"], "volumeMounts": _IN_SHARED}
                for name in ("one", "two")
            ],
        },
    ),
    "is-not-prepared": Behaviour(
        "true",
        {"phase": "Failed", "first": "Error 6", "main": "waiting PodInitializing", "log": None},
        spec={"initContainers": [{"name": "first", "command": ["sh", "-c", "exit 6"]}]},
    ),
    "fails-beside-one-that-succeeds": Behaviour(
        "exit 7",
        {"phase": "Failed", "main": "Error 7", "beside": "Completed 0", "log": ""},
        spec={
            "containers": [
                {"name": "main", "command": ["sh", "-c", "exit 7"]},
                {"name": "beside", "command": ["true"]},
            ]
        },
    ),
    "expands-variables": Behaviour(
        "",
        _ended(0, "a-b $(A) $(NONE) a-b-c\n"),
        container={
            "command": ["echo", "$(B)", "$$(A)", "$(NONE)"],
            "args": ["$(C)"],
            "env": [
                {"name": "A", "value": "a"},
                {"name": "B", "value": "$(A)-b"},
                {"name": "C", "value": "$(B)-c"},
            ],
        },
    ),
    "extends-its-variables": Behaviour(
        "",
        _ended(0, "0.1:b 1 2 $(cat /etc/$(A))\n"),
        container={
            "command": ["echo", "$(rate)", "$(B)", "$(A)", "$(cat /etc/$(A))"],
            "envFrom": [{"configMapRef": {"name": "settings"}}],
            "env": [
                {"name": "A", "value": "1"},
                {"name": "B", "value": "$(A)"},
                {"name": "A", "value": "2"},
                {"name": "rate", "value": "$(rate):b"},
            ],
        },
    ),
    "knows-itself": Behaviour(
        "echo $NAME $HOSTNAME $LABEL",
        _ended(0, "knows-itself knows-itself yes\n"),
        container={
            "env": [
                {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "LABEL", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['behaviour']"}}},
            ],
        },
    ),
    "has-variables-of-objects": Behaviour(
        "echo $RATE $ID $PASSWORD ${NONE-unset}",
        _ended(0, "0.1 me p$(rate)w unset\n"),
        **_variables(
            RATE={"configMapKeyRef": {"name": "settings", "key": "rate"}},
            ID={"secretKeyRef": {"name": "keys", "key": "id"}},
            PASSWORD={"secretKeyRef": {"name": "keys", "key": "password"}},
            NONE={"secretKeyRef": {"name": "keys", "key": "none", "optional": True}},
        ),
    ),
    "has-all-variables-of-objects": Behaviour(
        "echo $S_rate $id; env | grep -c '^S_raw' || true",
        _ended(0, "0.1 me\n0\n"),
        container={
            "envFrom": [
                {"configMapRef": {"name": "settings"}, "prefix": "S_"},
                {"secretRef": {"name": "keys"}},
                {"secretRef": {"name": "none", "optional": True}},
            ]
        },
    ),
    "lacks-a-config-map": Behaviour(
        "true",
        {"main": 'waiting CreateContainerConfigError: configmap "none" not found'},
        **_variables(A={"configMapKeyRef": {"name": "none", "key": "a"}}),
    ),
    "lacks-a-secret": Behaviour(
        "true",
        {"main": 'waiting CreateContainerConfigError: secret "none" not found'},
        container={"envFrom": [{"secretRef": {"name": "none"}}]},
    ),
    "lacks-a-key": Behaviour(
        "true",
        {"main": "waiting CreateContainerConfigError: couldn't find key none in Secret NAMESPACE/keys"},
        **_variables(A={"secretKeyRef": {"name": "keys", "key": "none"}}),
    ),
    "has-files-of-objects": Behaviour(
        "cat /conf/rate; od -An -tx1 /conf/raw | tr -d ' '; cat /keys/me; ls /keys;"
        " stat -L -c %a /keys/me /conf/rate /all/id",
        _ended(0, "0.1ff00fe\nmeme\n400\n644\n440\n"),
        **_mount(
            {"name": "conf", "configMap": {"name": "settings"}},
            {"name": "all", "secret": {"secretName": "keys", "defaultMode": 0o440}},
            {"name": "keys", "secret": {"secretName": "keys", "items": [{"key": "id", "path": "me", "mode": 0o400}]}},
        ),
    ),
    "works-in-a-folder-of-a-volume-that-is-made-for-it": Behaviour(
        "echo x >/deep/here; cat /shared/run/1/here; cat /rate; echo; ls /nothing",
        _ended(0, "x\n0.1\n"),
        container={
            "volumeMounts": [
                *_IN_SHARED,
                {"name": "shared", "mountPath": "/deep", "subPath": "run/1"},
                {"name": "conf", "mountPath": "/rate", "subPath": "rate"},
                {"name": "nothing", "mountPath": "/nothing"},
            ]
        },
        spec={"volumes": [_SHARED, {"name": "conf", "configMap": {"name": "settings"}}, {"name": "nothing"}]},
    ),
    "works-in-the-root": Behaviour("true", _ended(0), container={"workingDir": "/"}),
    "asks-for-room-on-the-disk": Behaviour(
        "true", _ended(0), container={"resources": {"requests": {"ephemeral-storage": "1Mi"}}}
    ),
    "works-in-a-folder": Behaviour(
        "echo x >here; cat /shared/here",
        _ended(0, "x\n"),
        container={"workingDir": "/shared", "volumeMounts": _IN_SHARED},
        spec={"volumes": [_SHARED]},
    ),
}


def differences(found: Mapping[str, Seen], namespace: str) -> dict[str, tuple[Any, Any]]:
    """What was seen in a namespace, and what the table says, where it is something else."""
    compared = {
        f"{name}: {key}": (found[name].get(key), _in(namespace, each.seen.get(key)))
        for name, each in BEHAVIOURS.items()
        for key in {**each.seen, **found[name]}
    }
    return {key: (one, other) for key, (one, other) in compared.items() if one != other}


def _in(namespace: str, value: Any) -> Any:
    return value.replace("NAMESPACE", namespace) if isinstance(value, str) else value


def is_over(pod: Mapping[str, Any]) -> bool:
    """Whether nothing more is to be seen of the pod."""
    if not BEHAVIOURS[pod["metadata"]["name"]].waits:
        return pod["status"]["phase"] in {"Succeeded", "Failed"}
    states = (each["state"].get("waiting") or {} for each in pod["status"].get("containerStatuses") or ())
    return any(each.get("reason") not in (None, "ContainerCreating") and not _syncs(each) for each in states)


def _syncs(waiting: Mapping[str, Any]) -> bool:
    """Whether a kubelet that is slow to read the ConfigMaps and Secrets says so, before it says what it found."""
    return "cache: timed out waiting" in waiting.get("message", "")


def seen(pod: Mapping[str, Any], log: str) -> Seen:
    """What is seen of a pod, by the words of the table."""
    behaviour, status = BEHAVIOURS[pod["metadata"]["name"]], pod["status"]
    found: Seen = {}
    for each in (*(status.get("initContainerStatuses") or ()), *status["containerStatuses"]):
        (kind, state), *_ = each["state"].items()
        words = (
            f"{state['reason']} {state['exitCode']}" if kind == "terminated" else f"{kind} {state.get('reason', '')}"
        )
        message = (state.get("message") or "").rstrip("\n")
        # of what a runtime says of a program or an image that it has not, the words are its own
        if message and not words.startswith(("StartError", "waiting ErrImage")):
            words += f": {message}"
        found[each["name"]] = words
        if each["restartCount"]:
            found["restarts"] = found.get("restarts", 0) + each["restartCount"]
    if behaviour.waits:
        return found
    found["phase"] = status["phase"]
    if status.get("reason"):
        found["reason"] = status["reason"]
    return {**found, "log": None if behaviour.seen["log"] is None else log}
