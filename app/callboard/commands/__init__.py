"""What the command line does, over the control API's client. Each command is a coroutine that returns an exit code."""
