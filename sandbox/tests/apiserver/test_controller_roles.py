"""The roles of kube-controller-manager's service accounts: where they are, and what they allow."""

from __future__ import annotations

from moorage_sandbox.apiserver.wire.requests import User
from sandbox.tests.apiserver.harness import Cluster

RBAC = "/apis/rbac.authorization.k8s.io/v1"


async def test_a_service_account_of_kube_controller_manager_has_the_role_of_its_controller():
    cluster = Cluster(rbac=True)
    account = "system:serviceaccount:kube-system:job-controller"
    groups = ("system:serviceaccounts", "system:serviceaccounts:kube-system")
    controller = User(account, groups)
    _, answer = await cluster.call("GET", f"{RBAC}/clusterroles/system:controller:job-controller")
    assert answer["rules"][1] == {
        "apiGroups": ["batch"],
        "resources": ["jobs/status"],
        "verbs": ["update"],
    }
    assert (await cluster.call("GET", "/apis/batch/v1/jobs", user=controller))[0] == 200
    assert (await cluster.call("GET", "/api/v1/secrets", user=controller))[0] == 403
    # The roles of a single namespace.
    signer = User("system:serviceaccount:kube-system:bootstrap-signer", groups)
    for namespace_name, status in (("kube-system", 200), ("default", 403)):
        path = f"/api/v1/namespaces/{namespace_name}/secrets"
        assert (await cluster.call("GET", path, user=signer))[0] == status


def test_roles_of_controllers_are_made_only_where_roles_decide():
    names = {
        rbac: {each.name for _, each in Cluster(rbac=rbac).server.store.all_records()}
        for rbac in (False, True)
    }
    of_controllers = {name for name in names[True] if name.startswith("system:controller:")}
    assert len(of_controllers) == 41  # 38 cluster roles, 3 names of roles in namespaces
    assert names[False] == names[True] - of_controllers
