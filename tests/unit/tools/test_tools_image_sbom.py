"""`tools/image_sbom.py`: what an archived image consists of, layer over layer."""

import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TOOL = ROOT / "tools" / "image_sbom.py"
DPKG = """Package: {name}
Status: {status}
Architecture: amd64
Version: 1:2.3-4+deb12u1

Package: removed
Status: deinstall ok config-files
Architecture: amd64
Version: 1
"""
SITE = "usr/local/lib/python3.11/site-packages"


def metadata(name, version, more=""):
    return f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n{more}\nReadme.\n"


LAYERS = (
    {
        "var/lib/dpkg/status": DPKG.format(name="libgomp1", status="install ok installed"),
        f"{SITE}/numpy-1.0.dist-info/METADATA": metadata("numpy", "1.0"),
        f"{SITE}/gone-1.0.dist-info/METADATA": metadata("gone", "1.0"),
        "opt/old/also_gone-1.0.dist-info/METADATA": metadata("also-gone", "1.0"),
    },
    {
        "./var/lib/dpkg/status": DPKG.format(name="libc6", status="hold ok installed"),
        f"{SITE}/.wh.gone-1.0.dist-info": "",
        "opt/old/.wh..wh..opq": "",
        f"{SITE}/Typing_Extensions-2.dist-info/METADATA": metadata(
            "Typing_Extensions", "2", "License-Expression: PSF-2.0\n"
        ),
        f"{SITE}/scipy-3.dist-info/METADATA": metadata("scipy", "3", "License: BSD\n"),
        "usr/lib/python3/dist-packages/setuptools-66.egg-info/PKG-INFO": metadata("setuptools", "66"),
        "usr/lib/python3/dist-packages/wheel-0.38.egg-info": metadata("wheel", "0.38"),
        f"{SITE}/long-4.dist-info/METADATA": metadata("long", "4", f"License: {'word ' * 50}\n"),
    },
)


VALIDATE = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
print(JsonStrictValidator(SchemaVersion.V1_6).validate_str(sys.stdin.read()))
"""


def tar(files, mode):
    """The bytes of an archive of these files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, content in files.items():
            data = content if isinstance(content, bytes) else content.encode()
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


@pytest.fixture(params=["w", "w:gz"], ids=["plain", "compressed"])
def archive(request, tmp_path):
    """An image of two layers, as `docker save` writes it."""
    layers = {f"{number}.tar": tar(layer, request.param) for number, layer in enumerate(LAYERS)}
    config = {"config": {"Labels": {"org.opencontainers.image.licenses": "Apache-2.0"}}}
    image = {"Config": "config.json", "RepoTags": ["host:5000/mxjob/some:1.0"], "Layers": list(layers)}
    path = tmp_path / "image.tar"
    path.write_bytes(tar({**layers, "config.json": json.dumps(config), "manifest.json": json.dumps([image])}, "w"))
    return path


def printed(path):
    done = subprocess.run([sys.executable, TOOL, path], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_components_are_what_the_uppermost_layers_have(archive):
    bill = json.loads(printed(archive))
    assert {each["purl"] for each in bill["components"]} == {
        "pkg:deb/debian/libc6@1%3A2.3-4%2Bdeb12u1?arch=amd64",
        "pkg:pypi/numpy@1.0",
        "pkg:pypi/typing-extensions@2",
        "pkg:pypi/scipy@3",
        "pkg:pypi/long@4",
        "pkg:pypi/setuptools@66",
        "pkg:pypi/wheel@0.38",
    }
    about = bill["metadata"]["component"]
    assert (about["name"], about["version"], about["licenses"]) == ("some", "1.0", [{"expression": "Apache-2.0"}])


def test_licences_are_those_of_the_metadata_unless_a_whole_text_stands_there(archive):
    found = {each["name"]: each.get("licenses") for each in json.loads(printed(archive))["components"]}
    assert found["Typing_Extensions"] == [{"expression": "PSF-2.0"}]
    assert found["scipy"] == [{"license": {"name": "BSD"}}]
    assert found["long"] is found["numpy"] is found["libc6"] is None


def test_the_same_image_gives_the_same_bytes(archive):
    assert printed(archive) == printed(archive)


@pytest.mark.exhaustive
@pytest.mark.parametrize("archive", ["w"], indirect=True)
def test_it_is_valid_cyclonedx(archive, tmp_path):
    """By the schema that comes with cyclonedx-bom, which `make sbom` uses, in an environment of its own."""
    uv, environment = Path(sys.executable).with_name("uv"), tmp_path / "tool"
    python = environment / "bin" / "python"
    for command in (
        [uv, "venv", "--quiet", "--python", sys.executable, environment],
        [uv, "pip", "sync", "--quiet", "--python", python, "--require-hashes", ROOT / "requirements" / "sbom.txt"],
    ):
        subprocess.run(command, check=True)

    def wrong(text):
        done = subprocess.run([python, "-c", VALIDATE], input=text, capture_output=True, check=True)
        return done.stdout.decode().strip()

    text = printed(archive)
    assert wrong(text) == "None"
    assert wrong(text.replace(b'"library"', b'"book"')) != "None"
