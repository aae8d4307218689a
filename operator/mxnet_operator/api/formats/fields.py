"""Types and bounds of fields that several older formats share."""

from typing import Annotated

from msgspec import Meta

MAX_ENTRIES = 6
"""Maximum number of entries of a map or list of replicas: there are three types."""

Text = Annotated[str, Meta(max_length=253)]
