"""Rules in CEL of custom resources (``x-kubernetes-validations``), and the CEL process.

Place in the flow: `compiled` compiles the rules of a schema once. It finds the rules for which a
definition is refused (`stored`, `budget`), and the rules that are stored with a warning.
`validation` returns what the other rules say about an object; `evaluation` evaluates them.
`cel_process` evaluates what may take long, of rules and of policies. `object_types` declares the
types of objects, for the status of policies.

What belongs here: rules of custom resources. Schemas themselves belong to `moorage.kinds`, policies
to `moorage.policies`. What does not belong here: parts of a CEL implementation (`moorage.cel`). A
rule that the runtime cannot evaluate is stored with a warning.
"""
