"""Tasks that are MXJobs."""
