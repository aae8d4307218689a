"""Command lines: `mxjob` for users, `mxnet-operator` for the deployed controller."""
