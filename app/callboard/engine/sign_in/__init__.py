"""Sign-in to remote servers with OAuth: one for each resource, whoever uses it."""
