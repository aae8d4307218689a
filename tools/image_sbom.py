"""Prints what an image consists of, as CycloneDX: `image_sbom.py IMAGE.tar`, an archive of `docker save`.

It lists Debian's packages, by dpkg's own list, and Python's distributions, by their metadata. The same image gives the
same bytes: no time and no serial number is in them.
"""

import email
import json
import re
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final
from urllib.parse import quote

_DPKG: Final = PurePosixPath("var/lib/dpkg/status")
_GONE: Final = ".wh."
"""How a layer marks a file that it takes away: its name after this."""
_ALL_GONE: Final = ".wh..wh..opq"
"""The mark in a folder of which nothing stays that was in the layers below."""
_LONGEST_LICENCE: Final = 100
"""Characters of a `License` that is a name; a longer one is the whole text."""


def bill(path: Path) -> dict[str, Any]:
    """The bill of materials of an archived image."""
    with tarfile.open(path) as archive:
        (image,) = json.load(_member(archive, "manifest.json"))
        files: dict[PurePosixPath, bytes] = {}
        for layer in image["Layers"]:
            _add(files, _member(archive, layer))
        labels = json.load(_member(archive, image["Config"]))["config"].get("Labels") or {}
    name, _, tag = image["RepoTags"][0].rpartition("/")[2].partition(":")
    about = {"type": "container", "bom-ref": "image", "name": name, "version": tag}
    if licence := labels.get("org.opencontainers.image.licenses"):
        about["licenses"] = [{"expression": licence}]
    components = {each["bom-ref"]: each for each in (*_debian(files), *_python(files))}
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": about},
        "components": [components[ref] for ref in sorted(components)],
        "dependencies": [{"ref": "image", "dependsOn": sorted(components)}],
    }


def _member(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    file = archive.extractfile(name)
    if file is None:
        raise ValueError(f"{name} is not a file in the archive")
    return file


def _add(files: dict[PurePosixPath, bytes], layer: IO[bytes]) -> None:
    """Lay a layer over the files that tell of packages."""
    added: dict[PurePosixPath, bytes] = {}
    with tarfile.open(fileobj=layer) as archive:
        for member in archive:
            path = PurePosixPath(member.name)
            if path.name == _ALL_GONE:
                _remove(files, path.parent)
            elif path.name.startswith(_GONE):
                _remove(files, path.with_name(path.name.removeprefix(_GONE)))
            elif member.isfile() and (path == _DPKG or _is_metadata(path)):
                added[path] = _member(archive, member.name).read()
    files |= added


def _is_metadata(path: PurePosixPath) -> bool:
    """Whether a file describes a distribution: a wheel's, or as setuptools and Debian have them."""
    names = (path.parent.suffix, path.name)
    return names in {(".dist-info", "METADATA"), (".egg-info", "PKG-INFO")} or path.suffix == ".egg-info"


def _remove(files: dict[PurePosixPath, bytes], gone: PurePosixPath) -> None:
    for path in [each for each in files if each.is_relative_to(gone)]:
        del files[path]


def _debian(files: dict[PurePosixPath, bytes]) -> Iterator[dict[str, Any]]:
    """The packages that are installed, each with the architecture that it was built for."""
    for paragraph in files.get(_DPKG, b"").decode().split("\n\n"):
        fields = email.message_from_string(paragraph)
        if fields.get("Status", "").endswith(" installed"):
            name, version = fields["Package"], fields["Version"]
            purl = f"pkg:deb/debian/{quote(name, safe='')}@{quote(version, safe='')}?arch={fields['Architecture']}"
            yield {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


def _python(files: dict[PurePosixPath, bytes]) -> Iterator[dict[str, Any]]:
    for path in filter(_is_metadata, files):
        fields = email.message_from_bytes(files[path])
        name, version = fields["Name"], fields["Version"]
        purl = f"pkg:pypi/{re.sub('[-_.]+', '-', name).lower()}@{quote(version, safe='')}"
        found = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
        yield found | ({"licenses": licences} if (licences := _licences(fields)) else {})


def _licences(fields: "email.message.Message") -> list[dict[str, Any]]:
    if expression := fields.get("License-Expression"):
        return [{"expression": expression}]
    text = " ".join(str(fields.get("License", "")).split())
    return [{"license": {"name": text}}] if 0 < len(text) <= _LONGEST_LICENCE else []


def main() -> None:
    """Print the bill of the archive that the command line names."""
    json.dump(bill(Path(sys.argv[1])), sys.stdout, indent=2, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()
