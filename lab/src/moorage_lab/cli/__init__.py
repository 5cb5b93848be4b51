"""The commands of moorage_lab, one module or package each; found by entry points."""
