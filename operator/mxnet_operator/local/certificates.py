"""A certificate authority and a server certificate for one life of one local cluster."""

import ssl
from dataclasses import dataclass

import trustme


@dataclass(frozen=True)
class ServerIdentity:
    """What the API server shows, and what a client must trust to believe it."""

    context: ssl.SSLContext
    authority_pem: bytes


def issue_identity() -> ServerIdentity:
    """Make both anew; the authority's private key is never written and dies with the process."""
    authority = trustme.CA(organization_name="mxjob local cluster")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)
    return ServerIdentity(context=context, authority_pem=authority.cert_pem.bytes())
