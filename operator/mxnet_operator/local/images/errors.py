"""Errors of the images of the local cluster, with a message for the user."""


class ImageError(Exception):
    """An image can't be named, added or built; the message says why and what to do next."""


class BuildError(ImageError):
    """The build of an image failed in a way in which it will fail again."""
