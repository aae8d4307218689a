"""Sensors that wait for an MXJob that another created."""
