"""Connections to a cluster that runs MXJobs."""
