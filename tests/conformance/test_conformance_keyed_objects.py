"""ConfigMaps and Secrets, whose values may be any bytes: the fixture `api` may be ours or a real one."""

import base64

import pytest
from apiserver_objects import CONFIG_MAPS, SECRETS, config_map, secret

TYPE = "kubernetes.io/"


def encoded(text):
    return base64.b64encode(text.encode()).decode()


async def rejected(api, path, body, code=422):
    answer = await api.post(path, body)
    assert answer.code == code, answer.text
    if code != 422:
        return answer.body["message"]
    return [f"{each['field']}: {each['message']}" for each in answer.body["details"]["causes"]]


async def test_texts_become_data_and_win_over_it(api, namespace):
    path = SECRETS.format(namespace)
    body = secret("s3", data={"key": encoded("old"), "raw": "AP8="}, stringData={"key": "ü", "empty": ""})
    stored = (await api.post(path, body)).ok()
    assert stored["data"] == {"key": encoded("ü"), "raw": "AP8=", "empty": ""}
    assert (stored["type"], "stringData" in stored) == ("Opaque", False)
    changed = (await api.merge(f"{path}/s3", {"stringData": {"key": "new"}, "data": {"raw": None}})).ok()
    assert changed["data"] == {"key": encoded("new"), "empty": ""}


async def test_secrets_are_selected_by_their_type(api, namespace):
    path = SECRETS.format(namespace)
    for name, of_type, data in (("a", "Opaque", {}), ("b", f"{TYPE}basic-auth", {"username": "me"}), ("c", "mine", {})):
        (await api.post(path, secret(name, stringData=data, type=of_type))).ok()
    found = (await api.get(path, fieldSelector=f"type={TYPE}basic-auth")).ok()["items"]
    assert [each["metadata"]["name"] for each in found] == ["b"]


@pytest.mark.parametrize("text", ["not base64!", "YQ", "YQ=", "=", "YQ==YQ==", "YW-_", "ü", "Y\nQ=\n"])
async def test_what_is_not_base64_is_rejected(api, namespace, text):
    words = await rejected(api, SECRETS.format(namespace), secret("a", data={"k": text}), 400)
    assert words.startswith('Secret in version "v1" cannot be handled as a Secret: ')
    assert "illegal base64 data" in words


@pytest.mark.parametrize("text", ["", "YQ==", "YW\nJj\r\n", "\nYQ==\n", "AP8="])
async def test_line_ends_in_base64_do_not_matter(api, namespace, text):
    stored = (await api.post(SECRETS.format(namespace), secret("a", data={"k": text}))).ok()
    assert base64.b64decode(stored["data"]["k"]) == base64.b64decode(text)


REGEX = "a valid config key must consist of alphanumeric characters, "


@pytest.mark.parametrize(
    ("key", "rules"),
    [
        ("a/b", [REGEX]),
        ("ü", [REGEX]),
        ("", [REGEX]),
        ("a" * 254, ["must be no more than 253 characters"]),
        ("a " * 127, ["must be no more than 253 characters", REGEX]),
        (".", ["must not be '.'"]),
        ("..", ["must not be '..'"]),
        ("..a", ["must not start with '..'"]),
    ],
)
async def test_keys_have_their_rules(api, namespace, key, rules):
    causes = await rejected(api, SECRETS.format(namespace), secret("a", data={key: ""}))
    assert await rejected(api, CONFIG_MAPS.format(namespace), {**config_map("a"), "data": {key: ""}}) == causes
    assert len(causes) == len(rules)
    for cause, rule in zip(causes, rules, strict=True):
        assert cause.startswith(f"data[{key}]: Invalid value: ")
        assert rule in cause
