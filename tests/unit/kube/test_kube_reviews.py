"""Reviews of bearer tokens: who is let in, for how long a decision holds, and that nobody is let in by mistake."""

import asyncio
from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxnet_operator.kube import reviews
from mxnet_operator.kube.errors import ApiError, ApiUnavailable
from mxnet_operator.kube.reviews import ALLOWED_SECONDS, AT_ONCE, DENIED_SECONDS, KEPT, AccessReviewer

PROMETHEUS = {"username": "prometheus", "uid": "1", "groups": ["scrapers"], "extra": {"pod": ["a"]}}
AUTHENTICATED = {"authenticated": True, "user": PROMETHEUS}
ALLOWED = {"allowed": True}


class Server:
    """An API server's answers to reviews, and what it was asked; `clock` is the time."""

    def __init__(self, token=AUTHENTICATED, access=ALLOWED):
        self.token = token
        self.access = access
        self.asked = []
        self.clock = 0.0
        self.under_way = self.most = 0
        self.answers = asyncio.Event()
        self.answers.set()

    async def create(self, path, body, *, shape):
        self.asked.append(body)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await self.answers.wait()
        self.under_way -= 1
        answer = self.token if body["kind"] == "TokenReview" else self.access
        if isinstance(answer, Exception):
            raise answer
        return {"status": answer}

    def reviewer(self):
        return AccessReviewer(self, lambda: self.clock)


async def status(reviewer, authorization="Bearer good", method="GET"):
    return (await reviewer.review(authorization, method, "/metrics")).status


async def test_who_is_authenticated_and_allowed_is_let_in():
    server = Server()
    assert await status(server.reviewer()) == HTTPStatus.OK
    token, access = server.asked
    assert token["spec"] == {"token": "good"}
    assert access["spec"] == {
        "user": "prometheus",
        "uid": "1",
        "groups": ["scrapers"],
        "extra": {"pod": ["a"]},
        "nonResourceAttributes": {"verb": "get", "path": "/metrics"},
    }


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic Z29vZA==", "good", "bearer\tgood"])
async def test_without_a_bearer_token_nobody_is_asked(header):
    server = Server()
    assert await status(server.reviewer(), header) == HTTPStatus.UNAUTHORIZED
    assert server.asked == []


NOT_LET_IN = {
    "an unknown token": ({"authenticated": False}, ALLOWED, 401),
    "an unknown token, said by silence": ({}, ALLOWED, 401),
    "authenticated as nobody": ({"authenticated": True}, ALLOWED, 401),
    "no right": (AUTHENTICATED, {"allowed": False}, 403),
    "allowed and denied": (AUTHENTICATED, {"allowed": True, "denied": True}, 403),
    "no server for the token": (ApiUnavailable("gone"), ALLOWED, 503),
    "no server for the right": (AUTHENTICATED, ApiUnavailable("gone"), 503),
    "no right to review tokens": (ApiError(403, "Forbidden", "no"), ALLOWED, 503),
    "a webhook of the server that fails": (AUTHENTICATED, ApiError(500, "InternalError", "no"), 503),
    "authenticated as a word": ({"authenticated": "true", "user": PROMETHEUS}, ALLOWED, 503),
    "allowed as a number": (AUTHENTICATED, {"allowed": 1}, 503),
    "no decision on the right": (AUTHENTICATED, {}, 503),
    "a list": ([], ALLOWED, 503),
    "a user without a name": ({"authenticated": True, "user": {}}, ALLOWED, 401),
    "an unknown token, as kube-apiserver says it": ({"user": {}, "error": "invalid bearer token"}, ALLOWED, 401),
}


@pytest.mark.parametrize("case", NOT_LET_IN)
async def test_whatever_else_the_server_says_lets_nobody_in(case):
    token, access, expected = NOT_LET_IN[case]
    assert await status(Server(token, access).reviewer()) == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
STATUS = (
    st.dictionaries(st.sampled_from(["authenticated", "user", "allowed", "denied", "error"]), JSON, max_size=4) | JSON
)


@given(token=STATUS, access=STATUS)
def test_only_a_plain_yes_to_both_reviews_lets_anybody_in(token, access):
    plain = isinstance(access, dict) and access.get("allowed") is True and not access.get("denied")
    for first in (AUTHENTICATED, token):
        decision = asyncio.run(status(Server(first, access).reviewer()))
        assert decision != HTTPStatus.OK or (plain and isinstance(first, dict) and first.get("authenticated") is True)


async def test_a_decision_is_kept_for_its_time_and_then_asked_for_again():
    server = Server()
    reviewer = server.reviewer()
    assert await status(reviewer) == HTTPStatus.OK
    server.access = {"allowed": False}
    server.clock = ALLOWED_SECONDS - 1
    assert await status(reviewer) == HTTPStatus.OK
    server.clock = ALLOWED_SECONDS
    assert await status(reviewer) == HTTPStatus.FORBIDDEN
    server.access = {"allowed": True}
    server.clock += DENIED_SECONDS - 1
    assert await status(reviewer) == HTTPStatus.FORBIDDEN
    server.clock += 1
    assert await status(reviewer) == HTTPStatus.OK


async def test_a_decision_holds_for_its_token_and_method_only():
    server = Server()
    reviewer = server.reviewer()
    assert await status(reviewer) == HTTPStatus.OK
    server.token = {"authenticated": False}
    assert await status(reviewer, "Bearer goo") == HTTPStatus.UNAUTHORIZED
    assert await status(reviewer, method="HEAD") == HTTPStatus.UNAUTHORIZED


async def test_that_the_server_could_not_be_asked_is_not_kept():
    server = Server(token=ApiUnavailable("gone"))
    reviewer = server.reviewer()
    assert await status(reviewer) == HTTPStatus.SERVICE_UNAVAILABLE
    server.token = AUTHENTICATED
    assert await status(reviewer) == HTTPStatus.OK


async def test_a_server_that_does_not_answer_lets_nobody_in(monkeypatch):
    monkeypatch.setattr(reviews, "_TIMEOUT", 0.0)
    server = Server()
    server.answers.clear()
    assert await status(server.reviewer()) == HTTPStatus.SERVICE_UNAVAILABLE


async def test_a_flood_of_tokens_is_neither_a_flood_of_reviews_nor_of_memory():
    server = Server(token={"authenticated": False})
    reviewer = server.reviewer()
    await status(reviewer, "Bearer first")
    server.answers.clear()
    flood = [asyncio.create_task(status(reviewer, f"Bearer {n}")) for n in range(2 * KEPT)]
    await asyncio.sleep(0)
    server.answers.set()
    assert set(await asyncio.gather(*flood)) == {HTTPStatus.UNAUTHORIZED}
    assert server.most <= AT_ONCE
    assert len(reviewer) == KEPT


async def test_requests_at_once_with_one_token_are_one_review():
    server = Server()
    reviewer = server.reviewer()
    await asyncio.gather(*(status(reviewer) for _ in range(3 * AT_ONCE)))
    assert len(server.asked) <= 2 * AT_ONCE


async def test_no_token_is_kept():
    server = Server()
    reviewer = server.reviewer()
    await status(reviewer, "Bearer a-secret-token")
    assert "a-secret-token" not in repr(vars(reviewer)["_kept"])
