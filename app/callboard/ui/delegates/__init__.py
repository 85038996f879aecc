"""Delegates: how rows and cells are painted."""
