"""The alerts with their runbooks, and the recording rules.

Thresholds are guesses where the text gives no reason; they are meant to be changed.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from tools.watching.promql import quantile, rate, series, total

BY: Final = ("job",)
_ATTEMPTS: Final = "scheduler_schedule_attempts_total"
_SLI: Final = "scheduler_pod_scheduling_sli_duration_seconds"
_CALLS: Final = "rest_client_requests_total"
_PENDING: Final = "scheduler_pending_pods"


class Recording(NamedTuple):
    """A query that is kept under a name of its own."""

    name: str
    query: str


RECORDINGS: Final = (
    Recording("moorage:attempts:rate5m", total(rate(_ATTEMPTS), *BY, "result")),
    Recording(
        "moorage:attempts:error_ratio5m",
        f"{total(rate(_ATTEMPTS, result='error'), *BY)} / {total(rate(_ATTEMPTS), *BY)}",
    ),
    Recording("moorage:pod_scheduling_seconds:p50", quantile(0.5, _SLI, by=BY)),
    Recording("moorage:pod_scheduling_seconds:p99", quantile(0.99, _SLI, by=BY)),
    Recording(
        "moorage:deciding_seconds:p99",
        quantile(0.99, "scheduler_scheduling_algorithm_duration_seconds", by=BY),
    ),
    Recording("moorage:pending_pods", total(series(_PENDING), *BY, "queue")),
    Recording(
        "moorage:api_errors:ratio5m",
        f"{total(rate(_CALLS, code='5..|<error>'), *BY)} / {total(rate(_CALLS), *BY)}",
    ),
    Recording("moorage:leaders", total(series("leader_election_master_status"), *BY, "name")),
)


class Alert(NamedTuple):
    """An alert.

    Parameters
    ----------
    name
        Its name, which is a heading of the runbook.
    query
        What has to be true.
    minutes
        For how long.
    severity
        ``critical`` wakes somebody up; ``warning`` waits for the morning.
    summary
        One sentence for the message.
    means, look, fix
        The runbook: what it means, where to look, what helps.
    """

    name: str
    query: str
    minutes: int
    severity: Literal["critical", "warning"]
    summary: str
    means: str
    look: str
    fix: str


ALERTS: Final = (
    Alert(
        "MoorageDown",
        'absent(up{job="moorage"} == 1)',
        5,
        "critical",
        "Prometheus reaches no replica of the scheduler",
        "No new pod gets a node, or Prometheus may not read the metrics. Pods that run are not "
        "touched.",
        "`kubectl get pods -n moorage`, and the log of a replica that ends: `kubectl logs -n "
        "moorage POD --previous`. If all replicas "
        "run, look at the target in Prometheus: 401 and 403 mean that its service account lacks "
        "the right.",
        "A configuration with a fault ends the process with code 2 and says where: `moorage config "
        "check FILE` finds it before. "
        "`helm rollback` brings the last version back. For the right, see [Watch the "
        "scheduler](../how-to/watch-the-scheduler.md#who-may-read).",
    ),
    Alert(
        "MoorageNoLeader",
        "moorage:leaders < 1",
        2,
        "critical",
        "No replica holds the Lease {{ $labels.name }}",
        "The replicas run and none of them schedules. A change of leaders takes 20 seconds at "
        "most.",
        "`kubectl get lease -A` says who holds it and when it was renewed last. A holder that is "
        "not a replica of this scheduler is another "
        "scheduler with the same Lease. The log of the replicas says why a renewal failed.",
        "Give each scheduler a Lease of its own. If the API server refuses the renewal (403), the "
        "Role of the Lease is missing. If it "
        "does not answer, see [MoorageApiErrors](#moorageapierrors).",
    ),
    Alert(
        "MoorageTwoLeaders",
        "moorage:leaders > 1",
        2,
        "critical",
        "{{ $value }} replicas say that they hold the Lease {{ $labels.name }}",
        "Either two schedulers with the same job have Leases of the same name in different "
        "namespaces, or a clock runs wrong. A replica "
        "writes nothing after its own Lease is over, so pods are not bound twice.",
        "`kubectl get lease -A`, and the clocks of the nodes of the replicas.",
        "Correct the clock, or give the schedulers jobs of their own in Prometheus.",
    ),
    Alert(
        "MoorageStuck",
        'moorage:pending_pods{queue="active"} > 0 '
        "unless on (job) sum by (job) (moorage:attempts:rate5m) > 0",
        5,
        "critical",
        "{{ $value }} pods could be tried and none is",
        "The active queue has pods, and no attempt ended in five minutes: an extender or a plugin "
        "hangs, or bindings fill all slots.",
        "`moorage queue` lists the pods under way with what they wait for. A plugin that takes "
        "long is reported in the log with its name.",
        "Remove the extender or plugin from the profile. To get over the night, delete the pod "
        "that leads: the other replica takes over.",
    ),
    Alert(
        "MooragePendingTooLong",
        'moorage:pending_pods{queue="unschedulable"} > 0',
        30,
        "warning",
        "{{ $value }} pods have had no node for half an hour",
        "Some pods fit nowhere. This is often right: the cluster is full, or a pod asks for what "
        "no node has.",
        "`moorage queue` groups them by reason, and `moorage explain pod NAME` names single "
        "changes that would let a pod in. The panel "
        "Rejected by plugin shows which rule rejects most.",
        "Add nodes, or change what the pods ask for: [Why is my pod "
        "pending](../how-to/why-is-my-pod-pending.md).",
    ),
    Alert(
        "MoorageSlow",
        "moorage:pod_scheduling_seconds:p99 > 60",
        10,
        "warning",
        "One pod in a hundred takes {{ $value | humanizeDuration }} from its first attempt to its "
        "node",
        "Pods get their nodes, and late. Pods that wait for room, for volumes or for their group "
        "count, too.",
        "Compare deciding (`moorage:deciding_seconds:p99`) with the whole: where deciding is fast, "
        "pods wait for something else. The "
        "panels of extension points and plugins show which part takes long.",
        "A slow plugin or extender: remove or fix it. Many attempts of the same pods: look at "
        "what wakes them up. A rate limit "
        "(`clientConnection.qps`): raise it.",
    ),
    Alert(
        "MoorageDecidesSlowly",
        "moorage:deciding_seconds:p99 > 1",
        10,
        "warning",
        "One decision in a hundred takes {{ $value | humanizeDuration }}",
        "Decisions take milliseconds at 5000 nodes. A second means an expensive plugin, or a "
        "process without enough cpu.",
        "The panel Plugins, and the limit of the container: `kubectl top pod -n moorage`.",
        "Give it more cpu, or remove the plugin. [Limits](../limits.md) names the expensive cases "
        "that are known.",
    ),
    Alert(
        "MoorageSlowDecision",
        f"{series('moorage_latest_slow_decision_seconds')} and on (job, instance) "
        f"{rate('moorage_slow_decisions_total', window='10m')} > 0",
        1,
        "warning",
        "The decision about pod {{ $labels.object }} took {{ $value | humanizeDuration }}",
        "One decision took more than 100 ms. Nothing else is decided meanwhile, so the pods behind "
        "it wait. The alert names the pod of the latest such decision.",
        "The log has a trace of each such attempt, with the time of each part and plugin. "
        "`moorage explain pod NAME --attempt 1` shows what was decided.",
        "A plugin or an extender that is slow for such pods: fix it or remove it. "
        "[Limits](../limits.md) names the expensive cases that are known.",
    ),
    Alert(
        "MoorageErrors",
        "moorage:attempts:error_ratio5m > 0.05",
        5,
        "warning",
        "{{ $value | humanizePercentage }} of the attempts end in an error",
        "An error is a failure of operation, not a pod without a place. Such a pod is tried again "
        "after its backoff.",
        "The log has each with its pod and cause: `kubectl logs -n moorage POD | grep -i error`. "
        "The Events of the pod say the same.",
        "403: a right is missing, see [the rights](../how-to/deploy.md#rights). 409 now and then "
        "is another writer and harmless. Errors "
        "of an extender name its address.",
    ),
    Alert(
        "MooragePluginFails",
        f"{total(rate('moorage_plugin_failures_total', window='10m'), *BY, 'plugin', 'kind')} > 0",
        10,
        "warning",
        "Plugin {{ $labels.plugin }} fails: {{ $labels.kind }}",
        "A plugin from outside raised an exception, took too long or gave an answer that cannot "
        "be. The failure was contained.",
        "The log has the traceback. The view Plugins of [the page](../how-to/look-at-the-page.md) "
        "shows costs and failures.",
        "Fix the plugin, or take it out of the profile. [When a plugin "
        "fails](../explanation/plugins.md) says what happens to its pods.",
    ),
    Alert(
        "MoorageApiErrors",
        "moorage:api_errors:ratio5m > 0.05",
        5,
        "warning",
        "{{ $value | humanizePercentage }} of the calls to the API server fail",
        "The API server is down, overloaded, or not reached. The scheduler goes on by what it "
        "knows and tries again.",
        "The panel API calls shows the codes; `<error>` is no answer at all. `kubectl get --raw "
        "/readyz?verbose` asks the server itself.",
        "This is an alert about the API server. After an outage the scheduler needs nothing: it "
        "lists anew by itself.",
    ),
    Alert(
        "MoorageGroupWaits",
        f"{series('moorage_pod_group_longest_wait_seconds')} > 1800",
        5,
        "warning",
        "A pod group has waited for {{ $value | humanizeDuration }}",
        "A group that needs all its members at once finds no room for them.",
        "`moorage queue` shows the pods of groups with what each group waits for.",
        "Add nodes, or hold room back for large groups: [Schedule pods as a "
        "group](../how-to/schedule-groups.md).",
    ),
    Alert(
        "MooragePreemptsMuch",
        f"{total(rate('scheduler_preemption_victims', of='sum'), *BY)} > 1",
        15,
        "warning",
        "{{ $value | humanize }} pods a second are evicted for others",
        "Pods of high priority push others out, again and again. Work is lost.",
        "The panel Preemption. The Events `Preempted` name both pods.",
        "Fewer pods of high priority, more nodes, or `preemptionPolicy: Never` in a PriorityClass: "
        "[Priority and preemption](../how-to/priority-and-preemption.md).",
    ),
)
