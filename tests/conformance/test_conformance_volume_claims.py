"""PersistentVolumeClaims: the fixture `api` may be ours or a real one, where no controller binds them."""

from apiserver_objects import CLAIMS, volume_claim

STORAGE = "spec.resources[storage]"


async def causes_of(answer):
    assert answer.code == 422, answer.text
    return [f"{each['field']}: {each['message']}" for each in answer.body["details"]["causes"]]


async def test_a_new_claim_waits_and_is_protected(api, namespace):
    stored = (await api.post(CLAIMS.format(namespace), volume_claim("data", status={"phase": "Bound"}))).ok()
    assert (stored["spec"]["volumeMode"], stored["status"]) == ("Filesystem", {"phase": "Pending"})
    assert stored["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]


async def test_a_claim_has_its_rules(api, namespace):
    for spec, causes in (
        ({"accessModes": []}, ["spec.accessModes: Required value: at least 1 access mode is required"]),
        ({"resources": {}}, [f"{STORAGE}: Required value"]),
        ({"accessModes": [], "resources": {}}, ["spec.accessModes: Required value", f"{STORAGE}: Required value"]),
    ):
        found = await causes_of(await api.post(CLAIMS.format(namespace), volume_claim("data", **spec)))
        assert len(found) == len(causes), (spec, causes)
        for cause, wanted in zip(found, causes, strict=True):
            assert cause.startswith(wanted), (spec, causes)


async def test_a_deleted_claim_stays_until_its_protection_is_taken_away(api, namespace):
    path = f"{CLAIMS.format(namespace)}/data"
    body = volume_claim("data")
    body["metadata"]["finalizers"] = ["test.mxjob/held"]  # a real cluster takes its own away by itself
    (await api.post(CLAIMS.format(namespace), body)).ok()
    (await api.delete(path)).ok()
    assert "deletionTimestamp" in (await api.get(path)).ok()["metadata"]
    (await api.merge(path, {"metadata": {"finalizers": None}})).ok()
    assert (await api.get(path)).code == 404
