"""Kubernetes API client and controller runtime: credentials, requests, watch caches, work queue, leader election."""
