"""Long-running processes of the command lines: the controller and the local cluster."""
