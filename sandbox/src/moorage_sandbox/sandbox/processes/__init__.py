"""The processes of a sandbox: how the parent starts and follows them, and what they do inside."""
