"""The page of clients: what each may use, and profiles."""
