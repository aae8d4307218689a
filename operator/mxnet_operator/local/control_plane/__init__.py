"""Control planes of a local cluster: the in-memory API server, or the programs of Kubernetes."""
