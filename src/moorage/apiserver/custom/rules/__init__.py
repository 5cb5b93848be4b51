"""Rules in CEL of custom resources: ``x-kubernetes-validations``.

Place in the flow: `compiled` compiles the rules of a schema once. It finds the rules for which a
definition is refused, and the rules that cannot be evaluated here. `evaluation` evaluates the other
rules on an object, after its schema. In between, `forms` describes a schema as CEL sees it, and
`values` turns objects into these forms. `runtime` is the only module that imports the CEL runtime,
an extra of the package (``moorage[dra]``). `checking` adds checks that the type checker of the
runtime lacks, on the trees of `tree`.

What belongs here: everything about rules. Schemas themselves belong to the room above.
"""
