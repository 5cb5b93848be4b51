"""CEL: compiles and evaluates expressions, and bounds what they cost.

Place in the flow: selectors of devices, rules of custom resources and admission policies are CEL.
`runtime` makes the environments; the runtime itself is an extra of the package (``moorage[dra]``)
and is imported with the first expression. `functions` and `rule_functions` are the functions that
Kubernetes adds. `tree` reads a compiled expression, and `cost` bounds its cost by it. `values`
converts JSON for the runtime. `budget` bounds what the expressions about one object cost together,
and `evaluators` says where they run: here, in another process, or later.

What belongs here: what is the same for every expression. What does not belong here: which
expressions there are, and what their variables mean; the rooms of their kinds know that.
"""
