"""The control API: what the window, the command line and scripts use to steer the engine."""
