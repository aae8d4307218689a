"""Mistakes that somebody could make in the controller, each as a change of its text: `make mutants` shows them caught.

A text that is no longer there, or there twice, fails a test: then write the same mistake against today's code.
"""

import msgspec


class Mutation(msgspec.Struct, frozen=True):
    """One mistake: in this file of a package, the old text becomes the new one."""

    name: str
    file: str
    old: str
    new: str
    test: str = ""
    """The test that catches it where random schedules rarely do, as pytest names it; empty: the simulation does."""
    package: str = "mxnet_operator"


MUTATIONS = (
    # What counts
    Mutation(
        "count every failure of a gang",
        "plan/restart.py",
        "failures = min(failures, 1)",
        "failures = failures + 0",
    ),
    Mutation(
        "take an attempt that failed before its first status for another operator's",
        "plan/status.py",
        "return with_started_replicas(job, status) if begins(job.status) else status",
        "return status",
        test="tests/simulation/test_simulation_regressions.py"
        "::test_a_gang_that_fails_before_its_first_status_does_not_join_one_member_alone_later",
    ),
    Mutation(
        "count a failure twice",
        "plan/attempt.py",
        "job.status.restarts_count_towards_max + failures",
        "job.status.restarts_count_towards_max + 2 * failures",
    ),
    Mutation(
        "forget to count",
        "plan/attempt.py",
        "job.status.restarts_count_towards_max + failures",
        "job.status.restarts_count_towards_max",
    ),
    Mutation(
        "count disruptions as failures",
        "plan/restart.py",
        "return replica.outcome is Outcome.LOST and is_disruption(replica.pod)",
        "return False",
    ),
    Mutation(
        "count a suspension as a failure",
        "plan/suspend.py",
        "raised = given_up(job)",
        "raised = msgspec.structs.replace(\n            given_up(job), "
        "restarts_count_towards_max=status.restarts_count_towards_max + 1\n        )",
    ),
    Mutation(
        "forget which pods are still being replaced",
        "plan/attempt.py",
        "for pod in pods} | (present & set(job.status.restarting_pods))",
        "for pod in pods}",
    ),
    Mutation(
        "forget which pods a suspension gave up",
        "plan/attempt.py",
        "pod.attempt < first or pod.uid in restarting",
        "pod.uid in restarting",
    ),
    # What is retried
    Mutation(
        "restart a permanent exit code",
        "plan/restart.py",
        "return is_retryable(pod.exit_code, pod.reason, job.spec.run_policy.exit_codes)",
        "return True",
    ),
    Mutation(
        "forget the job's own exit codes",
        "plan/restart.py",
        "return is_retryable(pod.exit_code, pod.reason, job.spec.run_policy.exit_codes)",
        "return is_retryable(pod.exit_code, pod.reason, None)",
    ),
    Mutation(
        "retry what ran out of memory",
        "api/exit_codes.py",
        "return code in RETRYABLE and reason != OUT_OF_MEMORY",
        "return code in RETRYABLE",
    ),
    Mutation(
        "retry under restartPolicy Never",
        "plan/restart.py",
        'restart_policy == "Never"',
        'restart_policy == "never"',
    ),
    Mutation(
        "restart once more than backoffLimit",
        "plan/restart.py",
        "counted + failures > limit:",
        "counted + failures > limit + 1:",
    ),
    Mutation(
        "restart once less than backoffLimit",
        "plan/restart.py",
        "counted + failures > limit:",
        "counted + failures >= limit:",
    ),
    # What a pod's end means
    Mutation(
        "believe the exit 0 of a pod that was taken away",
        "plan/replicas.py",
        "if pod.was_removed and (",
        "if pod.was_removed and pod.exit_code != 0 and (",
    ),
    Mutation(
        "believe the exit code of a pod that was deleted by hand",
        "plan/replicas.py",
        "if pod.was_removed and (",
        "if pod.was_removed and pod.exit_code is None and (",
    ),
    Mutation(
        "replace a pod of a gang that has run",
        "plan/replicas.py",
        "return Outcome.LOST if ran else Outcome.MISSING",
        "return Outcome.MISSING",
    ),
    Mutation(
        "let new members join a gang that has ended unseen",
        "plan/replicas.py",
        "(one_has_ended or any(",
        "(any(",
        test="tests/unit/plan/test_joining.py::test_one_that_is_missing_once_all_have_existed_and_one_was_done_restarts_the_gang",
    ),
    Mutation(
        "forget that all of a gang have existed",
        "plan/joining.py",
        "recorded = job.status.created_attempts > job.status.restarts",
        "recorded = False",
    ),
    Mutation(
        "trust the record alone that all of a gang have existed",
        "plan/joining.py",
        "return recorded or any((pod.type, pod.index) == last for pod in pods)",
        "return recorded",
        test="tests/unit/plan/test_joining.py::test_a_member_that_is_missing_once_all_have_existed_restarts_the_gang",
    ),
    Mutation("one worker's success is the job's", "plan/success.py", "return all(", "return any("),
    Mutation(
        "success before failure",
        "plan/decide.py",
        "ended = end_of_attempt(job, replicas, len(terminating))",
        "ended = None if has_succeeded(job, replicas) else end_of_attempt(job, replicas, len(terminating))",
    ),
    Mutation(
        "a restarted gang keeps what was done",
        "plan/attempt.py",
        "return as_begun_anew(job, raised)",
        "return raised",
    ),
    # Order of things
    Mutation(
        "begin an attempt beside the one before",
        "plan/topology.py",
        'if terminating and restart_scope(job) == "Job":',
        "if False:",
    ),
    Mutation(
        "make pods of attempt 0 for ever",
        "plan/topology.py",
        "CreatePod(*each, job.status.restarts, is_last",
        "CreatePod(*each, 0, is_last",
    ),
    Mutation(
        "delete the running attempt",
        "plan/attempt.py",
        "if pod.attempt < job.status.restarts",
        "if pod.attempt <= job.status.restarts",
    ),
    Mutation(
        "say Running when the first pod runs", "plan/status.py", "if all(replica.started", "if any(replica.started"
    ),
    Mutation(
        "Running beside Restarting",
        "api/conditions.py",
        'displaced = _DISPLACES.get(condition_type) if status == "True" else None',
        "displaced = None",
    ),
    # The end, and after
    Mutation(
        "go on after the end of the job",
        "plan/decide.py",
        "if conditions.is_terminal(job.status):",
        "if False:",
    ),
    Mutation("forget completionTime", "plan/status.py", "        completion_time=now,\n", ""),
    Mutation(
        "leave running what is left of a finished job",
        "plan/cleanup.py",
        "elif unfinished and not pod.stop_requested:",
        "elif False:",
    ),
    Mutation("keep pods under cleanPodPolicy All", "plan/cleanup.py", 'if policy == "All" or (', "if ("),
    Mutation(
        "keep Services under cleanPodPolicy Running",
        "plan/cleanup.py",
        'at_the_end=policy == "None"',
        'at_the_end=policy != "All"',
    ),
    Mutation(
        "keep the pod group of a finished job",
        "integrations/gangs/gang.py",
        "ReleasePodGroup, goes_at_the_end=True)",
        "ReleasePodGroup)",
    ),
    Mutation(
        "leave the pods of a gang out of their group",
        "controller/executor.py",
        "manifest = self._decorated(job, manifest)",
        "pass",
    ),
    Mutation(
        "touch the pod group of a waiting gang at every reconciliation",
        "integrations/gangs/retry.py",
        " if not _left(group, observed, now)",
        "",
        test="tests/unit/plan/test_gang_retry.py::TestTouch::test_the_group_of_a_gang_that_waits_is_changed_after_half_a_minute",
    ),
    Mutation(
        "touch the pod group of a gang that has nodes",
        "integrations/gangs/retry.py",
        "if not touches or not pods or any(pod.deleting or not pod.unschedulable for pod in pods):",
        "if not touches or not pods:",
    ),
    Mutation(
        "don't come back to touch the pod group of a waiting gang",
        "plan/decide.py",
        "            time_until_touched(job, present, now),\n",
        "",
        test="tests/unit/plan/test_gang_retry.py::TestTouch::test_the_group_of_a_gang_that_waits_is_changed_after_half_a_minute",
    ),
    Mutation(
        "take the pod group from the pods of a suspended job",
        "integrations/gangs/gang.py",
        "outlives_pods=True, ",
        "",
        test="tests/unit/plan/test_gang_retry.py::TestEnd::test_the_group_of_a_suspended_job_goes_after_its_pods",
    ),
    # Suspension
    Mutation(
        "make pods for a suspended job",
        "plan/decide.py",
        "if admission.standing is Standing.WAITS:",
        "if admission.standing is Standing.WAITS and not present.pods:",
    ),
    Mutation("a suspended job keeps its startTime", "plan/suspend.py", "        start_time=None,\n    )", "    )"),
    # Coming back
    Mutation(
        "don't come back after the back-off",
        "plan/decide.py",
        "begin - now if begin is not None and waiting else None,",
        "None,",
    ),
    Mutation(
        "don't come back for a deadline",
        "plan/decide.py",
        "deadline.at - now if deadline is not None else None,",
        "None,",
    ),
    Mutation(
        "don't come back for the TTL",
        "plan/decide.py",
        "soonest(left, time_until_cleaned_up(observed))",
        "time_until_cleaned_up(observed)",
    ),
    # Pods that won't go
    Mutation(
        "delete by force without asking after the node",
        "plan/terminating_pods.py",
        'if states.get(pod.node_name) in ("Gone", "OutOfService") and not pod.forced)',
        "if not pod.forced)",
    ),
    # Carrying out
    Mutation(
        "forget the uid when deleting",
        "controller/executor.py",
        'preconditions = {"uid": action.uid}',
        "preconditions = {}",
    ),
    Mutation(
        "take a stranger's pod for ours",
        "plan/ownership.py",
        "is_ours = found.owner_uid == job.metadata.uid",
        "is_ours = True",
    ),
    Mutation(
        "take a refused creation for done",
        "controller/executor.py",
        "    outcome.error = outcome.error or error\n    namespace_is_going",
        "    namespace_is_going",
    ),
    Mutation(
        "write the status over whatever is there",
        "controller/reconcile.py",
        'body = {"metadata": {"resourceVersion": job.resource_version}, "status": change}',
        'body = {"status": change}',
    ),
    Mutation(
        "believe a cache of pods that lags behind the job",
        "controller/reconcile.py",
        "(lags_behind(self._children.pods, job) and",
        "(False and",
    ),
    Mutation(
        "believe a cache of jobs that lags behind the pods",
        "controller/reconcile.py",
        "if relies_on_record(decided) and await self._is_outdated(job):",
        "if False:",
        test="tests/simulation/test_simulation_regressions.py"
        "::test_nor_by_a_leader_that_has_not_heard_of_the_record_while_it_has_of_the_pods",
    ),
    # Found by fresh seeds
    Mutation(
        "count what a pod's node does to it while it is deleted",
        "plan/disruption.py",
        " or _was_deleted_first(pod):",
        ":",
        test="tests/unit/plan/test_ends_of_pods.py::test_an_end_from_outside_is_tried_again_whatever_the_exit_code",
    ),
    Mutation(
        "count a node's shutdown",
        "plan/observed.py",
        'return self.phase == "Failed" and self.pod_reason in',
        "return False and self.pod_reason in",
    ),
    Mutation(
        "count what ended before the node that shut down spoke of it",
        "plan/observed.py",
        "        if self.stopped_by_node:\n            return True\n",
        "",
    ),
    Mutation(
        "take the exit code of a node that went down for the program's",
        "plan/observed.py",
        'return bool(self.exit_code) and self.reason in ("Unknown", "ContainerStatusUnknown")',
        "return False",
    ),
    Mutation(
        "judge a gang by what followed from its first failure",
        "plan/restart.py",
        'if restart_scope(job) == "Replica":\n        return failed',
        "if True:\n        return failed",
    ),
    Mutation(
        "follow a restartScope that is edited while the job runs",
        "plan/fixed_replicas.py",
        "if scope := job.status.started_scope:",
        'if scope := "":',
    ),
    Mutation(
        "leave a resumed job Suspended that restarts",
        "plan/status.py",
        "_resumed(conditions.created(raised.conditions, job.metadata.name, now), job, now),",
        "conditions.created(raised.conditions, job.metadata.name, now),",
        test="tests/simulation/test_simulation_regressions.py"
        "::test_a_job_that_is_resumed_and_restarts_in_one_look_is_not_suspended",
    ),
    Mutation(
        "wait for a clock that was set back",
        "plan/backoff.py",
        " or since > now + CLOCK_SKEW:",
        ":",
        test="tests/unit/plan/test_time_across_restarts.py::TestBackOff::test_a_clock_that_is_set_back_makes_nobody_wait_for_it",
    ),
    Mutation(
        "take a pod without its label for gone",
        "controller/reconcile.py",
        "            if pods != observed.pods:\n",
        "            if False and pods != observed.pods:\n",
    ),
    Mutation(
        "believe the labels of a pod",
        "controller/projection.py",
        "annotated if len(annotated) == 3 else labelled",
        "labelled",
    ),
    Mutation(
        "leave a pod without its label",
        "plan/labels.py",
        "return tuple(pod for pod in pods if pod.mislabelled and not pod.deleting)",
        "return ()",
    ),
    # A queue of Kueue's
    Mutation(
        "run a job on quota that waits for admission checks",
        "integrations/kueue/workload.py",
        "return self.is_true(ADMITTED) and not self.is_evicted",
        "return self.has_quota and not self.is_evicted",
    ),
    Mutation(
        "let a job run on that is evicted",
        "integrations/kueue/workload.py",
        "return self.is_true(ADMITTED) and not self.is_evicted and not self.is_true(FINISHED) and not self.deleting",
        "return self.is_true(ADMITTED) and not self.is_true(FINISHED) and not self.deleting",
    ),
    Mutation(
        "give quota back while pods are terminating",
        "plan/suspend.py",
        "actions=(*deletions, *left.deletions),",
        "actions=(*deletions, *left.deletions, *return_quota(observed, now)),",
    ),
    Mutation(
        "give quota back by a cache of pods that lags behind",
        "plan/absence.py",
        "_ends_admission(action) for action in decided.actions):",
        "_ends_admission(action) and False for action in decided.actions):",
        test="tests/simulation/test_simulation_regressions.py"
        "::test_quota_is_not_given_back_by_a_leader_that_has_not_heard_of_a_pod",
    ),
    Mutation(
        "have an evicted job wait for its recovery when it is admitted again",
        "integrations/kueue/workload.py",
        "if workload.condition(PODS_READY) is not None:",
        "if workload.is_true(PODS_READY):",
    ),
    Mutation(
        "don't tell Kueue that pods are ready",
        "plan/decide.py",
        "            *report_ready(observed, now, ready=conditions.is_true(reported, conditions.RUNNING)),\n",
        "",
    ),
    Mutation(
        "tell Kueue again and again whether pods are ready",
        "integrations/kueue/workload.py",
        'if old is not None and (old.status == "True") == ready:',
        "if False:",
    ),
    Mutation(
        "keep the quota of a job that is over",
        "plan/decide.py",
        "actions = (*clean_up(job, observed), *finish(job, observed, now))",
        "actions = clean_up(job, observed)",
    ),
    Mutation(
        "give back the quota of a job that is over while its pods run",
        "integrations/kueue/policy.py",
        "if workload is None or workload.deleting or runs or workload.is_true(FINISHED):",
        "if workload is None or workload.deleting or workload.is_true(FINISHED):",
    ),
    Mutation(
        "have an evicted job queue at the end",
        "integrations/kueue/policy.py",
        "    return (quota_returned(workload, now),)\n",
        "    return _deleted(workload)\n",
    ),
    Mutation(
        "leave a job in its queue that its user suspends",
        "integrations/kueue/policy.py",
        "return QueueAdmission(standing, actions=_deleted(workload))",
        "return QueueAdmission(standing, actions=() if queue else _deleted(workload))",
    ),
    Mutation(
        "take a job from its queue by a cache of jobs that lags behind",
        "plan/absence.py",
        "if any(isinstance(action, DeleteQueueWorkload | ChangeQueueWorkload) for action in decided.actions):",
        "if False:",
    ),
    Mutation(
        "keep a job out of its queue that Kueue gave up and a person made active",
        "integrations/kueue/workload.py",
        "if why.startswith(_DEACTIVATED):",
        "if False:",
    ),
    Mutation(
        "write over what Kueue has said meanwhile",
        "integrations/kueue/workload.py",
        "workload.name, workload.uid, workload.resource_version, tuple(found.values()), gives_quota_back",
        'workload.name, workload.uid, "", tuple(found.values()), gives_quota_back',
    ),
    Mutation(
        "leave a waiting job in the queue that it named before",
        "integrations/kueue/policy.py",
        "return workload.asks_for == asks_for(job)",
        "return True",
    ),
    Mutation(
        "create pods while Workloads can't be read",
        "plan/decide.py",
        "admission.standing is not Standing.HOLDS and pods_are_admitted(job, observed)",
        "pods_are_admitted(job, observed)",
    ),
)
