"""Kueue: a job that names a queue runs only while Kueue admits it. Kueue need not be installed."""

from mxnet_operator.integrations.integration import Integration, JobReader, ReaderContext
from mxnet_operator.integrations.kueue.objects import QUEUE_WORKLOADS
from mxnet_operator.integrations.kueue.policy import KueuePolicy
from mxnet_operator.integrations.kueue.reader import QueueReader


class Kueue(Integration):
    """Integration of Kueue, by a Workload for each job."""

    name = "kueue"
    policy = KueuePolicy()
    choices = tuple((row,) for row in QUEUE_WORKLOADS)

    def reader(self, context: ReaderContext) -> JobReader:
        return QueueReader(context)
