"""Certificate authority of a local cluster, and the kubeconfig that embeds it."""

import base64
import json
import ssl

import trustme


def issue_identity() -> tuple[ssl.SSLContext, bytes]:
    """Issue a server certificate and the CA that clients must trust (PEM), whose private key stays in memory."""
    authority = trustme.CA(organization_name="mxjob local cluster")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)
    return context, authority.cert_pem.bytes()


CONTEXT = "mxjob-local"


def kubeconfig(*, port: int, authority_pem: bytes, token: str, address: str = "127.0.0.1") -> bytes:
    """Build a kubeconfig with one context (JSON, which is YAML too)."""
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": CONTEXT,
            "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": CONTEXT, "namespace": "default"}}],
            "clusters": [
                {
                    "name": CONTEXT,
                    "cluster": {
                        "server": f"https://{address}:{port}",
                        "certificate-authority-data": base64.b64encode(authority_pem).decode(),
                    },
                }
            ],
            "users": [{"name": CONTEXT, "user": {"token": token}}],
        },
        indent=2,
    ).encode()
