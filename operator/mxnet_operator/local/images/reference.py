"""Image references: the grammar of the distribution project, and one canonical spelling."""

import re

from mxnet_operator.local.images.errors import ImageError

# distribution/reference, grammar of 2.8 (regexp.go), without the lengths that only a registry enforces.
_DOMAIN_PART = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?P<domain>localhost(?=[:/])|{_DOMAIN_PART}(?:\.{_DOMAIN_PART})+|{_DOMAIN_PART}(?=:\d))(?P<port>:\d+)?/"
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?:{_DOMAIN})?(?P<path>{_PART}(?:/{_PART})*)(?::(?P<tag>\w[\w.-]{{0,127}}))?(?:@(?P<digest>sha256:[0-9a-f]{{64}}))?",
    re.ASCII,
)
_DOCKER_HUB = {"docker.io", "index.docker.io"}


def normalised(name: str) -> str:
    """Normalize an image's name: without Docker Hub's domain, always with a tag or a digest.

    Raises:
        ImageError: the name isn't an image reference.
    """
    match = _REFERENCE.fullmatch(name)
    if match is None:
        raise ImageError(
            f"{name!r} isn't the name of an image: lower-case parts joined by '/', then ':' and a tag, "
            "as in team/digits:1.0"
        )
    path, tag, digest = match["path"], match["tag"], match["digest"]
    if match["domain"] in _DOCKER_HUB:
        path = path.removeprefix("library/")
    elif match["domain"]:
        path = f"{match['domain']}{match['port'] or ''}/{path}"
    if digest:
        return f"{path}@{digest}"
    return f"{path}:{tag or 'latest'}"
