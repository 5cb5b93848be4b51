"""Prefer nodes by a number or a time in a label or an annotation.

    moorage up --plugin examples/plugins/node_metadata.py:NodeMetadata

The plugin NodeMetadata of kubernetes-sigs/scheduler-plugins: its arguments, and its scores. A node
without a value, or with one that cannot be read, has 0; the others have 1 to 100:

    pluginConfig:
    - name: NodeMetadata
      args: {metadataKey: example.com/cost, metadataSource: Annotation, metadataType: Number,
        scoringStrategy: Lowest}
"""

from datetime import UTC, datetime
from typing import Literal

import msgspec
import numpy as np

NO_VALUE = -(2**62)
GO_FORMAT = {"2006": "%Y", "01": "%m", "02": "%d", "15": "%H", "04": "%M", "05": "%S"}


class NodeMetadataArgs(msgspec.Struct, frozen=True, rename="camel"):
    metadata_key: str
    metadata_source: Literal["Label", "Annotation"]
    metadata_type: Literal["Number", "Timestamp"]
    scoring_strategy: Literal["Highest", "Lowest", "Newest", "Oldest"]
    timestamp_format: str = "2006-01-02T15:04:05Z07:00"
    default_value: str = ""


class NodeMetadata:
    name = "NodeMetadata"
    args_type = NodeMetadataArgs

    def __init__(self, args):
        self.args = args
        self.format = args.timestamp_format.replace("Z07:00", "%z")
        for written, meant in GO_FORMAT.items():
            self.format = self.format.replace(written, meant)

    def score_node(self, state, pod, node):
        metadata = node.node.metadata
        values = metadata.labels if self.args.metadata_source == "Label" else metadata.annotations
        try:
            value = self.number(values.get(self.args.metadata_key) or self.args.default_value)
        except (ValueError, OverflowError):
            return NO_VALUE
        return -value if self.args.scoring_strategy in ("Lowest", "Oldest") else value

    def number(self, text):
        if self.args.metadata_type == "Number":
            return int(float(text))
        time = datetime.strptime(text, self.format)
        return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp())

    def normalize(self, state, pod, raw_n):
        known = raw_n != NO_VALUE
        if not known.any():
            return raw_n * 0
        least, most = raw_n[known].min(), raw_n[known].max()
        spread = (raw_n - least) * 99 // max(most - least, 1) + 1
        return np.where(known, spread, 0)
