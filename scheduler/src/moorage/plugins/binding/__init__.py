"""The write that binds a pod to its node.

- `default_binder`: the plugin DefaultBinder.
"""
