"""Registry of the images that a user has added, in a file that several processes may change."""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from mxnet_operator.local.file_locks import lock, open_lock
from mxnet_operator.local.images.errors import ImageError


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """Added image: the folder of its files, and the image whose packages it uses (None: a lock of its own)."""

    folder: str
    base: str | None = None


class Registry:
    """File `<home>/images.json`, replaced atomically under a lock; readers need no lock."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> dict[str, Entry]:
        """Read all entries by name.

        Raises:
            ImageError: the file is damaged.
        """
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, Entry])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as error:
            raise ImageError(
                f"The list of images {self._path} can't be read ({error}). "
                "Mend it, or remove it and add your images again."
            ) from error

    def change(self, change: Callable[[dict[str, Entry]], None]) -> None:
        """Apply `change` to the entries and write them, as one transaction.

        Raises:
            ImageError: from `change`, or because the file can't be read or written.
        """
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(open_lock(self._path.with_suffix(".lock"))) as held:
                lock(held.fileno())
                entries = self.read()
                change(entries)
                temporary = self._path.with_suffix(f".{os.getpid()}.tmp")
                temporary.write_bytes(
                    msgspec.json.format(msgspec.json.encode(entries, order="deterministic"), indent=1)
                )
                temporary.replace(self._path)
        except OSError as error:
            raise ImageError(f"The list of images {self._path} can't be written: {error}") from error
