"""Connections from us to servers."""
