"""What the facts of the API say about an object: its types, its unknown fields, how it merges.

Place in the flow: `openapi` renders the definitions for clients, `check` refuses wrong types and
names unknown fields, `patch_strategic` takes its merge keys from them.
"""
