"""Other systems on the cluster that jobs rely on: each is a folder here and a row of the registry."""
