"""Fields of the kinds of the named API groups, in the schema language.

Place in the flow: read once at import by `schema.catalog`; the language is explained in
`schema.language`. The facts (names, types, required, merge keys) are those of the public
Kubernetes API, v1.36 staging/src/k8s.io/api.
"""

from __future__ import annotations

APPS = """
RollingUpdateDeployment = maxSurge:io maxUnavailable:io
DeploymentStrategy = rollingUpdate:RollingUpdateDeployment type
DeploymentSpec = minReadySeconds:i paused:b progressDeadlineSeconds:i replicas:i
    revisionHistoryLimit:i selector!:LabelSelector strategy:DeploymentStrategy~
    template!:PodTemplateSpec
DeploymentCondition = lastTransitionTime:t lastUpdateTime:t message reason status! type!
DeploymentStatus = availableReplicas:i collisionCount:i conditions:[DeploymentCondition]*type
    observedGeneration:l readyReplicas:i replicas:i terminatingReplicas:i unavailableReplicas:i
    updatedReplicas:i
Deployment = @ spec:DeploymentSpec status:DeploymentStatus
ReplicaSetSpec = minReadySeconds:i replicas:i selector!:LabelSelector template:PodTemplateSpec
ReplicaSetCondition = lastTransitionTime:t message reason status! type!
ReplicaSetStatus = availableReplicas:i conditions:[ReplicaSetCondition]*type
    fullyLabeledReplicas:i observedGeneration:l readyReplicas:i replicas:i terminatingReplicas:i
ReplicaSet = @ spec:ReplicaSetSpec status:ReplicaSetStatus
StatefulSetOrdinals = start:i
StatefulSetPersistentVolumeClaimRetentionPolicy = whenDeleted whenScaled
RollingUpdateStatefulSetStrategy = maxUnavailable:io partition:i
StatefulSetUpdateStrategy = rollingUpdate:RollingUpdateStatefulSetStrategy type
StatefulSetSpec = minReadySeconds:i ordinals:StatefulSetOrdinals
    persistentVolumeClaimRetentionPolicy:StatefulSetPersistentVolumeClaimRetentionPolicy
    podManagementPolicy replicas:i revisionHistoryLimit:i selector!:LabelSelector serviceName
    template!:PodTemplateSpec updateStrategy:StatefulSetUpdateStrategy
    volumeClaimTemplates:[PersistentVolumeClaim]
StatefulSetCondition = lastTransitionTime:t message reason status! type!
StatefulSetStatus = availableReplicas:i collisionCount:i conditions:[StatefulSetCondition]*type
    currentReplicas:i currentRevision observedGeneration:l readyReplicas:i replicas:i
    updateRevision updatedReplicas:i
StatefulSet = @ spec:StatefulSetSpec status:StatefulSetStatus
RollingUpdateDaemonSet = maxSurge:io maxUnavailable:io
DaemonSetUpdateStrategy = rollingUpdate:RollingUpdateDaemonSet type
DaemonSetSpec = minReadySeconds:i revisionHistoryLimit:i selector!:LabelSelector
    template!:PodTemplateSpec updateStrategy:DaemonSetUpdateStrategy
DaemonSetCondition = lastTransitionTime:t message reason status! type!
DaemonSetStatus = collisionCount:i conditions:[DaemonSetCondition]*type currentNumberScheduled:i
    desiredNumberScheduled:i numberAvailable:i numberMisscheduled:i numberReady:i
    numberUnavailable:i observedGeneration:l updatedNumberScheduled:i
DaemonSet = @ spec:DaemonSetSpec status:DaemonSetStatus
ControllerRevision = @ data:any revision!:l
"""

BATCH = """
PodFailurePolicyOnExitCodesRequirement = containerName operator values:[i]
PodFailurePolicyOnPodConditionsPattern = status type
PodFailurePolicyRule = action! onExitCodes:PodFailurePolicyOnExitCodesRequirement
    onPodConditions:[PodFailurePolicyOnPodConditionsPattern]
PodFailurePolicy = rules!:[PodFailurePolicyRule]
SuccessPolicyRule = succeededCount:i succeededIndexes
SuccessPolicy = rules:[SuccessPolicyRule]
JobSpec = activeDeadlineSeconds:l backoffLimit:i backoffLimitPerIndex:i completionMode
    completions:i managedBy manualSelector:b maxFailedIndexes:i parallelism:i
    podFailurePolicy:PodFailurePolicy podReplacementPolicy selector:LabelSelector
    successPolicy:SuccessPolicy suspend:b template!:PodTemplateSpec ttlSecondsAfterFinished:i
JobCondition = lastProbeTime:t lastTransitionTime:t message reason status! type!
UncountedTerminatedPods = failed:[] succeeded:[]
JobStatus = active:i completedIndexes completionTime:t conditions:[JobCondition]*type failed:i
    failedIndexes ready:i startTime:t succeeded:i terminating:i
    uncountedTerminatedPods:UncountedTerminatedPods
Job = @ spec:JobSpec status:JobStatus
JobTemplateSpec = metadata:ObjectMeta spec:JobSpec
CronJobSpec = concurrencyPolicy failedJobsHistoryLimit:i jobTemplate!:JobTemplateSpec schedule!
    startingDeadlineSeconds:l successfulJobsHistoryLimit:i suspend:b timeZone
CronJobStatus = active:[ObjectReference] lastScheduleTime:t lastSuccessfulTime:t
CronJob = @ spec:CronJobSpec status:CronJobStatus
"""

POLICY = """
PodDisruptionBudgetSpec = maxUnavailable:io minAvailable:io selector:LabelSelector=
    unhealthyPodEvictionPolicy
PodDisruptionBudgetStatus = conditions:[Condition]*type currentHealthy:i desiredHealthy:i
    disruptedPods:{t} disruptionsAllowed:i expectedPods:i observedGeneration:l
PodDisruptionBudget = @ spec:PodDisruptionBudgetSpec status:PodDisruptionBudgetStatus
Eviction = @ deleteOptions:DeleteOptions
"""

SCHEDULING = """
PriorityClass = @ description globalDefault:b preemptionPolicy value!:i
"""

GROUPS = """
WorkloadPodGroupTemplateReference = podGroupTemplateName! workloadName!
PodGroupTemplateReference = workload:WorkloadPodGroupTemplateReference
GangSchedulingPolicy = minCount!:i
PodGroupSchedulingPolicy = basic:{} gang:GangSchedulingPolicy
TopologyConstraint = key!
PodGroupSchedulingConstraints = topology:[TopologyConstraint]
PodGroupResourceClaim = name! resourceClaimName resourceClaimTemplateName
PodGroupSpec = disruptionMode podGroupTemplateRef:PodGroupTemplateReference priority:i
    priorityClassName resourceClaims:[PodGroupResourceClaim]*name
    schedulingConstraints:PodGroupSchedulingConstraints schedulingPolicy!:PodGroupSchedulingPolicy
PodGroupResourceClaimStatus = name! resourceClaimName
PodGroupStatus = conditions:[Condition]*type
    resourceClaimStatuses:[PodGroupResourceClaimStatus]*name
PodGroup = @ spec!:PodGroupSpec status:PodGroupStatus
WorkloadControllerReference = apiGroup kind! name!
PodGroupTemplate = disruptionMode name! priority:i priorityClassName
    resourceClaims:[PodGroupResourceClaim]*name
    schedulingConstraints:PodGroupSchedulingConstraints schedulingPolicy!:PodGroupSchedulingPolicy
WorkloadSpec = controllerRef:WorkloadControllerReference podGroupTemplates!:[PodGroupTemplate]*name
Workload = @ spec!:WorkloadSpec
"""

STORAGE = """
StorageClass = @ allowVolumeExpansion:b allowedTopologies:[TopologySelectorTerm] mountOptions:[]
    parameters:{} provisioner! reclaimPolicy volumeBindingMode
VolumeNodeResources = count:i
CSINodeDriver = allocatable:VolumeNodeResources name! nodeID! topologyKeys:[]
CSINodeSpec = drivers!:[CSINodeDriver]*name
CSINode = @ spec!:CSINodeSpec
TokenRequest = audience! expirationSeconds:l
CSIDriverSpec = attachRequired:b fsGroupPolicy nodeAllocatableUpdatePeriodSeconds:i
    podInfoOnMount:b preventPodSchedulingIfMissing:b requiresRepublish:b seLinuxMount:b
    serviceAccountTokenInSecrets:b storageCapacity:b tokenRequests:[TokenRequest]
    volumeLifecycleModes:[]
CSIDriver = @ spec!:CSIDriverSpec
CSIStorageCapacity = @ capacity:q maximumVolumeSize:q nodeTopology:LabelSelector
    storageClassName!
VolumeAttachmentSource = inlineVolumeSpec:PersistentVolumeSpec persistentVolumeName
VolumeAttachmentSpec = attacher! nodeName! source!:VolumeAttachmentSource
VolumeError = errorCode:i message time:t
VolumeAttachmentStatus = attachError:VolumeError attached:b attachmentMetadata:{}
    detachError:VolumeError
VolumeAttachment = @ spec!:VolumeAttachmentSpec status:VolumeAttachmentStatus
"""

COORDINATION = """
LeaseSpec = acquireTime:mt holderIdentity leaseDurationSeconds:i leaseTransitions:i
    preferredHolder renewTime:mt strategy
Lease = @ spec:LeaseSpec
"""

EVENTS = """
EventSeries = count:i lastObservedTime:mt
Event = @ action deprecatedCount:i deprecatedFirstTimestamp:t deprecatedLastTimestamp:t
    deprecatedSource:EventSource eventTime:mt note reason regarding:ObjectReference
    related:ObjectReference reportingController reportingInstance series:EventSeries type
"""
