"""The older forms as the API server sees them: their fields and rules, from which the definitions are made."""
