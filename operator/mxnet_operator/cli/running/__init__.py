"""Life of one job in a command: create, follow, interrupt; for `mxjob run` and verbs that share its parts."""
