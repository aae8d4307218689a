"""Images of the local cluster: virtual environments built by uv from a lock, and folders of files."""
