"""Programs that write the generated documents and cut a release; nothing here is installed."""
