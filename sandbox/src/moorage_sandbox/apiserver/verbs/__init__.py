"""The verbs: get, list, watch, create, update, patch, apply and delete, for every kind alike.

Place in the flow: `moorage_sandbox.apiserver.resource_calls` calls one of `reading`, `watching`,
`writing` and `deleting`. `selection`, `pages` and `write_options` read the parameters of a call,
`patches`, `patch_strategic` and `applying` compute an object, and `metadata` has the server's part
of it.

What belongs here: what is the same for every kind. Facts about one kind belong to `moorage.kinds`.
"""
