"""Fields of the kinds by which others take part in a cluster, in the schema language.

Place in the flow: read once at import by `schema.catalog`; the language is explained in
`schema.language`. The facts are those of the public Kubernetes API, v1.36
staging/src/k8s.io/api/{admissionregistration,autoscaling} and staging/src/k8s.io/kube-aggregator.
"""

from __future__ import annotations

ADMISSION = """
ServiceReference = name! namespace! path port:i
WebhookClientConfig = caBundle:bytes service:ServiceReference url
MatchCondition = expression! name!
RuleWithOperations = apiGroups:[] apiVersions:[] operations:[] resources:[] scope
ValidatingWebhook = admissionReviewVersions!:[] clientConfig!:WebhookClientConfig failurePolicy
    matchConditions:[MatchCondition]*name matchPolicy name! namespaceSelector:LabelSelector
    objectSelector:LabelSelector rules:[RuleWithOperations] sideEffects! timeoutSeconds:i
ValidatingWebhookConfiguration = @ webhooks:[ValidatingWebhook]*name
MutatingWebhook = admissionReviewVersions!:[] clientConfig!:WebhookClientConfig failurePolicy
    matchConditions:[MatchCondition]*name matchPolicy name! namespaceSelector:LabelSelector
    objectSelector:LabelSelector reinvocationPolicy rules:[RuleWithOperations] sideEffects!
    timeoutSeconds:i
MutatingWebhookConfiguration = @ webhooks:[MutatingWebhook]*name
"""

REGISTRATION = """
ServiceReference = name namespace port:i
APIServiceSpec = caBundle:bytes group groupPriorityMinimum!:i insecureSkipTLSVerify:b
    service:ServiceReference version versionPriority!:i
APIServiceCondition = lastTransitionTime:t message reason status! type!
APIServiceStatus = conditions:[APIServiceCondition]*type
APIService = @ spec:APIServiceSpec status:APIServiceStatus
"""

AUTOSCALING = """
CrossVersionObjectReference = apiVersion kind! name!
MetricIdentifier = name! selector:LabelSelector
MetricTarget = averageUtilization:i averageValue:q type! value:q
ContainerResourceMetricSource = container! name! target!:MetricTarget
ExternalMetricSource = metric!:MetricIdentifier target!:MetricTarget
ObjectMetricSource = describedObject!:CrossVersionObjectReference metric!:MetricIdentifier
    target!:MetricTarget
PodsMetricSource = metric!:MetricIdentifier target!:MetricTarget
ResourceMetricSource = name! target!:MetricTarget
MetricSpec = containerResource:ContainerResourceMetricSource external:ExternalMetricSource
    object:ObjectMetricSource pods:PodsMetricSource resource:ResourceMetricSource type!
HPAScalingPolicy = periodSeconds!:i type! value!:i
HPAScalingRules = policies:[HPAScalingPolicy] selectPolicy stabilizationWindowSeconds:i
    tolerance:q
HorizontalPodAutoscalerBehavior = scaleDown:HPAScalingRules scaleUp:HPAScalingRules
HorizontalPodAutoscalerSpec = behavior:HorizontalPodAutoscalerBehavior maxReplicas!:i
    metrics:[MetricSpec] minReplicas:i scaleTargetRef!:CrossVersionObjectReference
MetricValueStatus = averageUtilization:i averageValue:q value:q
ContainerResourceMetricStatus = container! current!:MetricValueStatus name!
ExternalMetricStatus = current!:MetricValueStatus metric!:MetricIdentifier
ObjectMetricStatus = current!:MetricValueStatus describedObject!:CrossVersionObjectReference
    metric!:MetricIdentifier
PodsMetricStatus = current!:MetricValueStatus metric!:MetricIdentifier
ResourceMetricStatus = current!:MetricValueStatus name!
MetricStatus = containerResource:ContainerResourceMetricStatus external:ExternalMetricStatus
    object:ObjectMetricStatus pods:PodsMetricStatus resource:ResourceMetricStatus type!
HorizontalPodAutoscalerCondition = lastTransitionTime:t message observedGeneration:l reason
    status! type!
HorizontalPodAutoscalerStatus = conditions:[HorizontalPodAutoscalerCondition]*type
    currentMetrics:[MetricStatus] currentReplicas:i desiredReplicas!:i lastScaleTime:t
    observedGeneration:l
HorizontalPodAutoscaler = @ spec:HorizontalPodAutoscalerSpec
    status:HorizontalPodAutoscalerStatus
"""

AUTOSCALING_V1 = """
CrossVersionObjectReference = apiVersion kind! name!
HorizontalPodAutoscalerSpec = maxReplicas!:i minReplicas:i
    scaleTargetRef!:CrossVersionObjectReference targetCPUUtilizationPercentage:i
HorizontalPodAutoscalerStatus = currentCPUUtilizationPercentage:i currentReplicas!:i
    desiredReplicas!:i lastScaleTime:t observedGeneration:l
HorizontalPodAutoscaler = @ spec:HorizontalPodAutoscalerSpec
    status:HorizontalPodAutoscalerStatus
"""
