"""Programs that connect to the gateway, as data."""
