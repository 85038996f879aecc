"""Item models: what the lists and tables of the window show."""
