"""Objects of built-in kinds in Kubernetes' protobuf form, and back.

Place in the flow: `moorage.apiserver.server` passes bodies in protobuf through `calls` on their way
in, and answers on their way out; `moorage.apiserver.render` makes lists and watches from `codec`
and `envelope`. Everything else in the server knows the JSON form only.

Belongs here: what `facts` tells of messages, and the wire form. Does not belong here: what a field
means, and custom resources, which have no protobuf form. Google's runtime is imported by `runtime`
when the first body or answer needs it, so only a server with such clients pays for it.
"""
