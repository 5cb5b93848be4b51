"""Subresources that answer by themselves: ``binding``, ``eviction`` and ``scale``.

Place in the flow: `moorage_sandbox.apiserver.resource_calls` calls one of them. What a kubelet
answers for its pods is in `moorage_sandbox.apiserver.kubelet`.

What belongs here: a subresource that is more than a part of the object. A part that is written by
itself, such as ``status``, is declared by its kind.
"""
