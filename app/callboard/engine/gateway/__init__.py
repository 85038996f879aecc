"""The HTTP front: who may call, and which endpoint answers."""
