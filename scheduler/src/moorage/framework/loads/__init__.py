"""The loads of nodes, as plugins read them (`node_loads`)."""
