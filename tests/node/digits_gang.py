"""Real MXNet over ps-lite, spread over the nodes of a cluster, with checkpoints on a claim that all of them share."""

import json
import re

import yaml
from node_world import NodeWorld
from real_node.images import ROOT
from waiting import MINUTES, eventually

EXAMPLE = ROOT / "examples" / "digits" / "mxjob.yaml"


class DigitsGang:
    """The example with two servers and three workers, in a test's namespace."""

    def __init__(self, world: NodeWorld) -> None:
        self.world = world
        self._checkpoints = world.claim("checkpoints")

    def create(self, epochs: int = 40, tolerated: int = 5, **run_policy: int) -> None:
        """Create the job, whose pods are spread over the nodes, and tolerate a lost one for so many seconds."""
        job = json.loads(json.dumps(yaml.safe_load(EXAMPLE.read_text())))
        job["spec"]["runPolicy"] = run_policy
        spread = {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"training.kubeflow.org/job-name": "digits"}},
        }
        for role, spec in job["spec"]["mxReplicaSpecs"].items():
            spec["restartPolicy"] = "ExitCode"
            spec["replicas"] = {"Worker": 3}.get(role, spec["replicas"])
            pod = spec["template"]["spec"]
            pod["topologySpreadConstraints"] = [spread]
            pod["tolerations"] = [
                {
                    "key": f"node.kubernetes.io/{lost}",
                    "effect": "NoExecute",
                    "operator": "Exists",
                    "tolerationSeconds": tolerated,
                }
                for lost in ("unreachable", "not-ready")
            ]
            pod["volumes"] = [{"name": "checkpoints", "persistentVolumeClaim": {"claimName": "checkpoints"}}]
            pod["containers"][0]["volumeMounts"] = [{"name": "checkpoints", "mountPath": "/workspace/checkpoints"}]
            pod["containers"][0]["args"] += ["--epochs", str(epochs)]
        self.world.create(job)

    def trained(self, epochs: int = 5) -> None:
        """Wait until the checkpoints have so many epochs."""
        eventually(lambda: self.epochs() >= epochs, every=1, within=MINUTES)

    def epochs(self) -> int:
        """How many epochs are done, by the names of the checkpoints on the claim."""
        found = (re.search(r"\d+", path.name) for path in self._checkpoints.iterdir())
        return max((int(match[0]) for match in found if match), default=0)

    def nodes(self) -> set[str]:
        """Names of the nodes with pods of the gang."""
        return {pod["spec"].get("nodeName", "") for pod in self.world.pods("digits").values()}

    def restarts(self) -> int:
        """How often the gang has restarted."""
        count: int = self.world.get("mxjob", "digits")["status"].get("restarts", 0)
        return count

    def waits_for(self, node: str) -> None:
        """Wait until the job says that pods on a silent node hold it up."""
        self.world.wait("mxjob/digits", "condition=PodsTerminating", within=MINUTES)
        conditions = {each["type"]: each for each in self.world.get("mxjob", "digits")["status"]["conditions"]}
        assert node in conditions["PodsTerminating"]["message"]

    def restarted(self) -> None:
        """Wait until the gang has restarted once."""
        eventually(lambda: self.restarts() == 1, every=1, within=MINUTES)

    def succeeded(self, restarts: int = 0) -> None:
        """Wait for the job's success; assert how often it restarted, and that it went on from a checkpoint then."""
        self.world.ended("digits", "Succeeded")
        assert self.restarts() == restarts
        log = self.world.kubectl("logs", "digits-worker-0")
        resumed = re.search(r"Resumed from checkpoint \S+: (\d+) epochs are done", log)
        assert (int(resumed[1]) >= 5 if resumed else 0) == bool(restarts), log
