"""Local cluster in one process: API server, kubelet, and images as virtual environments."""
