"""Argo at work, for the tests of this folder."""

from argo_fixtures import argo, argo_server  # noqa: F401 - fixtures
