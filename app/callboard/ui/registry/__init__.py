"""Beginning a new server with one of a registry or of a bundle: search, preview, questions."""
