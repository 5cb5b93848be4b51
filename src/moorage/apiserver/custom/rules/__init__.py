"""Rules in CEL of custom resources: ``x-kubernetes-validations``.

Place in the flow: `compiled` compiles the rules of a schema once. It finds the rules for which a
definition is refused (`stored`, `budget`), and the rules that are stored with a warning. `judging`
decides where the other rules are evaluated on an object, and `evaluation` evaluates them. The CEL
runtime (`moorage.cel`) gets rules as they are written, and `values` bound to ``self`` and
``oldSelf``.

What belongs here: everything about rules. Schemas themselves belong to the room above. What does
not belong here: parts of a CEL implementation. A rule that the runtime cannot evaluate is stored
with a warning.
"""
