"""Fields of the kinds of ``resource.k8s.io/v1``, in the schema language.

Place in the flow: read once at import by `schema.catalog`; the language is explained in
`schema.language`. The facts are those of the public Kubernetes API, v1.36
staging/src/k8s.io/api/resource/v1.
"""

from __future__ import annotations

DEVICES = """
CELDeviceSelector = expression!
DeviceSelector = cel:CELDeviceSelector
OpaqueDeviceConfiguration = driver! parameters!:any
DeviceClassConfiguration = opaque:OpaqueDeviceConfiguration
DeviceClassSpec = config:[DeviceClassConfiguration] extendedResourceName selectors:[DeviceSelector]
DeviceClass = @ spec!:DeviceClassSpec
DeviceToleration = effect key operator tolerationSeconds:l value
CapacityRequirements = requests:{q}
ExactDeviceRequest = adminAccess:b allocationMode capacity:CapacityRequirements count:l
    deviceClassName! selectors:[DeviceSelector] tolerations:[DeviceToleration]
DeviceSubRequest = allocationMode capacity:CapacityRequirements count:l deviceClassName! name!
    selectors:[DeviceSelector] tolerations:[DeviceToleration]
DeviceRequest = exactly:ExactDeviceRequest firstAvailable:[DeviceSubRequest] name!
DeviceConstraint = distinctAttribute matchAttribute requests:[]
DeviceClaimConfiguration = opaque:OpaqueDeviceConfiguration requests:[]
DeviceClaim = config:[DeviceClaimConfiguration] constraints:[DeviceConstraint]
    requests:[DeviceRequest]
ResourceClaimSpec = devices:DeviceClaim
DeviceRequestAllocationResult = adminAccess:b bindingConditions:[] bindingFailureConditions:[]
    consumedCapacity:{q} device! driver! pool! request! shareID tolerations:[DeviceToleration]
DeviceAllocationConfiguration = opaque:OpaqueDeviceConfiguration requests:[] source!
DeviceAllocationResult = config:[DeviceAllocationConfiguration]
    results:[DeviceRequestAllocationResult]
AllocationResult = allocationTimestamp:t devices:DeviceAllocationResult nodeSelector:NodeSelector
NetworkDeviceData = hardwareAddress interfaceName ips:[]
AllocatedDeviceStatus = conditions:[Condition] data:any device! driver!
    networkData:NetworkDeviceData pool! shareID
ResourceClaimConsumerReference = apiGroup name! resource! uid!
ResourceClaimStatus = allocation:AllocationResult devices:[AllocatedDeviceStatus]
    reservedFor:[ResourceClaimConsumerReference]*uid
ResourceClaim = @ spec!:ResourceClaimSpec status:ResourceClaimStatus
ResourceClaimTemplateSpec = metadata:ObjectMeta spec!:ResourceClaimSpec
ResourceClaimTemplate = @ spec!:ResourceClaimTemplateSpec
DeviceAttribute = bool:b int:l string version
CapacityRequestPolicyRange = max:q min!:q step:q
CapacityRequestPolicy = default:q validRange:CapacityRequestPolicyRange validValues:[q]
DeviceCapacity = requestPolicy:CapacityRequestPolicy value!:q
Counter = value!:q
CounterSet = counters!:{Counter} name!
DeviceCounterConsumption = counterSet! counters!:{Counter}
DeviceTaint = effect! key! timeAdded:t value
Device = allNodes:b allowMultipleAllocations:b attributes:{DeviceAttribute} bindingConditions:[]
    bindingFailureConditions:[] bindsToNode:b capacity:{DeviceCapacity}
    consumesCounters:[DeviceCounterConsumption] name! nodeName nodeSelector:NodeSelector
    taints:[DeviceTaint]
ResourcePool = generation!:l name! resourceSliceCount!:l
ResourceSliceSpec = allNodes:b devices:[Device] driver! nodeName nodeSelector:NodeSelector
    perDeviceNodeSelection:b pool!:ResourcePool sharedCounters:[CounterSet]
ResourceSlice = @ spec!:ResourceSliceSpec
"""
