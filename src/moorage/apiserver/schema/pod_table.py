"""Fields of Pod and everything a pod template holds, in the schema language.

Place in the flow: read once at import by `schema.catalog`; the language is explained in
`schema.language`. The facts (names, types, required, merge keys) are those of the public
Kubernetes API, v1.36 staging/src/k8s.io/api/core/v1/types.go.
"""

from __future__ import annotations

POD = """
NodeSelectorRequirement = key! operator! values:[]
NodeSelectorTerm = matchExpressions:[NodeSelectorRequirement]
    matchFields:[NodeSelectorRequirement]
PreferredSchedulingTerm = preference!:NodeSelectorTerm weight!:i
NodeSelector = nodeSelectorTerms!:[NodeSelectorTerm]
NodeAffinity = preferredDuringSchedulingIgnoredDuringExecution:[PreferredSchedulingTerm]
    requiredDuringSchedulingIgnoredDuringExecution:NodeSelector
PodAffinityTerm = labelSelector:LabelSelector matchLabelKeys:[] mismatchLabelKeys:[]
    namespaceSelector:LabelSelector namespaces:[] topologyKey!
WeightedPodAffinityTerm = podAffinityTerm!:PodAffinityTerm weight!:i
PodAffinity = preferredDuringSchedulingIgnoredDuringExecution:[WeightedPodAffinityTerm]
    requiredDuringSchedulingIgnoredDuringExecution:[PodAffinityTerm]
PodAntiAffinity = preferredDuringSchedulingIgnoredDuringExecution:[WeightedPodAffinityTerm]
    requiredDuringSchedulingIgnoredDuringExecution:[PodAffinityTerm]
Affinity = nodeAffinity:NodeAffinity podAffinity:PodAffinity podAntiAffinity:PodAntiAffinity
ConfigMapKeySelector = key! name optional:b
ObjectFieldSelector = apiVersion fieldPath!
FileKeySelector = key! optional:b path! volumeName!
ResourceFieldSelector = containerName divisor:q resource!
SecretKeySelector = key! name optional:b
EnvVarSource = configMapKeyRef:ConfigMapKeySelector fieldRef:ObjectFieldSelector
    fileKeyRef:FileKeySelector resourceFieldRef:ResourceFieldSelector
    secretKeyRef:SecretKeySelector
EnvVar = name! value valueFrom:EnvVarSource
ConfigMapEnvSource = name optional:b
SecretEnvSource = name optional:b
EnvFromSource = configMapRef:ConfigMapEnvSource prefix secretRef:SecretEnvSource
ExecAction = command:[]
HTTPHeader = name! value!
HTTPGetAction = host httpHeaders:[HTTPHeader] path port!:io protocol scheme
SleepAction = seconds!:l
TCPSocketAction = host port!:io
LifecycleHandler = exec:ExecAction httpGet:HTTPGetAction sleep:SleepAction
    tcpSocket:TCPSocketAction
Lifecycle = postStart:LifecycleHandler preStop:LifecycleHandler stopSignal
GRPCAction = mode port!:i service
Probe = exec:ExecAction failureThreshold:i grpc:GRPCAction httpGet:HTTPGetAction
    initialDelaySeconds:i periodSeconds:i successThreshold:i tcpSocket:TCPSocketAction
    terminationGracePeriodSeconds:l timeoutSeconds:i
ContainerPort = containerPort!:i hostIP hostPort:i name protocol
ContainerResizePolicy = resourceName! restartPolicy!
ResourceClaim = name! request
ResourceRequirements = claims:[ResourceClaim] limits:{q} requests:{q}
ContainerRestartRuleOnExitCodes = operator! values:[i]
ContainerRestartRule = action! exitCodes:ContainerRestartRuleOnExitCodes
AppArmorProfile = localhostProfile type!
Capabilities = add:[] drop:[]
SELinuxOptions = level role type user
SeccompProfile = localhostProfile type!
WindowsSecurityContextOptions = gmsaCredentialSpec gmsaCredentialSpecName hostProcess:b
    runAsUserName
SecurityContext = allowPrivilegeEscalation:b appArmorProfile:AppArmorProfile
    capabilities:Capabilities privileged:b procMount readOnlyRootFilesystem:b runAsGroup:l
    runAsNonRoot:b runAsUser:l seLinuxOptions:SELinuxOptions seccompProfile:SeccompProfile
    windowsOptions:WindowsSecurityContextOptions
VolumeDevice = devicePath! name!
VolumeMount = mountPath! mountPropagation name! readOnly:b recursiveReadOnly subPath subPathExpr
Container = args:[] command:[] env:[EnvVar]*name envFrom:[EnvFromSource] image imagePullPolicy
    lifecycle:Lifecycle livenessProbe:Probe name! ports:[ContainerPort]*containerPort
    readinessProbe:Probe resizePolicy:[ContainerResizePolicy] resources:ResourceRequirements
    restartPolicy restartPolicyRules:[ContainerRestartRule] securityContext:SecurityContext
    startupProbe:Probe stdin:b stdinOnce:b terminationMessagePath terminationMessagePolicy tty:b
    volumeDevices:[VolumeDevice]*devicePath volumeMounts:[VolumeMount]*mountPath workingDir
PodDNSConfigOption = name value
PodDNSConfig = nameservers:[] options:[PodDNSConfigOption] searches:[]
EphemeralContainer = args:[] command:[] env:[EnvVar]*name envFrom:[EnvFromSource] image
    imagePullPolicy lifecycle:Lifecycle livenessProbe:Probe name!
    ports:[ContainerPort]*containerPort readinessProbe:Probe
    resizePolicy:[ContainerResizePolicy] resources:ResourceRequirements restartPolicy
    restartPolicyRules:[ContainerRestartRule] securityContext:SecurityContext startupProbe:Probe
    stdin:b stdinOnce:b targetContainerName terminationMessagePath terminationMessagePolicy
    tty:b volumeDevices:[VolumeDevice]*devicePath volumeMounts:[VolumeMount]*mountPath
    workingDir
HostAlias = hostnames:[] ip!
LocalObjectReference = name
PodOS = name!
PodReadinessGate = conditionType!
PodResourceClaim = name! resourceClaimName resourceClaimTemplateName
PodSchedulingGate = name!
PodSchedulingGroup = podGroupName
Sysctl = name! value!
PodSecurityContext = appArmorProfile:AppArmorProfile fsGroup:l fsGroupChangePolicy runAsGroup:l
    runAsNonRoot:b runAsUser:l seLinuxChangePolicy seLinuxOptions:SELinuxOptions
    seccompProfile:SeccompProfile supplementalGroups:[l] supplementalGroupsPolicy
    sysctls:[Sysctl] windowsOptions:WindowsSecurityContextOptions
Toleration = effect key operator tolerationSeconds:l value
TopologySpreadConstraint = labelSelector:LabelSelector matchLabelKeys:[] maxSkew!:i minDomains:i
    nodeAffinityPolicy nodeTaintsPolicy topologyKey! whenUnsatisfiable!
AWSElasticBlockStoreVolumeSource = fsType partition:i readOnly:b volumeID!
AzureDiskVolumeSource = cachingMode diskName! diskURI! fsType kind readOnly:b
AzureFileVolumeSource = readOnly:b secretName shareName
CephFSVolumeSource = monitors:[] path readOnly:b secretFile secretRef:LocalObjectReference user
CinderVolumeSource = fsType readOnly:b secretRef:LocalObjectReference volumeID!
KeyToPath = key! mode:i path!
ConfigMapVolumeSource = defaultMode:i items:[KeyToPath] name optional:b
CSIVolumeSource = driver! fsType nodePublishSecretRef:LocalObjectReference readOnly:b
    volumeAttributes:{}
DownwardAPIVolumeFile = fieldRef:ObjectFieldSelector mode:i path!
    resourceFieldRef:ResourceFieldSelector
DownwardAPIVolumeSource = defaultMode:i items:[DownwardAPIVolumeFile]
EmptyDirVolumeSource = medium sizeLimit:q
TypedLocalObjectReference = apiGroup kind! name!
TypedObjectReference = apiGroup kind! name! namespace
VolumeResourceRequirements = limits:{q} requests:{q}
PersistentVolumeClaimSpec = accessModes:[] dataSource:TypedLocalObjectReference
    dataSourceRef:TypedObjectReference resources:VolumeResourceRequirements
    selector:LabelSelector storageClassName volumeAttributesClassName volumeMode volumeName
PersistentVolumeClaimTemplate = metadata:ObjectMeta spec!:PersistentVolumeClaimSpec
EphemeralVolumeSource = volumeClaimTemplate:PersistentVolumeClaimTemplate
FCVolumeSource = fsType lun:i readOnly:b targetWWNs:[] wwids:[]
FlexVolumeSource = driver fsType options:{} readOnly:b secretRef:LocalObjectReference
FlockerVolumeSource = datasetName datasetUUID
GCEPersistentDiskVolumeSource = fsType partition:i pdName! readOnly:b
GitRepoVolumeSource = directory repository revision
GlusterfsVolumeSource = endpoints path readOnly:b
HostPathVolumeSource = path! type
ImageVolumeSource = pullPolicy reference
ISCSIVolumeSource = chapAuthDiscovery:b chapAuthSession:b fsType initiatorName iqn!
    iscsiInterface lun!:i portals:[] readOnly:b secretRef:LocalObjectReference targetPortal!
NFSVolumeSource = path! readOnly:b server!
PersistentVolumeClaimVolumeSource = claimName! readOnly:b
PhotonPersistentDiskVolumeSource = fsType pdID
PortworxVolumeSource = fsType readOnly:b volumeID
ClusterTrustBundleProjection = labelSelector:LabelSelector name optional:b path signerName
ConfigMapProjection = items:[KeyToPath] name optional:b
DownwardAPIProjection = items:[DownwardAPIVolumeFile]
PodCertificateProjection = certificateChainPath credentialBundlePath keyPath keyType
    maxExpirationSeconds:i signerName userAnnotations:{}
SecretProjection = items:[KeyToPath] name optional:b
ServiceAccountTokenProjection = audience expirationSeconds:l path!
VolumeProjection = clusterTrustBundle:ClusterTrustBundleProjection configMap:ConfigMapProjection
    downwardAPI:DownwardAPIProjection podCertificate:PodCertificateProjection
    secret:SecretProjection serviceAccountToken:ServiceAccountTokenProjection
ProjectedVolumeSource = defaultMode:i sources:[VolumeProjection]
QuobyteVolumeSource = group readOnly:b registry tenant user volume
RBDVolumeSource = fsType image! keyring monitors!:[] pool readOnly:b
    secretRef:LocalObjectReference user
ScaleIOVolumeSource = fsType gateway protectionDomain readOnly:b secretRef:LocalObjectReference
    sslEnabled:b storageMode storagePool system volumeName
SecretVolumeSource = defaultMode:i items:[KeyToPath] optional:b secretName
StorageOSVolumeSource = fsType readOnly:b secretRef:LocalObjectReference volumeName
    volumeNamespace
VsphereVirtualDiskVolumeSource = fsType storagePolicyID storagePolicyName volumePath
Volume = awsElasticBlockStore:AWSElasticBlockStoreVolumeSource azureDisk:AzureDiskVolumeSource
    azureFile:AzureFileVolumeSource cephfs:CephFSVolumeSource cinder:CinderVolumeSource
    configMap:ConfigMapVolumeSource csi:CSIVolumeSource downwardAPI:DownwardAPIVolumeSource
    emptyDir:EmptyDirVolumeSource ephemeral:EphemeralVolumeSource fc:FCVolumeSource
    flexVolume:FlexVolumeSource flocker:FlockerVolumeSource
    gcePersistentDisk:GCEPersistentDiskVolumeSource gitRepo:GitRepoVolumeSource
    glusterfs:GlusterfsVolumeSource hostPath:HostPathVolumeSource image:ImageVolumeSource
    iscsi:ISCSIVolumeSource name! nfs:NFSVolumeSource
    persistentVolumeClaim:PersistentVolumeClaimVolumeSource
    photonPersistentDisk:PhotonPersistentDiskVolumeSource portworxVolume:PortworxVolumeSource
    projected:ProjectedVolumeSource quobyte:QuobyteVolumeSource rbd:RBDVolumeSource
    scaleIO:ScaleIOVolumeSource secret:SecretVolumeSource storageos:StorageOSVolumeSource
    vsphereVolume:VsphereVirtualDiskVolumeSource
PodSpec = activeDeadlineSeconds:l affinity:Affinity automountServiceAccountToken:b
    containers!:[Container]*name dnsConfig:PodDNSConfig dnsPolicy enableServiceLinks:b
    ephemeralContainers:[EphemeralContainer]*name hostAliases:[HostAlias]*ip hostIPC:b
    hostNetwork:b hostPID:b hostUsers:b hostname hostnameOverride
    imagePullSecrets:[LocalObjectReference]*name initContainers:[Container]*name nodeName
    nodeSelector:{} os:PodOS overhead:{q} preemptionPolicy priority:i priorityClassName
    readinessGates:[PodReadinessGate] resourceClaims:[PodResourceClaim]*name~
    resources:ResourceRequirements restartPolicy runtimeClassName schedulerName
    schedulingGates:[PodSchedulingGate]*name schedulingGroup:PodSchedulingGroup
    securityContext:PodSecurityContext serviceAccount serviceAccountName setHostnameAsFQDN:b
    shareProcessNamespace:b subdomain terminationGracePeriodSeconds:l tolerations:[Toleration]
    topologySpreadConstraints:[TopologySpreadConstraint]*topologyKey volumes:[Volume]*name~
PodCondition = lastProbeTime:t lastTransitionTime:t message observedGeneration:l reason status!
    type!
ResourceHealth = health message resourceID
ResourceStatus = name resources:[ResourceHealth]
ContainerStateRunning = startedAt:t
ContainerStateTerminated = containerID exitCode:i finishedAt:t message reason signal:i
    startedAt:t
ContainerStateWaiting = message reason
ContainerState = running:ContainerStateRunning terminated:ContainerStateTerminated
    waiting:ContainerStateWaiting
LinuxContainerUser = gid:l supplementalGroups:[l] uid:l
ContainerUser = linux:LinuxContainerUser
ImageVolumeStatus = imageRef
VolumeStatus = image:ImageVolumeStatus
VolumeMountStatus = mountPath name readOnly:b recursiveReadOnly volumeStatus:VolumeStatus
ContainerStatus = allocatedResources:{q} allocatedResourcesStatus:[ResourceStatus]*name
    containerID image! imageID! lastState:ContainerState name! ready!:b
    resources:ResourceRequirements restartCount!:i started:b state:ContainerState stopSignal
    user:ContainerUser volumeMounts:[VolumeMountStatus]*mountPath
ContainerExtendedResourceRequest = containerName requestName resourceName
PodExtendedResourceClaimStatus = requestMappings:[ContainerExtendedResourceRequest]
    resourceClaimName
HostIP = ip!
NodeAllocatableMappedResources = name quantity:q
NodeAllocatableOverheadResources = name perContainer:q perPod:q
NodeAllocatableResourceClaimStatus = containers:[] mapping:[NodeAllocatableMappedResources]
    overhead:[NodeAllocatableOverheadResources] resourceClaimName
PodIP = ip!
PodResourceClaimStatus = name! resourceClaimName
PodStatus = allocatedResources:{q} conditions:[PodCondition]*type
    containerStatuses:[ContainerStatus] ephemeralContainerStatuses:[ContainerStatus]
    extendedResourceClaimStatus:PodExtendedResourceClaimStatus hostIP hostIPs:[HostIP]*ip
    initContainerStatuses:[ContainerStatus] message
    nodeAllocatableResourceClaimStatuses:[NodeAllocatableResourceClaimStatus] nominatedNodeName
    observedGeneration:l phase podIP podIPs:[PodIP]*ip qosClass reason resize
    resourceClaimStatuses:[PodResourceClaimStatus]*name~ resources:ResourceRequirements
    startTime:t
Pod = @ spec:PodSpec status:PodStatus
"""
