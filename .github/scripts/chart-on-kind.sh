#!/usr/bin/env bash
# Installs the chart into a cluster of kind and lets it schedule. Usage: chart-on-kind.sh second|only|take-over
# Needs docker, kind, kubectl and helm. The cluster is deleted at the end; KEEP=1 keeps it.
set -Eeuo pipefail  # -E: a failure within a function is explained, too
cd "$(dirname "$0")/../.."
case ${1:-} in second | only | take-over) ;; *)
  echo "usage: chart-on-kind.sh second|only|take-over" >&2
  exit 2
  ;;
esac
mode=$1 cluster=moorage-$1 image=moorage:local

end() { [ -n "${KEEP:-}" ] || kind delete cluster --name "$cluster"; }
# Prints what happened, where a step fails.
explain() {
  kubectl describe pods --all-namespaces --selector app.kubernetes.io/name=moorage || true
  kubectl logs --all-containers --tail 100 --namespace kube-system --selector component=kube-scheduler || true
}
trap end EXIT
trap explain ERR

running() { # NAME SCHEDULER: makes a pod that sleeps, and waits until it runs
  kubectl run "$1" --image=registry.k8s.io/pause:3.10 --overrides="{\"spec\":{\"schedulerName\":\"$2\"}}"
  kubectl wait --for=condition=Ready "pod/$1" --timeout 120s
}
install() { # NAMESPACE, then further values
  helm upgrade --install moorage deploy/chart --namespace "$1" --create-namespace --wait --timeout 180s \
    --set image.repository=moorage --set image.tag=local "${@:2}"
}
manifests=/etc/kubernetes/manifests/kube-scheduler.yaml kept=/etc/kubernetes/kube-scheduler.yaml
remove_kube_scheduler() {
  docker exec "$cluster-control-plane" mv "$manifests" "$kept"
  kubectl wait --for=delete --namespace kube-system "pod/kube-scheduler-$cluster-control-plane" --timeout 120s
}

docker build --file deploy/Containerfile --tag "$image" .
kind create cluster --name "$cluster" --wait 120s
kind load docker-image "$image" --name "$cluster"

case $mode in
second) # next to kube-scheduler, for the pods that name it
  install moorage
  running ours moorage
  running theirs default-scheduler
  ;;
only) # in place of kube-scheduler on the node of the control plane
  remove_kube_scheduler
  docker cp deploy/static-pod/kube-scheduler.yaml "$cluster-control-plane:$manifests"
  running ours default-scheduler
  ;;
take-over) # kube-scheduler, then a release of the chart under the same Lease, then kube-scheduler again
  running before default-scheduler
  install kube-system --values deploy/chart/values-only.yaml
  remove_kube_scheduler
  running taken default-scheduler
  docker exec "$cluster-control-plane" mv "$kept" "$manifests"
  helm uninstall moorage --namespace kube-system --wait
  running back default-scheduler
  ;;
esac
echo "$mode: as expected"
