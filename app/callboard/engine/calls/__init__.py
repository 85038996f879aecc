"""The call log."""
