"""Registries of servers and bundles: reading, fetching and unpacking what others made."""
