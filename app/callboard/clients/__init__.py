"""IDE and agent programs that connect to the gateway, as data."""
