"""The server that reads a PostgreSQL database: its schemas, its tables, and the answers to queries."""
