"""Mistakes outside of what the simulation looks at: the lease, the API's client, the provider, the command line.

Each names the test that catches it.
"""

from simulator.mutations import Mutation

_LEASE = "tests/unit/kube/test_kube_lease.py::test_"
_CLIENT = "tests/unit/kube/test_kube_client.py::test_"
_RETRY_BUDGET = "tests/unit/cli/test_cli_retry_budget.py::test_"
_OUTAGE = "tests/unit/provider/test_provider_outage.py::test_"
_WAITS = "tests/unit/provider/test_provider_waits.py::test_"
_TASK_JOB = "tests/unit/provider/test_provider_task_job.py::test_"
_KUBELET = "tests/local/kubelet/test_kubelet_scheduler.py::test_"
_ARGO = "tests/unit/argo/test_argo_step.py::"

OUTSIDE = (
    Mutation(
        "count the lease from the answer",
        "kube/lease.py",
        "self._leads_until = sent + self._times.renew_deadline",
        "self._leads_until = self._clock() + self._times.renew_deadline",
        test=f"{_LEASE}a_term_is_counted_from_the_sending_of_its_renewal_not_from_the_answer",
    ),
    Mutation(
        "let a term that is over come back",
        "kube/lease.py",
        "if self.leads or not only_while_leading:",
        "if True:",
        test=f"{_LEASE}a_renewal_that_succeeds_after_the_deadline_begins_a_new_term",
    ),
    Mutation(
        "believe a lease that another has by now",
        "kube/lease.py",
        'if not isinstance(spec, dict) or spec.get("holderIdentity") != self.identity:',
        "if not isinstance(spec, dict):",
        test=f"{_LEASE}an_answer_that_names_another_holder_makes_nobody_a_leader",
    ),
    Mutation(
        "honour any Retry-After",
        "kube/transport.py",
        "asked is not None and asked <= _LONGEST_RETRY_AFTER",
        "asked is not None",
        test=f"{_CLIENT}a_server_that_asks_for_more_than_half_a_minute_is_not_waited_for",
    ),
    Mutation(
        "send a write again that may have been carried out",
        "kube/transport.py",
        '(request.method == "GET" and error.is_transient)',
        "error.is_transient",
        test=f"{_CLIENT}a_write_that_may_have_been_carried_out_is_not_sent_again",
    ),
    Mutation(
        "take a page of an outdated snapshot for the end",
        "kube/reflector.py",
        'if error.code != _GONE or "continue" not in params:',
        "if True:",
        test="tests/unit/kube/test_kube_reflector.py::test_pages_whose_snapshot_is_gone_are_asked_for_in_one",
    ),
    Mutation(
        "forget a key that was added while it was worked on",
        "kube/queue.py",
        "self._working.pop(key))\n        if key in self._wanted:",
        "self._working.pop(key))\n        if False:",
        test="tests/unit/kube/test_kube_queue.py::test_a_key_added_while_it_is_worked_on_comes_back_when_that_is_done",
    ),
    Mutation(
        "never begin an outage anew in the command line",
        "client/jobs.py",
        "        self._since, self._pause = self._clock(), 0.5\n",
        '        self._since, self._pause = getattr(self, "_since", self._clock()), 0.5\n',
        test=f"{_RETRY_BUDGET}an_absence_counts_from_the_last_answer",
    ),
    Mutation(
        "ask as often in the command line however long an outage lasts",
        "client/jobs.py",
        "min(self._pause * 2, 8.0)",
        "self._pause",
        test=f"{_RETRY_BUDGET}pauses_double_up_to_eight_seconds_and_begin_anew_after_an_answer",
    ),
    Mutation(
        "never begin an outage anew in a worker or trigger",
        "outage.py",
        "        self.failures = 0\n        self._last_answer = self._clock()",
        "        self.failures = 0",
        test=f"{_OUTAGE}the_clock_is_set_back_by_each_answer",
        package="mxnet_provider",
    ),
    Mutation(
        "ask as often in a worker, trigger or sensor however long an outage lasts",
        "job/polling.py",
        "self._poll_interval * 2 ** min(failures, _DOUBLINGS)",
        "self._poll_interval",
        test=f"{_OUTAGE}a_sick_server_is_asked_less_and_less_often",
        package="mxnet_provider",
    ),
    Mutation(
        "count the time in a queue towards startup_timeout",
        "job/completion.py",
        'moments += [c.get("lastTransitionTime") for c in _conditions(job) if c.get("type") == SUSPENDED]',
        "moments += []",
        test=f"{_WAITS}time_in_a_queue_does_not_count_towards_the_start",
        package="mxnet_provider",
    ),
    Mutation(
        "take another job of the name for the task's",
        "job/completion.py",
        '    if job["metadata"]["uid"] != uid:\n        return Completion("deleted", "was deleted, and',
        '    if False:\n        return Completion("deleted", "was deleted, and',
        test=f"{_WAITS}a_job_that_has_the_name_by_now_is_not_the_tasks",
        package="mxnet_provider",
    ),
    Mutation(
        "delete the job of a cleared task that is to be kept",
        "operators/task_job.py",
        'action: kill.Action = "keep" if self._ends.on_kill_action == "keep" else "delete"',
        'action: kill.Action = "delete"',
        test=f"{_TASK_JOB}a_cleared_task_ends_the_job_that_it_had_unless_jobs_are_to_be_kept",
        package="mxnet_provider",
    ),
    Mutation(
        "never forget how long a container that fails was waited for",
        "local/kubelet/container.py",
        "if loop.time() - began >= self._host.timing.crash_backoff_reset:",
        "if False:",
        test=f"{_KUBELET}a_run_that_lasted_sets_the_back_off_back",
    ),
    Mutation(
        "keep the address of a pod that is gone",
        "local/kubelet/kubelet.py",
        "        self._addresses.free(uid)\n",
        "",
        test=f"{_KUBELET}the_address_of_a_pod_that_is_gone_is_free_again",
    ),
    Mutation(
        "forget what was bound until the watch shows it",
        "local/scheduling/scheduler.py",
        '        self._assumed[uid] = {**pod, "spec": {**pod["spec"], "nodeName": self._node_name}}\n',
        "",
        test=f"{_KUBELET}what_was_just_bound_counts_before_the_watch_shows_it",
    ),
    Mutation(
        "have the reaper kill groups that have ended",
        "local/kubelet/processes.py",
        '        self._tell(b"-%d\\n" % group)\n',
        "",
        test=f"{_KUBELET}the_reaper_is_told_of_groups_that_run_and_of_those_that_have_ended",
    ),
    Mutation(
        "end with 0 where the reader of the output is gone",
        "cli/app.py",
        "raise typer.Exit(Exit.CLOSED_PIPE) from None",
        "raise typer.Exit(Exit.OK) from None",
        test="tests/unit/cli/test_cli_closed_pipe.py::test_a_command_ends_in_silence_as_what_sigpipe_ends",
    ),
    Mutation(
        "train once more where the job was deleted",
        "step.py",
        "|has been deleted|",
        "|",
        test=f"{_ARGO}test_a_poller_s_last_words_say_whether_another_would_end_the_same_way",
        package="mxnet_argo",
    ),
    Mutation(
        "try a poller once more only",
        "retries.py",
        "        limit=10,\n",
        "        limit=1,\n",
        test=f"{_ARGO}test_ten_more_pollers_are_tried_and_their_pauses_grow",
        package="mxnet_argo",
    ),
)
