"""``moorage mcp``: the questions of the command line as tools of the Model Context Protocol."""
