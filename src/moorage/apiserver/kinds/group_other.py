"""The kinds of small groups, each with a module of its own.

Place in the flow: one table of `moorage.apiserver.kinds.registry`.
"""

from __future__ import annotations

from moorage.apiserver.kinds.certificate_request import CERTIFICATE_REQUEST
from moorage.apiserver.kinds.pod_template import POD_TEMPLATE
from moorage.apiserver.kinds.runtime_class import RUNTIME_CLASS

KINDS = (CERTIFICATE_REQUEST, POD_TEMPLATE, RUNTIME_CLASS)
