"""Decorators of the provider."""
