"""The jobs of examples/seeds: where each is, which type kubectl calls it by, and the images that their README adds."""

from dataclasses import dataclass
from pathlib import Path

import yaml
from seed_manifests import SEEDS

from mxnet_operator.api.kinds import Kind, kind_of

ROOT = SEEDS.parents[1]
ADD = "mxjob local image add "


@dataclass(frozen=True)
class SeedJob:
    """A manifest, and the namespace in which tests run it: two documents have jobs of the same name."""

    file: Path
    namespace: str
    name: str
    kind: Kind

    @property
    def type(self) -> str:
        """As kubectl writes it before a name."""
        return f"{self.kind.singular}.{self.kind.group}"


def seed_job(path: str) -> SeedJob:
    """The job in a file of examples/seeds."""
    file = SEEDS / path
    written = yaml.safe_load(file.read_text())
    kind = kind_of(written["apiVersion"], written["kind"])
    assert kind is not None
    return SeedJob(file, f"seed-{path[:3]}", written["metadata"]["name"], kind)


PROPOSED = seed_job("000-mxnetjob-proposal/mxnetjob.yaml")
SINGLE = seed_job("000-mxnetjob-proposal/single.yaml")
TRAIN = seed_job("001-kubeflow-mxnet-operator/mx_job_dist_gpu.yaml")
TUNE = seed_job("001-kubeflow-mxnet-operator/mx_job_tune_gpu.yaml")
LOCAL = seed_job("002-deepinsight/mx_job_local.yaml")
CIFAR = seed_job("002-deepinsight/mx_job_dist.yaml")
LINEAR = seed_job("003-fioravanzo/mxjob-linear-dist.yml")
SHARE = seed_job("003-fioravanzo/mxjob-cifar-gpu.yml")
MNIST = seed_job("004-jzp1025/mx_job_dist.yaml")
ALL = (PROPOSED, SINGLE, TRAIN, TUNE, LOCAL, CIFAR, LINEAR, SHARE, MNIST)
NAMESPACES = tuple(sorted({job.namespace for job in ALL}))


def image_commands() -> list[list[str]]:
    """The arguments of `mxjob` with which the README makes the documents' images, with absolute paths."""
    lines = [line.strip() for line in (SEEDS / "README.md").read_text().splitlines()]
    commands = [line.removeprefix("mxjob ").split() for line in lines if line.startswith(ADD)]
    return [[str(ROOT / word) if word.startswith("examples/") else word for word in words] for words in commands]
