"""``moorage plugin``: begin a plugin from a template, and test one against the contract."""
