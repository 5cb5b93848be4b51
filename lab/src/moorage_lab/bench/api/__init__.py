"""The API server measured by its clients: creating, listing, watching."""
