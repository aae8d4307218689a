"""The one error of this package: its message is written for the person who wants the image."""


class ImageError(Exception):
    """An image that can't be named, added or built; the message says why and what to do next."""
