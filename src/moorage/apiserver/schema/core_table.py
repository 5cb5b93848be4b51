"""Fields of the shared metadata and of the core kinds other than Pod, in the schema language.

Place in the flow: read once at import by `schema.catalog`; the language is explained in
`schema.language`. The facts (names, types, required, merge keys) are those of the public
Kubernetes API, v1.36 staging/src/k8s.io/api/core/v1 and apimachinery/pkg/apis/meta/v1.
"""

from __future__ import annotations

META = """
ManagedFieldsEntry = apiVersion fieldsType fieldsV1:any manager operation subresource time:t
OwnerReference = apiVersion! blockOwnerDeletion:b controller:b kind! name! uid!
ObjectMeta = annotations:{} creationTimestamp:t deletionGracePeriodSeconds:l deletionTimestamp:t
    finalizers:[]* generateName generation:l labels:{} managedFields:[ManagedFieldsEntry] name
    namespace ownerReferences:[OwnerReference]*uid resourceVersion selfLink uid
LabelSelectorRequirement = key! operator! values:[]
LabelSelector = matchExpressions:[LabelSelectorRequirement] matchLabels:{}
Condition = lastTransitionTime!:t message! observedGeneration:l reason! status! type!
Preconditions = resourceVersion uid
DeleteOptions = apiVersion dryRun:[] gracePeriodSeconds:l
    ignoreStoreReadErrorWithClusterBreakingPotential:b kind orphanDependents:b
    preconditions:Preconditions propagationPolicy
StatusCause = field message reason
StatusDetails = causes:[StatusCause] group kind name retryAfterSeconds:i uid
ListMeta = continue remainingItemCount:l resourceVersion selfLink
Status = apiVersion code:i details:StatusDetails kind message metadata:ListMeta reason status
"""

CORE = """
ConfigMapNodeConfigSource = kubeletConfigKey name namespace resourceVersion uid
NodeConfigSource = configMap:ConfigMapNodeConfigSource
Taint = effect! key! timeAdded:t value
NodeSpec = configSource:NodeConfigSource externalID podCIDR podCIDRs:[]* providerID
    taints:[Taint] unschedulable:b
NodeAddress = address! type!
NodeCondition = lastHeartbeatTime:t lastTransitionTime:t message reason status! type!
NodeConfigStatus = active:NodeConfigSource assigned:NodeConfigSource error
    lastKnownGood:NodeConfigSource
DaemonEndpoint = Port:i
NodeDaemonEndpoints = kubeletEndpoint:DaemonEndpoint
NodeFeatures = supplementalGroupsPolicy:b
ContainerImage = names:[] sizeBytes:l
NodeSwapStatus = capacity:l
NodeSystemInfo = architecture bootID containerRuntimeVersion kernelVersion kubeProxyVersion
    kubeletVersion machineID operatingSystem osImage runningInUserNamespace:b
    swap:NodeSwapStatus systemUUID
NodeRuntimeHandlerFeatures = recursiveReadOnlyMounts:b userNamespaces:b
NodeRuntimeHandler = features:NodeRuntimeHandlerFeatures name
AttachedVolume = devicePath! name!
NodeStatus = addresses:[NodeAddress]*type allocatable:{q} capacity:{q}
    conditions:[NodeCondition]*type config:NodeConfigStatus daemonEndpoints:NodeDaemonEndpoints
    declaredFeatures:[] features:NodeFeatures images:[ContainerImage] nodeInfo:NodeSystemInfo
    phase runtimeHandlers:[NodeRuntimeHandler] volumesAttached:[AttachedVolume] volumesInUse:[]
Node = @ spec:NodeSpec status:NodeStatus
NamespaceSpec = finalizers:[]
NamespaceCondition = lastTransitionTime:t message reason status! type!
NamespaceStatus = conditions:[NamespaceCondition]*type phase
Namespace = @ spec:NamespaceSpec status:NamespaceStatus
ServicePort = appProtocol name nodePort:i port!:i protocol targetPort:io
ClientIPConfig = timeoutSeconds:i
SessionAffinityConfig = clientIP:ClientIPConfig
ServiceSpec = allocateLoadBalancerNodePorts:b clusterIP clusterIPs:[] externalIPs:[]
    externalName externalTrafficPolicy healthCheckNodePort:i internalTrafficPolicy ipFamilies:[]
    ipFamilyPolicy loadBalancerClass loadBalancerIP loadBalancerSourceRanges:[]
    ports:[ServicePort]*port publishNotReadyAddresses:b selector:{} sessionAffinity
    sessionAffinityConfig:SessionAffinityConfig trafficDistribution type
PortStatus = error port:i protocol
LoadBalancerIngress = hostname ip ipMode ports:[PortStatus]
LoadBalancerStatus = ingress:[LoadBalancerIngress]
ServiceStatus = conditions:[Condition]*type loadBalancer:LoadBalancerStatus
Service = @ spec:ServiceSpec status:ServiceStatus
PodTemplateSpec = metadata:ObjectMeta spec:PodSpec
ReplicationControllerSpec = minReadySeconds:i replicas:i selector:{} template:PodTemplateSpec
ReplicationControllerCondition = lastTransitionTime:t message reason status! type!
ReplicationControllerStatus = availableReplicas:i
    conditions:[ReplicationControllerCondition]*type fullyLabeledReplicas:i observedGeneration:l
    readyReplicas:i replicas:i
ReplicationController = @ spec:ReplicationControllerSpec status:ReplicationControllerStatus
AzureFilePersistentVolumeSource = readOnly:b secretName secretNamespace shareName
SecretReference = name namespace
CephFSPersistentVolumeSource = monitors:[] path readOnly:b secretFile secretRef:SecretReference
    user
CinderPersistentVolumeSource = fsType readOnly:b secretRef:SecretReference volumeID
ObjectReference = apiVersion fieldPath kind name namespace resourceVersion uid
CSIPersistentVolumeSource = controllerExpandSecretRef:SecretReference
    controllerPublishSecretRef:SecretReference driver! fsType
    nodeExpandSecretRef:SecretReference nodePublishSecretRef:SecretReference
    nodeStageSecretRef:SecretReference readOnly:b volumeAttributes:{} volumeHandle!
FlexPersistentVolumeSource = driver fsType options:{} readOnly:b secretRef:SecretReference
GlusterfsPersistentVolumeSource = endpoints endpointsNamespace path readOnly:b
ISCSIPersistentVolumeSource = chapAuthDiscovery:b chapAuthSession:b fsType initiatorName iqn!
    iscsiInterface lun!:i portals:[] readOnly:b secretRef:SecretReference targetPortal!
LocalVolumeSource = fsType path!
VolumeNodeAffinity = required:NodeSelector
RBDPersistentVolumeSource = fsType image! keyring monitors!:[] pool readOnly:b
    secretRef:SecretReference user
ScaleIOPersistentVolumeSource = fsType gateway protectionDomain readOnly:b
    secretRef:SecretReference sslEnabled:b storageMode storagePool system volumeName
StorageOSPersistentVolumeSource = fsType readOnly:b secretRef:ObjectReference volumeName
    volumeNamespace
PersistentVolumeSpec = accessModes:[] awsElasticBlockStore:AWSElasticBlockStoreVolumeSource
    azureDisk:AzureDiskVolumeSource azureFile:AzureFilePersistentVolumeSource capacity:{q}
    cephfs:CephFSPersistentVolumeSource cinder:CinderPersistentVolumeSource
    claimRef:ObjectReference csi:CSIPersistentVolumeSource fc:FCVolumeSource
    flexVolume:FlexPersistentVolumeSource flocker:FlockerVolumeSource
    gcePersistentDisk:GCEPersistentDiskVolumeSource glusterfs:GlusterfsPersistentVolumeSource
    hostPath:HostPathVolumeSource iscsi:ISCSIPersistentVolumeSource local:LocalVolumeSource
    mountOptions:[] nfs:NFSVolumeSource nodeAffinity:VolumeNodeAffinity
    persistentVolumeReclaimPolicy photonPersistentDisk:PhotonPersistentDiskVolumeSource
    portworxVolume:PortworxVolumeSource quobyte:QuobyteVolumeSource
    rbd:RBDPersistentVolumeSource scaleIO:ScaleIOPersistentVolumeSource storageClassName
    storageos:StorageOSPersistentVolumeSource volumeAttributesClassName volumeMode
    vsphereVolume:VsphereVirtualDiskVolumeSource
PersistentVolumeStatus = lastPhaseTransitionTime:t message phase reason
PersistentVolume = @ spec:PersistentVolumeSpec status:PersistentVolumeStatus
PersistentVolumeClaimCondition = lastProbeTime:t lastTransitionTime:t message reason status!
    type!
ModifyVolumeStatus = status targetVolumeAttributesClassName
PersistentVolumeClaimStatus = accessModes:[] allocatedResourceStatuses:{} allocatedResources:{q}
    capacity:{q} conditions:[PersistentVolumeClaimCondition]*type
    currentVolumeAttributesClassName modifyVolumeStatus:ModifyVolumeStatus phase
PersistentVolumeClaim = @ spec:PersistentVolumeClaimSpec status:PersistentVolumeClaimStatus
ConfigMap = @ binaryData:{bytes} data:{} immutable:b
Secret = @ data:{bytes} immutable:b stringData:{} type
ServiceAccount = @ automountServiceAccountToken:b imagePullSecrets:[LocalObjectReference]
    secrets:[ObjectReference]*name
EventSeries = count:i lastObservedTime:mt
EventSource = component host
Event = @ action count:i eventTime:mt firstTimestamp:t involvedObject:ObjectReference
    lastTimestamp:t message reason related:ObjectReference reportingComponent reportingInstance
    series:EventSeries source:EventSource type
TopologySelectorLabelRequirement = key! values!:[]
TopologySelectorTerm = matchLabelExpressions:[TopologySelectorLabelRequirement]
Binding = @ target!:ObjectReference
"""
