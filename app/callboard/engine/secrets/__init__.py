"""Where secret values live."""
