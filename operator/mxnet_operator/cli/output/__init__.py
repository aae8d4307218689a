"""Output of commands: tables, progress, descriptions, colours."""
