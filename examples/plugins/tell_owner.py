"""Tell when a pod that somebody waits for has been bound: PostBind, with an Event.

moorage up --plugin examples/plugins/tell_owner.py:TellOwner

kubectl get events --field-selector reason=PlaceFound
"""


class TellOwner:
    name = "TellOwner"

    def __init__(self, handle):
        self.effects = handle.effects

    def post_bind(self, state, pod, node_name):
        owner = pod.annotations.get("example.com/owner")
        if owner:
            note = f"{owner}, your pod {pod.name} runs on {node_name}"
            self.effects.emit(
                pod.pod, kind="Normal", reason="PlaceFound", action="Telling", note=note
            )
