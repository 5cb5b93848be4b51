"""Numbers of the fields of the messages that are read in protobuf.

Place in the flow: read once at import by `moorage.apiserver.protobuf_objects`; the types of the
fields are those of `moorage.apiserver.schema`. Facts from the generated.proto files of kubernetes
v1.36 staging/src/k8s.io/{api,apimachinery}; numbers never change there.

A line is ``Message = field=number ...``, with the version before the name (``v1.Message``) where
versions differ. ``?`` marks a field that says something even when it is zero or false (a pointer in
Go); of the others such values mean that they were left out. ``^`` marks a message whose fields
belong to the one around it. A status is never read: creating drops it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

_META: Final = """
ObjectMeta = name=1 generateName=2 namespace=3 uid=5 resourceVersion=6 generation=7
    creationTimestamp=8 deletionTimestamp=9 deletionGracePeriodSeconds?=10 labels=11 annotations=12
    ownerReferences=13 finalizers=14
OwnerReference = kind=1 name=3 uid=4 apiVersion=5 controller?=6 blockOwnerDeletion?=7
LabelSelector = matchLabels=1 matchExpressions=2
LabelSelectorRequirement = key=1 operator=2 values=3
"""

_CORE: Final = """
Namespace = metadata=1 spec=2
NamespaceSpec = finalizers=1
ConfigMap = metadata=1 data=2 binaryData=3 immutable?=4
Secret = metadata=1 data=2 type=3 stringData=4 immutable?=5
ServiceAccount = metadata=1 secrets=2 imagePullSecrets=3 automountServiceAccountToken?=4
Service = metadata=1 spec=2
ServiceSpec = ports=1 selector=2 clusterIP=3 type=4 externalIPs=5 sessionAffinity=7 loadBalancerIP=8
    loadBalancerSourceRanges=9 externalName=10 externalTrafficPolicy=11 healthCheckNodePort=12
    publishNotReadyAddresses=13 sessionAffinityConfig=14 ipFamilyPolicy=17 clusterIPs=18
    ipFamilies=19 allocateLoadBalancerNodePorts?=20 loadBalancerClass=21 internalTrafficPolicy=22
    trafficDistribution=23
ServicePort = name=1 protocol=2 port=3 targetPort=4 nodePort=5 appProtocol=6
SessionAffinityConfig = clientIP=1
ClientIPConfig = timeoutSeconds?=1
ResourceQuota = metadata=1 spec=2
ResourceQuotaSpec = hard=1 scopes=2 scopeSelector=3
ScopeSelector = matchExpressions=1
ScopedResourceSelectorRequirement = scopeName=1 operator=2 values=3
LocalObjectReference = name=1
ObjectReference = kind=1 namespace=2 name=3 uid=4 apiVersion=5 resourceVersion=6 fieldPath=7
"""

_POD: Final = """
Pod = metadata=1 spec=2
PodTemplateSpec = metadata=1 spec=2
PodSpec = volumes=1 containers=2 restartPolicy=3 terminationGracePeriodSeconds?=4
    activeDeadlineSeconds?=5 dnsPolicy=6 nodeSelector=7 serviceAccountName=8 serviceAccount=9
    nodeName=10 hostNetwork=11 hostPID=12 hostIPC=13 securityContext=14 imagePullSecrets=15
    hostname=16 subdomain=17 affinity=18 schedulerName=19 initContainers=20
    automountServiceAccountToken?=21 tolerations=22 hostAliases=23 priorityClassName=24
    priority?=25 dnsConfig=26 shareProcessNamespace?=27 readinessGates=28 runtimeClassName=29
    enableServiceLinks?=30 preemptionPolicy=31 overhead=32 topologySpreadConstraints=33
    setHostnameAsFQDN?=35 hostUsers?=37 schedulingGates=38
Container = name=1 image=2 command=3 args=4 workingDir=5 ports=6 env=7 resources=8 volumeMounts=9
    livenessProbe=10 readinessProbe=11 lifecycle=12 terminationMessagePath=13 imagePullPolicy=14
    securityContext=15 stdin=16 stdinOnce=17 tty=18 envFrom=19 terminationMessagePolicy=20
    volumeDevices=21 startupProbe=22 restartPolicy=24
ContainerPort = name=1 hostPort=2 containerPort=3 protocol=4 hostIP=5
ResourceRequirements = limits=1 requests=2
EnvVar = name=1 value=2 valueFrom=3
EnvVarSource = fieldRef=1 resourceFieldRef=2 configMapKeyRef=3 secretKeyRef=4
EnvFromSource = prefix=1 configMapRef=2 secretRef=3
ObjectFieldSelector = apiVersion=1 fieldPath=2
ResourceFieldSelector = containerName=1 resource=2 divisor=3
ConfigMapKeySelector = ^LocalObjectReference=1 key=2 optional?=3
SecretKeySelector = ^LocalObjectReference=1 key=2 optional?=3
ConfigMapEnvSource = ^LocalObjectReference=1 optional?=2
SecretEnvSource = ^LocalObjectReference=1 optional?=2
VolumeMount = name=1 readOnly=2 mountPath=3 subPath=4 mountPropagation=5 subPathExpr=6
VolumeDevice = name=1 devicePath=2
Probe = ^ProbeHandler=1 initialDelaySeconds=2 timeoutSeconds=3 periodSeconds=4 successThreshold=5
    failureThreshold=6 terminationGracePeriodSeconds?=7
Lifecycle = postStart=1 preStop=2
LifecycleHandler = exec=1 httpGet=2 tcpSocket=3
ExecAction = command=1
HTTPGetAction = path=1 port=2 host=3 scheme=4 httpHeaders=5
HTTPHeader = name=1 value=2
TCPSocketAction = port=1 host=2
SecurityContext = capabilities=1 privileged?=2 seLinuxOptions=3 runAsUser?=4 runAsNonRoot?=5
    readOnlyRootFilesystem?=6 allowPrivilegeEscalation?=7 runAsGroup?=8 procMount=9
Capabilities = add=1 drop=2
SELinuxOptions = user=1 role=2 type=3 level=4
PodSecurityContext = seLinuxOptions=1 runAsUser?=2 runAsNonRoot?=3 supplementalGroups=4 fsGroup?=5
    runAsGroup?=6 sysctls=7
Sysctl = name=1 value=2
PodDNSConfig = nameservers=1 searches=2 options=3
PodDNSConfigOption = name=1 value=2
HostAlias = ip=1 hostnames=2
PodReadinessGate = conditionType=1
PodSchedulingGate = name=1
Toleration = key=1 operator=2 value=3 effect=4 tolerationSeconds?=5
TopologySpreadConstraint = maxSkew=1 topologyKey=2 whenUnsatisfiable=3 labelSelector=4
    minDomains?=5 nodeAffinityPolicy=6 nodeTaintsPolicy=7 matchLabelKeys=8
Affinity = nodeAffinity=1 podAffinity=2 podAntiAffinity=3
NodeAffinity = requiredDuringSchedulingIgnoredDuringExecution=1
    preferredDuringSchedulingIgnoredDuringExecution=2
PodAffinity = requiredDuringSchedulingIgnoredDuringExecution=1
    preferredDuringSchedulingIgnoredDuringExecution=2
PodAntiAffinity = requiredDuringSchedulingIgnoredDuringExecution=1
    preferredDuringSchedulingIgnoredDuringExecution=2
PreferredSchedulingTerm = weight=1 preference=2
WeightedPodAffinityTerm = weight=1 podAffinityTerm=2
PodAffinityTerm = labelSelector=1 namespaces=2 topologyKey=3 namespaceSelector=4 matchLabelKeys=5
    mismatchLabelKeys=6
NodeSelector = nodeSelectorTerms=1
NodeSelectorTerm = matchExpressions=1 matchFields=2
NodeSelectorRequirement = key=1 operator=2 values=3
Volume = name=1 ^VolumeSource=2
HostPathVolumeSource = path=1 type=2
EmptyDirVolumeSource = medium=1 sizeLimit=2
SecretVolumeSource = secretName=1 items=2 defaultMode?=3 optional?=4
NFSVolumeSource = server=1 path=2 readOnly=3
PersistentVolumeClaimVolumeSource = claimName=1 readOnly=2
DownwardAPIVolumeSource = items=1 defaultMode?=2
DownwardAPIVolumeFile = path=1 fieldRef=2 resourceFieldRef=3 mode?=4
ConfigMapVolumeSource = ^LocalObjectReference=1 items=2 defaultMode?=3 optional?=4
KeyToPath = key=1 path=2 mode?=3
ProjectedVolumeSource = sources=1 defaultMode?=2
VolumeProjection = secret=1 downwardAPI=2 configMap=3 serviceAccountToken=4
SecretProjection = ^LocalObjectReference=1 items=2 optional?=4
ConfigMapProjection = ^LocalObjectReference=1 items=2 optional?=4
DownwardAPIProjection = items=1
ServiceAccountTokenProjection = audience=1 expirationSeconds?=2 path=3
"""

# Messages that exist in protobuf only; their fields are those of whatever they are part of.
_INLINE: Final = """
ProbeHandler = exec=1 httpGet=2 tcpSocket=3
VolumeSource = hostPath=1 emptyDir=2 secret=6 nfs=7 persistentVolumeClaim=10 downwardAPI=16
    configMap=19 projected=26
"""

_GROUPS: Final = """
Deployment = metadata=1 spec=2
DeploymentSpec = replicas?=1 selector=2 template=3 strategy=4 minReadySeconds=5
    revisionHistoryLimit?=6 paused=7 progressDeadlineSeconds?=9
DeploymentStrategy = type=1 rollingUpdate=2
RollingUpdateDeployment = maxUnavailable=1 maxSurge=2
Job = metadata=1 spec=2
JobSpec = parallelism?=1 completions?=2 activeDeadlineSeconds?=3 selector=4 manualSelector?=5
    template=6 backoffLimit?=7 ttlSecondsAfterFinished?=8 completionMode=9 suspend?=10
CronJob = metadata=1 spec=2
CronJobSpec = schedule=1 startingDeadlineSeconds?=2 concurrencyPolicy=3 suspend?=4 jobTemplate=5
    successfulJobsHistoryLimit?=6 failedJobsHistoryLimit?=7 timeZone=8
JobTemplateSpec = metadata=1 spec=2
PodDisruptionBudget = metadata=1 spec=2
PodDisruptionBudgetSpec = minAvailable=1 selector=2 maxUnavailable=3 unhealthyPodEvictionPolicy=4
PriorityClass = metadata=1 value?=2 globalDefault=3 description=4 preemptionPolicy=5
"""

_NETWORK: Final = """
Ingress = metadata=1 spec=2
IngressSpec = defaultBackend=1 tls=2 rules=3 ingressClassName?=4
IngressBackend = resource=3 service=4
IngressServiceBackend = name=1 port=2
ServiceBackendPort = name=1 number=2
TypedLocalObjectReference = apiGroup?=1 kind=2 name=3
IngressTLS = hosts=1 secretName=2
IngressRule = host=1 ^IngressRuleValue=2
IngressRuleValue = http=1
HTTPIngressRuleValue = paths=1
HTTPIngressPath = path=1 backend=2 pathType?=3
HorizontalPodAutoscaler = metadata=1 spec=2
v1.HorizontalPodAutoscalerSpec = scaleTargetRef=1 minReplicas?=2 maxReplicas=3
    targetCPUUtilizationPercentage?=4
v2.HorizontalPodAutoscalerSpec = scaleTargetRef=1 minReplicas?=2 maxReplicas=3 metrics=4
CrossVersionObjectReference = kind=1 name=2 apiVersion=3
MetricSpec = type=1 resource=4
ResourceMetricSource = name=1 target=2
MetricTarget = type=1 value=2 averageValue=3 averageUtilization?=4
"""


class Numbered(msgspec.Struct, frozen=True):
    """One field: its JSON name, whether zero says something, whether its fields belong outside."""

    name: str
    keeps_zero: bool = False
    inline: bool = False


Message = Mapping[int, Numbered]
"""Fields of a message by their number."""


_RBAC: Final = """
Role = metadata=1 rules=2
ClusterRole = metadata=1 rules=2 aggregationRule=3
AggregationRule = clusterRoleSelectors=1
RoleBinding = metadata=1 subjects=2 roleRef=3
ClusterRoleBinding = metadata=1 subjects=2 roleRef=3
PolicyRule = verbs=1 apiGroups=2 resources=3 resourceNames=4 nonResourceURLs=5
RoleRef = apiGroup=1 kind=2 name=3
Subject = kind=1 apiGroup=2 name=3 namespace=4
"""


def _parse(text: str) -> dict[str, Message]:
    found: dict[str, Message] = {}
    for line in text.strip().replace("\n    ", " ").splitlines():
        name, _, rest = line.partition(" = ")
        message: dict[int, Numbered] = {}
        for word in rest.split():
            field, _, number = word.rpartition("=")
            message[int(number)] = Numbered(
                field.strip("^?"), keeps_zero=field.endswith("?"), inline=field.startswith("^")
            )
        assert name not in found, f"{name} is there twice"
        found[name] = message
    return found


MESSAGES: Final[Mapping[str, Message]] = {
    name: message
    for text in (_META, _CORE, _POD, _INLINE, _GROUPS, _NETWORK, _RBAC)
    for name, message in _parse(text).items()
}
"""Every message by its short name."""

KINDS: Final = frozenset(
    {
        "ClusterRole",
        "ClusterRoleBinding",
        "ConfigMap",
        "CronJob",
        "Deployment",
        "HorizontalPodAutoscaler",
        "Ingress",
        "Job",
        "Namespace",
        "Pod",
        "PodDisruptionBudget",
        "PriorityClass",
        "ResourceQuota",
        "Role",
        "RoleBinding",
        "Secret",
        "Service",
        "ServiceAccount",
    }
)
"""Kinds whose objects are read in protobuf: those that ``kubectl create`` makes."""
