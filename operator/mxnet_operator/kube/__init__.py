"""How to talk to a Kubernetes API: credentials, requests, watch caches, the work queue. Knows no MXJob."""
