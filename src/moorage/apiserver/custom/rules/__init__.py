"""Rules in CEL of custom resources: ``x-kubernetes-validations``.

Place in the flow: `compiled` reads the rules of a schema, once; it says which of them a definition
is refused for and which cannot be evaluated here. `evaluation` holds an object against the others,
after its schema. In between, `forms` says what CEL sees of a schema, `values` turns objects into
that, `runtime` is the only module that knows the CEL runtime, an extra of the package
(``moorage[dra]``); `checking` adds what its type checker does not know, on the trees of `tree`.

What belongs here: everything about rules. What does not: schemas themselves (one room up).
"""
