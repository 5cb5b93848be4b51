"""Rules in CEL of custom resources (``x-kubernetes-validations``) and of admission policies.

Place in the flow: `compiled` compiles the rules of a schema once. It finds the rules for which a
definition is refused (`stored`, `budget`), and the rules that are stored with a warning. `judging`
decides where the other rules are evaluated on an object, and `evaluation` evaluates them. The CEL
runtime (`moorage.cel`) gets rules as they are written, and `values` bound to ``self`` and
``oldSelf``.

The expressions of policies are in `expressions`, with `object_literals` and `object_types`.

What belongs here: everything about rules. Schemas themselves belong to `moorage.kinds`. What does
not belong here: parts of a CEL implementation. A rule that the runtime cannot evaluate is stored
with a warning.
"""
