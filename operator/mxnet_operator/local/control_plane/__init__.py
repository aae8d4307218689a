"""The control planes that a local cluster can have: our API server in this process, or Kubernetes' own programs."""
