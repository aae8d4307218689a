"""Rules for pods, transcribed from `ValidatePodSpec` of Kubernetes' pkg/apis/core/validation, 1.36: order and words.

They are for what the pods of MXJobs carry. Left out is what belongs to Windows, to ephemeral containers, devices of
blocks, resource claims and profiles of seccomp, AppArmor and SELinux, and the options of volume types that the local
kubelet can't mount.
"""

from mxnet_operator.local.apiserver.pod_rules.pod import pod_errors

__all__ = ["pod_errors"]
