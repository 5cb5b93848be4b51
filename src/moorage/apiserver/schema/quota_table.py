"""Fields of ResourceQuota and LimitRange, in the schema language.

Place in the flow: read once at import by `schema.catalog`; the language is explained in
`schema.language`. The facts are those of the public Kubernetes API, v1.36
staging/src/k8s.io/api/core/v1.
"""

from __future__ import annotations

QUOTA = """
LimitRangeItem = default:{q} defaultRequest:{q} max:{q} maxLimitRequestRatio:{q} min:{q} type!
LimitRangeSpec = limits!:[LimitRangeItem]
LimitRange = @ spec:LimitRangeSpec
ScopedResourceSelectorRequirement = operator! scopeName! values:[]
ScopeSelector = matchExpressions:[ScopedResourceSelectorRequirement]
ResourceQuotaSpec = hard:{q} scopeSelector:ScopeSelector scopes:[]
ResourceQuotaStatus = hard:{q} used:{q}
ResourceQuota = @ spec:ResourceQuotaSpec status:ResourceQuotaStatus
"""
