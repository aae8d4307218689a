"""The command lines: `mxjob` for people, `mxnet-operator` for the deployed controller."""
