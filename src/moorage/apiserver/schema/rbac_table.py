"""Fields of roles and bindings, in the schema language.

Place in the flow: read once at import by `schema.catalog`; the language is explained in
`schema.language`. The facts are those of the public Kubernetes API, v1.36
staging/src/k8s.io/api/rbac/v1.
"""

from __future__ import annotations

RBAC = """
PolicyRule = apiGroups:[] nonResourceURLs:[] resourceNames:[] resources:[] verbs!:[]
AggregationRule = clusterRoleSelectors:[LabelSelector]
RoleRef = apiGroup kind! name!
Subject = apiGroup kind! name! namespace
Role = @ rules:[PolicyRule]
ClusterRole = @ aggregationRule:AggregationRule rules:[PolicyRule]
RoleBinding = @ roleRef!:RoleRef subjects:[Subject]
ClusterRoleBinding = @ roleRef!:RoleRef subjects:[Subject]
"""
