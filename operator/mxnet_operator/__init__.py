"""Run MXNet and TVM jobs (`MXJob`) on Kubernetes, in a workflow, or on a laptop."""
