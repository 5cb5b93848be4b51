"""Documents about the server: discovery, OpenAPI, health, and its own metrics.

Place in the flow: a call that addresses no resource is answered here, without the store.

What belongs here: what a client asks before or next to its calls to resources.
"""
