"""The commands of moorage_sandbox, one module or package each; found by entry points."""
