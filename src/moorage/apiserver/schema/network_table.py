"""Fields of the kinds about traffic, in the schema language.

Place in the flow: read once at import by `schema.catalog`; the language is explained in
`schema.language`. The facts are those of the public Kubernetes API, v1.36
staging/src/k8s.io/api/{core,discovery,networking}.
"""

from __future__ import annotations

NETWORKING = """
ServiceBackendPort = name number:i
IngressServiceBackend = name! port:ServiceBackendPort
IngressBackend = resource:TypedLocalObjectReference service:IngressServiceBackend
HTTPIngressPath = backend!:IngressBackend path pathType!
HTTPIngressRuleValue = paths!:[HTTPIngressPath]
IngressRule = host http:HTTPIngressRuleValue
IngressTLS = hosts:[] secretName
IngressSpec = defaultBackend:IngressBackend ingressClassName rules:[IngressRule]
    tls:[IngressTLS]
IngressPortStatus = error port!:i protocol!
IngressLoadBalancerIngress = hostname ip ports:[IngressPortStatus]
IngressLoadBalancerStatus = ingress:[IngressLoadBalancerIngress]
IngressStatus = loadBalancer:IngressLoadBalancerStatus
Ingress = @ spec:IngressSpec status:IngressStatus
IngressClassParametersReference = apiGroup kind! name! namespace scope
IngressClassSpec = controller parameters:IngressClassParametersReference
IngressClass = @ spec:IngressClassSpec
IPBlock = cidr! except:[]
NetworkPolicyPeer = ipBlock:IPBlock namespaceSelector:LabelSelector podSelector:LabelSelector
NetworkPolicyPort = endPort:i port:io protocol
NetworkPolicyEgressRule = ports:[NetworkPolicyPort] to:[NetworkPolicyPeer]
NetworkPolicyIngressRule = from:[NetworkPolicyPeer] ports:[NetworkPolicyPort]
NetworkPolicySpec = egress:[NetworkPolicyEgressRule] ingress:[NetworkPolicyIngressRule]
    podSelector:LabelSelector policyTypes:[]
NetworkPolicy = @ spec:NetworkPolicySpec
"""

DISCOVERY = """
EndpointConditions = ready:b serving:b terminating:b
ForNode = name!
ForZone = name!
EndpointHints = forNodes:[ForNode] forZones:[ForZone]
Endpoint = addresses!:[] conditions:EndpointConditions deprecatedTopology:{} hints:EndpointHints
    hostname nodeName targetRef:ObjectReference zone
EndpointPort = appProtocol name port:i protocol
EndpointSlice = @ addressType! endpoints!:[Endpoint] ports:[EndpointPort]
"""

ENDPOINTS = """
EndpointAddress = hostname ip! nodeName targetRef:ObjectReference
EndpointPort = appProtocol name port!:i protocol
EndpointSubset = addresses:[EndpointAddress] notReadyAddresses:[EndpointAddress]
    ports:[EndpointPort]
Endpoints = @ subsets:[EndpointSubset]
"""
