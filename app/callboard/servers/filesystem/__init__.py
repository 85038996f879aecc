"""The server that reads files: only below the folders that it is given, and never through a symbolic link."""
