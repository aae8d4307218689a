"""Certificate authority and server certificate of a local cluster, new at each start."""

import ssl
from dataclasses import dataclass

import trustme


@dataclass(frozen=True)
class ServerIdentity:
    """TLS identity of the API server: its certificate with key, and the CA that clients must trust."""

    context: ssl.SSLContext
    authority_pem: bytes


def issue_identity() -> ServerIdentity:
    """Issue a CA and a server certificate; the CA's private key stays in memory."""
    authority = trustme.CA(organization_name="mxjob local cluster")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)
    return ServerIdentity(context=context, authority_pem=authority.cert_pem.bytes())
