"""Objects of built-in kinds in Kubernetes' protobuf form, and back.

Place in the flow: `moorage_sandbox.apiserver.server` passes bodies in protobuf through `calls` on
their way in, and answers on their way out; `moorage_sandbox.apiserver.wire.render` makes lists and
watches from `codec` and `envelope`. All other parts of the server know the JSON form only.

Belongs here: the facts about messages, and the wire form. Does not belong here: the meaning of a
field, and custom resources, which have no protobuf form. Google's runtime is imported by `runtime`
when the first body or answer needs it, so only a server with such clients pays for it.
"""
