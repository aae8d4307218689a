"""Access of commands to the API server: the connection, and jobs of every kind."""
