"""The kubeconfigs of tests: one cluster, one user with a token."""

import secrets
from pathlib import Path

import yaml


def write_kubeconfig(path: Path, server: str, token: str, authority: Path | None = None) -> None:
    """Write or replace the file at once: a program that another test has started may be reading it."""
    cluster = {"server": server, **({"certificate-authority": str(authority)} if authority else {})}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "test", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": "default"}}],
    }
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    fresh.write_text(yaml.safe_dump(config))
    fresh.chmod(0o600)
    fresh.replace(path)
