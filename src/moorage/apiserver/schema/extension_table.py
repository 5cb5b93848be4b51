"""Fields of CustomResourceDefinition, in the schema language.

Place in the flow: read once at import by `schema.catalog`; the language is explained in
`schema.language`. The facts are those of the public Kubernetes API, v1.36
staging/src/k8s.io/apiextensions-apiserver. A schema may contain itself, which this language
cannot say; it is checked by `moorage.apiserver.custom.structural`.
"""

from __future__ import annotations

EXTENSIONS = """
CustomResourceColumnDefinition = description format jsonPath! name! priority:i type!
CustomResourceConversion = strategy! webhook:any
CustomResourceDefinitionNames = categories:[] kind! listKind plural! shortNames:[] singular
CustomResourceSubresourceScale = labelSelectorPath specReplicasPath! statusReplicasPath!
CustomResourceSubresources = scale:CustomResourceSubresourceScale status:any
CustomResourceValidation = openAPIV3Schema:any
SelectableField = jsonPath!
CustomResourceDefinitionVersion = additionalPrinterColumns:[CustomResourceColumnDefinition]
    deprecated:b deprecationWarning name! schema:CustomResourceValidation
    selectableFields:[SelectableField] served!:b storage!:b
    subresources:CustomResourceSubresources
CustomResourceDefinitionSpec = conversion:CustomResourceConversion group!
    names!:CustomResourceDefinitionNames preserveUnknownFields:b scope!
    versions!:[CustomResourceDefinitionVersion]
CustomResourceDefinitionCondition = lastTransitionTime:t message observedGeneration:l reason
    status! type!
CustomResourceDefinitionStatus = acceptedNames:CustomResourceDefinitionNames
    conditions:[CustomResourceDefinitionCondition]*type observedGeneration:l storedVersions:[]
CustomResourceDefinition = @ spec!:CustomResourceDefinitionSpec
    status:CustomResourceDefinitionStatus
"""
