"""Real MXNet over ps-lite, spread over the nodes of a cluster, with checkpoints on a claim that all of them share."""

import json
import re
from typing import Any

import yaml
from node_world import NodeWorld
from real_node.images import ROOT
from waiting import MINUTES, eventually

EXAMPLE = ROOT / "examples" / "digits" / "mxjob.yaml"


class DigitsGang:
    """The example with two servers and three workers, in a test's namespace."""

    def __init__(self, world: NodeWorld, name: str = "digits") -> None:
        self.world = world
        self.name = name
        """The job's, once there is one."""
        self._claim = f"{name}-checkpoints"
        self._checkpoints = world.claim(self._claim)

    def create(self, epochs: int = 40, tolerated: int = 5, **run_policy: int) -> None:
        """Create the job, whose pods are spread over the nodes, and tolerate a lost one for so many seconds."""
        self.world.create(self._manifest(epochs, tolerated, run_policy))

    def _manifest(self, epochs: int, tolerated: int, run_policy: dict[str, int]) -> dict[str, Any]:
        job: dict[str, Any] = json.loads(json.dumps(yaml.safe_load(EXAMPLE.read_text())))
        job["metadata"]["name"] = self.name
        job["spec"]["runPolicy"] = run_policy
        spread = {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"gang": self.name}},
        }
        for role, spec in job["spec"]["mxReplicaSpecs"].items():
            spec["restartPolicy"] = "ExitCode"
            spec["replicas"] = {"Worker": 3}.get(role, spec["replicas"])
            spec["template"]["metadata"] = {"labels": {"gang": self.name}}
            pod = spec["template"]["spec"]
            pod["topologySpreadConstraints"] = [spread]
            pod["terminationGracePeriodSeconds"] = 5  # a lost node is waited for so much longer
            pod["tolerations"] = [
                {
                    "key": f"node.kubernetes.io/{lost}",
                    "effect": "NoExecute",
                    "operator": "Exists",
                    "tolerationSeconds": tolerated,
                }
                for lost in ("unreachable", "not-ready")
            ]
            pod["volumes"] = [{"name": "checkpoints", "persistentVolumeClaim": {"claimName": self._claim}}]
            pod["containers"][0]["volumeMounts"] = [{"name": "checkpoints", "mountPath": "/workspace/checkpoints"}]
            pod["containers"][0]["args"] += ["--epochs", str(epochs)]
        return job

    def trained(self, epochs: int = 5) -> None:
        """Wait until the checkpoints have so many epochs."""
        eventually(lambda: self.epochs() >= epochs, every=1, within=MINUTES)

    def epochs(self) -> int:
        """How many epochs are done, by the names of the checkpoints on the claim."""
        found = (re.search(r"\d+", path.name) for path in self._checkpoints.iterdir())
        return max((int(match[0]) for match in found if match), default=0)

    def pods(self) -> dict[str, dict[str, Any]]:
        """The job's pods by their names."""
        return self.world.pods(self.name)

    def nodes(self) -> set[str]:
        """Names of the nodes with pods of the gang."""
        return {pod["spec"].get("nodeName", "") for pod in self.pods().values()}

    def _status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.world.get("mxjob", self.name)["status"]
        return found

    def restarts(self) -> int:
        """How often the gang has restarted."""
        count: int = self._status().get("restarts", 0)
        return count

    def waits_for(self, node: str) -> None:
        """Wait until the job says that pods on a silent node hold it up."""
        self.world.wait(f"mxjob/{self.name}", "condition=PodsTerminating", within=MINUTES)
        conditions = {each["type"]: each for each in self._status()["conditions"]}
        assert node in conditions["PodsTerminating"]["message"]

    def restarted(self) -> None:
        """Wait until the gang has restarted once."""
        eventually(lambda: self.restarts() == 1, every=1, within=MINUTES)

    def succeeded(self, restarts: int = 0) -> None:
        """Wait for the job's success; assert how often it restarted, and that it went on from a checkpoint then."""
        self.world.ended(self.name, "Succeeded")
        assert self.restarts() == restarts
        log = self.world.kubectl("logs", f"{self.name}-worker-0")
        resumed = re.search(r"Resumed from checkpoint \S+: (\d+) epochs are done", log)
        assert (int(resumed[1]) >= 5 if resumed else 0) == bool(restarts), log

    def _result(self) -> dict[str, Any]:
        """What worker 0 has written into its termination message."""
        (container,) = self.pods()[f"{self.name}-worker-0"]["status"]["containerStatuses"]
        found: dict[str, Any] = json.loads(container["state"]["terminated"]["message"])
        assert found["accuracy"] >= 0.98
        return found
