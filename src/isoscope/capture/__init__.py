"""Listening to a model while it runs."""
