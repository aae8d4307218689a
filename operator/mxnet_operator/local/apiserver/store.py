"""Semantics of the Kubernetes API over the storage: create, read, update, patch, delete, bind; no HTTP, no waiting.

Time and randomness come from outside, so that a simulation can repeat itself. Objects returned are the stored ones:
read them, never change them.
"""

import dataclasses
import random
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from mxnet_operator.api.structural import FieldError, clone
from mxnet_operator.api.structural import invalid as invalid_field
from mxnet_operator.api.validation import validate_update
from mxnet_operator.local.apiserver import resources as builtin
from mxnet_operator.local.apiserver import validation
from mxnet_operator.local.apiserver.defaults import fill_in, initial_status
from mxnet_operator.local.apiserver.json_values import Object, at
from mxnet_operator.local.apiserver.patch import patcher
from mxnet_operator.local.apiserver.resources import Catalog, Resource
from mxnet_operator.local.apiserver.selectors import Selector, everything
from mxnet_operator.local.apiserver.statuses import (
    StatusError,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    invalid_patch,
    not_found,
)
from mxnet_operator.local.apiserver.storage import Storage, name_of
from mxnet_operator.local.apiserver.validation import DecodeError
from mxnet_operator.readers.pods import ENDED

_LABEL_LENGTH = 63
_SUFFIX_LENGTH = 5
_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_OTHER_NAMESPACE = "the namespace of the provided object does not match the namespace sent on the request"
_BINDINGS = dataclasses.replace(builtin.PODS, plural="pods/binding")
_EVENT_LIFE = timedelta(hours=1)
_FIRST_NAMESPACES = ("default", "kube-system", "kube-public")
PROTECTION = "kubernetes.io/pvc-protection"
"""Finalizer of a claim, which goes once no pod uses the claim."""
FOREGROUND = "foregroundDeletion"
_PARTS = ("spec", "status")
_FROM_SERVER = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")


@dataclass(frozen=True)
class WriteOptions:
    """Options of a write: what part of the object it is for, and what is done about fields that don't exist."""

    subresource: str = ""
    """`status`, or the whole object but its status."""
    dry_run: bool = False
    field_validation: str = "Ignore"
    warnings: list[str] = dataclasses.field(default_factory=list)
    """Gets a sentence for each unknown field that is dropped, under the validation Warn."""

    def report(self, unknown: list[str]) -> None:
        """Report the paths of unknown fields.

        Raises:
            DecodeError: there are some, under the validation Strict.
        """
        sentences = [f'unknown field "{path}"' for path in unknown]
        if sentences and self.field_validation == "Strict":
            raise DecodeError(f"strict decoding error: {', '.join(sentences)}")
        if self.field_validation == "Warn":
            self.warnings.extend(sentences)


@dataclass(frozen=True)
class DeleteOptions:
    """Options of a deletion: `grace` in seconds (None: the object's own), propagation, and preconditions."""

    grace: int | None = None
    propagation: str = ""
    uid: str | None = None
    resource_version: str | None = None
    dry_run: bool = False


_WRITE = WriteOptions()
_DELETE = DeleteOptions()


def timestamp(moment: datetime) -> str:
    """Format a time as Kubernetes does: UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Store:
    """Store of all objects of the cluster.

    Args:
        history: How many changes of each resource a watch can go back.
        first_revision: Where resourceVersions start; by default in milliseconds of the clock, so that one of an
            earlier life of the cluster is too old in this one, not in its future.
    """

    def __init__(
        self,
        crds: Iterable[Mapping[str, Any]] = (),
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        rng: random.Random | None = None,
        history: int = 1000,
        first_revision: int | None = None,
    ) -> None:
        self.catalog = Catalog(crds)
        self.clock = clock
        self._rng = rng or random.SystemRandom()
        if first_revision is None:
            first_revision = int(clock().timestamp() * 1000)
        self.storage = Storage(self.catalog.resources, first_revision, history)
        for name in _FIRST_NAMESPACES:
            self.create(builtin.NAMESPACES, "", {"metadata": {"name": name}})
        for crd in self.catalog.definitions:
            self.create(builtin.CUSTOM_RESOURCE_DEFINITIONS, "", _established(crd, timestamp(clock())))

    def get(self, resource: Resource, namespace: str, name: str) -> Object:
        """Read an object.

        Raises:
            StatusError: 404.
        """
        found = self.storage.find(resource.key, (namespace, name))
        if found is None:
            raise not_found(resource, name)
        return resource.present(found)

    def select(self, resource: Resource, namespace: str = "", selector: Selector = everything) -> list[Object]:
        """List the objects in a namespace ("" is all of them) that match the selector, by namespace and name."""
        objects = sorted(self.storage.objects(resource.key, namespace), key=name_of)
        return [obj for each in objects if selector(obj := resource.present(each))]

    def create(self, resource: Resource, namespace: str, body: Any, options: WriteOptions = _WRITE) -> Object:
        """Store a new object, named by its metadata or from its generateName.

        Raises:
            StatusError: 400, 403, 404 (its namespace), 409 or 422.
        """
        obj = _decoded(resource, body, options)
        metadata = obj["metadata"]
        if metadata.pop("resourceVersion", ""):
            raise StatusError(500, "", "resourceVersion should not be set on objects to be created")
        if not metadata.get("name") and metadata.get("generateName"):
            suffix = "".join(self._rng.choice(_SUFFIX_ALPHABET) for _ in range(_SUFFIX_LENGTH))
            metadata["name"] = metadata["generateName"][: _LABEL_LENGTH - _SUFFIX_LENGTH] + suffix
        self._place(resource, namespace, metadata)
        for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink", "managedFields"):
            metadata.pop(field, None)
        metadata["uid"] = str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
        metadata["creationTimestamp"] = timestamp(self.clock())
        if resource.custom:
            metadata["generation"] = 1
            if resource.has_status:
                obj.pop("status", None)
        fill_in(resource, obj)
        if resource is builtin.PERSISTENT_VOLUME_CLAIMS:
            metadata["finalizers"] = list(dict.fromkeys([*metadata.get("finalizers", []), PROTECTION]))
        if (status := initial_status(resource, obj)) is not None:
            obj["status"] = status
        self._refuse(resource, metadata.get("name", ""), validation.errors(resource, obj))
        if self.storage.find(resource.key, name_of(obj)) is not None:
            raise already_exists(resource, metadata["name"])
        if options.dry_run:
            return obj
        if resource is builtin.EVENTS:
            self._expire_events()
        return resource.present(self.storage.put(resource.key, obj))

    def update(
        self, resource: Resource, namespace: str, name: str, body: Any, options: WriteOptions = _WRITE
    ) -> Object:
        """Replace an object, or its status.

        Raises:
            StatusError: 400, 404, 409 (it changed since it was read) or 422.
        """
        old = self.get(resource, namespace, name)
        new = _decoded(resource, body, options)
        if new["metadata"].get("uid") not in (None, "", old["metadata"]["uid"]):
            seen = f"UID in precondition: {new['metadata']['uid']}, UID in object meta: {old['metadata']['uid']}"
            raise conflict(resource, name, f"Precondition failed: {seen}")
        if resource.custom and not new["metadata"].get("resourceVersion"):
            detail = "Invalid value: 0: must be specified for an update"
            raise invalid(resource, name, [FieldError("metadata.resourceVersion", "FieldValueInvalid", detail)])
        return self._replace(resource, old, new, options)

    def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        media_type: str,
        patch: Any,
        *,
        options: WriteOptions = _WRITE,
    ) -> Object:
        """Change an object, or its status, by a patch of that media type.

        Raises:
            StatusError: 400, 404, 409 (the patch names another resourceVersion), 415 or 422.
        """
        apply = patcher(resource, media_type)
        old = self.get(resource, namespace, name)
        patched = apply(old, patch)
        try:
            # What the patch leaves as it is stored was decoded when it was stored, and is shared: it never changes.
            kept = {part: value for part, value in patched.items() if part in _PARTS and old.get(part) is value}
            changed = {part: value for part, value in patched.items() if part not in kept}
            new, unknown = validation.decode(resource, clone(changed))
            new |= kept
            options.report(unknown)
        except DecodeError as error:
            raise invalid_patch(patched, str(error)) from error
        if new["metadata"].get("uid") not in (None, "", old["metadata"]["uid"]):
            raise invalid(resource, name, [invalid_field("metadata.uid", new["metadata"]["uid"], "field is immutable")])
        return self._replace(resource, old, new, options)

    def bind(self, namespace: str, name: str, body: Any) -> None:
        """Assign a pod to the node named by a Binding's target.

        Raises:
            StatusError: 400, 404, or 409 where the pod has a node or is being deleted.
        """
        pods = builtin.PODS
        if at(body, "metadata", "name") != name:
            raise bad_request("name in URL does not match name in Binding object")
        pod = self.get(pods, namespace, name)
        node = at(body, "target", "name")
        if not isinstance(node, str):
            raise bad_request("target.name: Required value")
        if wanted := at(body, "metadata", "uid"):
            self._check(pods, pod, wanted, None)
        if bound := at(pod, "spec", "nodeName"):
            raise conflict(_BINDINGS, name, f'pod {name} is already assigned to node "{bound}"')
        if at(pod, "metadata", "deletionTimestamp"):
            raise conflict(_BINDINGS, name, f"pod {name} is being deleted, cannot be assigned to a host")
        condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": timestamp(self.clock())}
        conditions = [each for each in at(pod, "status", "conditions", default=[]) if each["type"] != "PodScheduled"]
        status = pod["status"] | {"conditions": [*conditions, condition]}
        self.storage.put(pods.key, pod | {"spec": pod["spec"] | {"nodeName": node}, "status": status})

    def delete(
        self, resource: Resource, namespace: str, name: str, options: DeleteOptions = _DELETE
    ) -> tuple[Object, bool]:
        """Delete an object, or mark it as being deleted where something has to be done first.

        Returns:
            Its last or latest state, and whether it is gone.

        Raises:
            StatusError: 403, 404, or 409 where the options' uid or resourceVersion isn't the object's.
        """
        old = self.get(resource, namespace, name)
        self._check(resource, old, options.uid, options.resource_version)
        if resource is builtin.NAMESPACES:
            return self._terminate_namespace(old, options.dry_run), False
        finalizers = at(old, "metadata", "finalizers", default=[])
        if options.propagation:
            finalizers = [each for each in finalizers if each != FOREGROUND]
            finalizers += [FOREGROUND] if options.propagation == "Foreground" else []
        grace = _grace(old, options.grace) if resource is builtin.PODS else 0
        gone = not finalizers and not grace
        if options.dry_run:
            return old, gone
        if gone and resource is not builtin.PODS:
            return resource.present(self.storage.remove(resource.key, old)), True
        metadata = old["metadata"] | {"finalizers": finalizers, "deletionGracePeriodSeconds": grace}
        if not finalizers:
            del metadata["finalizers"]
        if "deletionTimestamp" not in metadata or grace != old["metadata"].get("deletionGracePeriodSeconds"):
            metadata["deletionTimestamp"] = timestamp(self.clock() + timedelta(seconds=grace))
        if "generation" in metadata and "deletionTimestamp" not in old["metadata"]:
            metadata["generation"] += 1
        if metadata != old["metadata"]:
            old = resource.present(self.storage.put(resource.key, old | {"metadata": metadata}))
        if gone:  # a pod is marked before it goes, as all that are deleted gracefully
            return resource.present(self.storage.remove(resource.key, old)), True
        return old, False

    def _place(self, resource: Resource, namespace: str, metadata: Object) -> None:
        if not resource.namespaced:
            metadata.pop("namespace", None)
            return
        if metadata.setdefault("namespace", namespace) != namespace:
            raise bad_request(_OTHER_NAMESPACE)
        found = self.get(builtin.NAMESPACES, "", namespace)
        if at(found, "metadata", "deletionTimestamp"):
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            raise forbidden(resource, metadata.get("name", ""), why)

    def _replace(self, resource: Resource, old: Object, new: Object, options: WriteOptions) -> Object:
        name = old["metadata"]["name"]
        metadata = new["metadata"]
        if metadata.setdefault("name", name) != name:
            raise bad_request(
                f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})"
            )
        if metadata.setdefault("namespace", old["metadata"].get("namespace")) != old["metadata"].get("namespace"):
            raise bad_request(_OTHER_NAMESPACE)
        if not resource.namespaced:
            metadata.pop("namespace", None)
        if metadata.get("resourceVersion") not in (None, "", old["metadata"]["resourceVersion"]):
            raise conflict(resource, name)
        new = _parts_written(resource, old, new, options.subresource)
        metadata = {key: value for key, value in new["metadata"].items() if key not in _FROM_SERVER}
        metadata |= {key: old["metadata"][key] for key in (*_FROM_SERVER, "resourceVersion") if key in old["metadata"]}
        metadata.pop("managedFields", None)
        new["metadata"] = {key: value for key, value in metadata.items() if value not in ([], {})}
        if not options.subresource:
            fill_in(resource, new)
        if new == old:
            return old
        if "generation" in metadata and _content(resource, new) != _content(resource, old):
            new["metadata"]["generation"] += 1
        mistakes = [*validation.change_errors(resource, old, new), *validation.errors(resource, new, old)]
        if resource.key in validation.HAVE_RULES and not mistakes:
            mistakes = validate_update(old, new)
        self._refuse(resource, name, mistakes)
        if options.dry_run:
            return new
        key, metadata = resource.key, new["metadata"]
        unfinished = metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds")
        if "deletionTimestamp" in metadata and not unfinished and resource is not builtin.NAMESPACES:
            return resource.present(self.storage.remove(key, new))
        return resource.present(self.storage.put(key, new))

    def _terminate_namespace(self, old: Object, dry_run: bool) -> Object:
        name = old["metadata"]["name"]
        if name in _FIRST_NAMESPACES:
            raise forbidden(builtin.NAMESPACES, name, "this namespace may not be deleted")
        if dry_run or "deletionTimestamp" in old["metadata"]:
            return old
        metadata = old["metadata"] | {"deletionTimestamp": timestamp(self.clock())}
        terminating = old | {"metadata": metadata, "status": {"phase": "Terminating"}}
        return self.storage.put(builtin.NAMESPACES.key, terminating)

    def _expire_events(self) -> None:
        limit = timestamp(self.clock() - _EVENT_LIFE)
        while (event := self.storage.oldest(builtin.EVENTS.key)) and event["metadata"]["creationTimestamp"] < limit:
            self.storage.remove(builtin.EVENTS.key, event)

    @staticmethod
    def _refuse(resource: Resource, name: str, mistakes: Iterable[FieldError]) -> None:
        if found := list(mistakes):
            raise invalid(resource, name, found)

    @staticmethod
    def _check(resource: Resource, obj: Object, uid: str | None, resource_version: str | None) -> None:
        metadata = obj["metadata"]
        for what, wanted, actual in (
            ("UID", uid, metadata["uid"]),
            ("ResourceVersion", resource_version, metadata["resourceVersion"]),
        ):
            if wanted is not None and wanted != actual:
                why = (
                    f"the {what} in the precondition ({wanted}) does not match the {what} in record ({actual}). "
                    "The object might have been deleted and then recreated"
                )
                raise conflict(resource, metadata["name"], why, kind=True)


def _decoded(resource: Resource, body: Any, options: WriteOptions) -> Object:
    try:
        obj, unknown = validation.decode(resource, clone(body))
        options.report(unknown)
    except DecodeError as error:
        kind = resource.kind
        raise bad_request(f'{kind} in version "{resource.version}" cannot be handled as a {kind}: {error}') from error
    return obj


def _parts_written(resource: Resource, old: Object, new: Object, subresource: str) -> Object:
    """Build the object that a write stores: a status write changes only the status, other writes all but the status."""
    if subresource == "status":
        written = old | {"status": new["status"]} if "status" in new else {k: old[k] for k in old if k != "status"}
        if not resource.custom:
            written["metadata"] = new["metadata"]
        return written
    if not resource.has_status:
        return new
    rest = {key: value for key, value in new.items() if key != "status"}
    return rest | {"status": old["status"]} if "status" in old else rest


def _content(resource: Resource, obj: Object) -> Object:
    """Return the part of an object whose changes increase its generation."""
    apart = {"metadata", "status"} if resource.has_status else {"metadata"}
    return {key: value for key, value in obj.items() if key not in apart}


def _grace(pod: Object, asked: int | None) -> int:
    """Compute a pod's grace period in seconds; 0 for a pod without a node, or one that has ended."""
    if not at(pod, "spec", "nodeName") or at(pod, "status", "phase") in ENDED:
        return 0
    running_out: int | None = pod["metadata"].get("deletionGracePeriodSeconds")
    if running_out is not None:
        return running_out if asked is None else min(asked, running_out)
    grace: int = asked if asked is not None else at(pod, "spec", "terminationGracePeriodSeconds", default=30)
    return grace if grace >= 0 else 1


def _established(crd: Mapping[str, Any], since: str) -> Object:
    spec = crd["spec"]
    conditions = [
        {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": since}
        for kind, reason, message in (
            ("NamesAccepted", "NoConflicts", "no conflicts found"),
            ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        )
    ]
    stored = [version["name"] for version in spec["versions"] if version["storage"]]
    status = {"conditions": conditions, "acceptedNames": spec["names"], "storedVersions": stored}
    return {**crd, "status": status}
