"""What an MXJobStep becomes, and what it refuses before a workflow is submitted."""

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from argo_expressions import Expressions
from hera.expr import g
from hera.shared import global_config
from hera.workflows import (
    DAG,
    ConfigMapEnv,
    ConfigMapEnvFrom,
    EmptyDirVolume,
    Env,
    ExistingVolume,
    Parameter,
    Resources,
    RetryStrategy,
    SecretEnv,
    SecretVolume,
    Task,
    Volume,
    Workflow,
    WorkflowTemplate,
    models,
)
from hera.workflows import Artifact as OwnArtifact
from hera.workflows.models import Affinity, Artifact, ManifestFrom, Outputs, Toleration, ValueFrom
from hera.workflows.models.io.k8s.apimachinery.pkg.util.intstr import IntOrString
from seed_manifests import SEEDS

from mxnet_argo import (
    MXJobRunner,
    MXJobSpec,
    MXJobStep,
    data,
    delete_jobs_on_exit,
    exit_handler,
    expression,
    integer,
    mxjob_ref,
    number,
    reference,
    sweep,
    text,
    tune_then_train,
)
from mxnet_argo.checked_job import CheckedJob
from mxnet_argo.inputs import parameters
from mxnet_argo.refusals import check_condition
from mxnet_argo.values import Value
from mxnet_operator.api.job_formats import to_v1
from mxnet_operator.api.manifest_text import load
from mxnet_operator.description import Role
from mxnet_operator.description.description import FIELDS

COMMAND = ["python", "train.py"]
MANIFEST = {
    "spec": {
        "jobMode": "MXTrain",
        "mxReplicaSpecs": {"Worker": {"template": {"spec": {"containers": [{"name": "mxnet", "image": "a"}]}}}},
    }
}


def step(**fields: Any) -> MXJobStep:
    return MXJobStep(**{"name": "train", "spec": MXJobSpec(image="a:1", command=COMMAND), **fields})


def manifest_of(made: MXJobStep) -> dict[str, Any]:
    """The manifest as YAML reads it, with the tags as text."""
    plain = made._build_manifest().replace("'true'", "true")
    quoted = plain.replace('"', "`").replace("'", "`").replace("{{=", "'{{=").replace("}}", "}}'")
    loaded: dict[str, Any] = yaml.safe_load(quoted)
    return loaded


def with_policy(**policy: Any) -> MXJobStep:
    return step(spec=MXJobSpec(image="a:1", command=COMMAND, run_policy=policy))


class TestManifest:
    def test_the_name_is_the_same_for_each_attempt_and_no_other_run_has_it(self) -> None:
        name = manifest_of(step())["metadata"]["name"]
        what = "workflow.uid + `/` + node.name + `/` + toJson(workflow.parameters.json)"
        assert name == f"{{{{=toJson(`train-` + sprig.trunc(12, sprig.sha256sum({what})))}}}}"

    def test_a_job_goes_with_its_workflow_unless_told_otherwise(self) -> None:
        asked = "mxjob.kubeflow.org/delete-with-workflow: 'true'"
        ours = {"metadata": {"annotations": {"ours": "1"}}, "spec": MXJobSpec(image="a", command=COMMAND).to_dict()}
        given = step(spec=None, manifest=ours)
        assert asked in step()._build_manifest()
        assert "annotations" not in step(delete_with_workflow=False)._build_manifest()
        assert asked in given._build_manifest()
        assert "ours: '1'" in given._build_manifest()
        assert ours["metadata"] == {"annotations": {"ours": "1"}}

    def test_what_an_input_says_of_that_is_true_or_false(self) -> None:
        asked = {"inputs": [Parameter(name="asks")], "delete_with_workflow": text("asks")}
        for spec in (
            {},
            {"spec": None, "manifest": data("job"), "inputs": [Parameter(name=n) for n in ("asks", "job")]},
        ):
            assert "is neither true nor false" in step(**{**asked, **spec})._build_manifest()
        with pytest.raises(ValueError, match="input asks: 'yes' is neither true nor false"):
            step(**{**asked, "inputs": [Parameter(name="asks", default="yes")]})

    def test_heras_defaults_hold_for_fields_that_have_a_default_of_ours(self) -> None:
        unknown = {"spec": MXJobSpec(image="a", command=COMMAND).to_dict()}
        unknown["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["nextYear"] = True
        try:
            condition = "status.state == Succeeded"
            global_config.set_class_defaults(MXJobStep, allow_unknown_fields=True, success_condition=condition)
            of_runner = {"image": "mine:1", "service_account_name": "mine", "options": ["--no-logs"]}
            global_config.set_class_defaults(MXJobRunner, allow_unknown_fields=True, **of_runner)
            assert step(spec=None, manifest=unknown).success_condition == condition
            built = MXJobRunner(name="run", manifest=unknown)._build_template()
            assert built.container is not None
            assert (built.container.image, built.service_account_name) == ("mine:1", "mine")
            assert [each for each in built.container.args or [] if each in ("--no-logs", "--allow-unknown-fields")] == [
                "--allow-unknown-fields",
                "--no-logs",
            ]
            own = MXJobRunner(name="run", spec=step().spec, image="b", service_account_name="other", options=[])
            assert (own.image, own.service_account_name) == ("b", "other")
            assert "--no-logs" not in (own.args or [])
            with pytest.raises(ValueError, match="nextYear"):
                step(spec=None, manifest=unknown, allow_unknown_fields=False)
        finally:
            global_config.reset()

    def test_heras_defaults_that_would_break_a_runner_are_rejected_as_if_given(self) -> None:
        try:
            global_config.set_class_defaults(MXJobRunner, image="i", command=["sh"])
            with pytest.raises(ValueError, match="the command is mxjob run"):
                MXJobRunner(name="run", spec=step().spec)
        finally:
            global_config.reset()

    @pytest.mark.parametrize("labels", ["x", ["a"], {"a": 5}, {"a": {}}, {"no good": "x"}, {"a": "x" * 64}])
    def test_labels_that_are_none_are_rejected_with_their_path(self, labels: Any) -> None:
        manifest = {"metadata": {"labels": labels}, "spec": MXJobSpec(image="a", command=COMMAND).to_dict()}
        with pytest.raises(ValueError, match=r"train: metadata\.labels"):
            step(spec=None, manifest=manifest)

    def test_labels_that_an_input_fills_in_are_taken(self) -> None:
        labels = {"metadata": {"labels": {"team": text("team")}}}
        given = step(spec=None, manifest=MANIFEST | labels, inputs=[Parameter(name="team", value="vision")])
        assert "inputs.parameters.team" in manifest_of(given)["metadata"]["labels"]["team"]

    @pytest.mark.parametrize(
        "outputs",
        [
            Parameter(name="accuracy", value_from=ValueFrom(jq_filter=".status.result | fromjson | .accuracy # why")),
            Outputs(parameters=[models.Parameter(name="accuracy", value_from=ValueFrom(jq_filter=".x"))]),
        ],
        ids=["a parameter", "a model"],
    )
    def test_an_output_of_the_authors_own_is_read_after_ours_and_its_error_names_it(self, outputs: Any) -> None:
        made = step(outputs=outputs)._build_template().outputs
        assert made is not None
        *ours, own = made.parameters or []
        assert [each.name for each in ours] == ["job", "state", "message", "result", "files"]
        given = parameters(outputs)["accuracy"]
        assert own.name == given.name
        assert own.value_from is not None
        assert re.fullmatch(
            r'try \(\.(status|x).*\n\) catch error\("output accuracy: \\\(\.\)"\)',
            str(own.value_from.jq_filter),
            re.DOTALL,
        )

    def test_outputs_that_are_no_filters_stay_as_they_are(self) -> None:
        path = Parameter(name="uid", value_from=ValueFrom(json_path="{.metadata.uid}"))
        made = step(outputs=[path])._build_template().outputs
        assert made is not None
        assert (made.parameters or [])[-1].value_from == path.value_from

    @pytest.mark.parametrize(
        ("success", "failure"),
        [
            ("status.state == Succeeded", "status.state == Failed"),
            ("status.state=Succeeded", "status.state == Failed"),
            ("status.state in (Running, Succeeded)", "status.state == Failed"),
            ("status.state notin (Failed,Pending)", "status.state == Failed"),
            ("status.replicaStatuses.Worker.succeeded > 1", "status.state == Failed"),
            ("status.state in (Succeeded, Failed)", None),
            ("status.state != Running", None),
            ("status.state notin (Created,Running)", None),
            ("status.state", None),
            ("status.completionTime", None),
        ],
    )
    def test_a_job_that_failed_ends_every_wait(self, success: str, failure: str | None) -> None:
        """A condition that holds for a Failed job leaves the failure to our output, which has the job's own words."""
        assert step(success_condition=success).failure_condition == failure

    @pytest.mark.parametrize(
        ("success", "failure", "is_then"),
        [
            ("status.state == Running", None, "status.state == Failed,status.state == Succeeded"),
            ("status.state==Running", "status.state == Succeeded", "status.state == Succeeded,status.state == Failed"),
            ("status.state == Succeeded", "status.restarts > 3", "status.restarts > 3,status.state == Failed"),
            ("status.restarts > 0", "!status.startTime", "!status.startTime,status.state == Failed"),
            (
                "status.state in (Running,Succeeded)",
                "status.state in (Failed,Suspended)",
                "status.state in (Failed,Suspended)",
            ),
            (
                "status.state == Succeeded",
                "status.restarts > 3,status.completionTime",
                "status.restarts > 3,status.completionTime",
            ),
        ],
    )
    def test_a_condition_of_the_authors_that_misses_an_end_of_the_job_is_completed(
        self, success: str, failure: str | None, is_then: str
    ) -> None:
        made = step(success_condition=success, failure_condition=failure)
        assert made.failure_condition == is_then
        assert step(success_condition=success, failure_condition=is_then).failure_condition == is_then
        assert made._build_template().resource.failure_condition == is_then

    @pytest.mark.parametrize(
        "path", sorted(SEEDS.glob("00*/*.y*ml")), ids=lambda path: f"{path.parent.name}/{path.stem}"
    )
    def test_a_manifest_of_any_format_is_the_v1_job_that_it_means(self, path: Path) -> None:
        written = load(path.read_text())
        meant = to_v1(written)["spec"]
        policy = {"activeDeadlineSeconds": 86400, **meant.get("runPolicy", {})}
        for spec, policies in ((None, policy), (MXJobSpec(backoff_limit=9), {**policy, "backoffLimit": 9})):
            made = CheckedJob(step(spec=spec, manifest={**written, "metadata": {}})).given()
            assert (made["apiVersion"], made["kind"]) == ("kubeflow.org/v1", "MXJob")
            assert list(made["spec"]["mxReplicaSpecs"]) == list(meant["mxReplicaSpecs"])
            assert made["spec"]["runPolicy"] == policies

    def test_an_older_manifest_with_a_mistake_is_rejected_in_its_own_words(self) -> None:
        older = {"apiVersion": "kubeflow.org/v1beta1", "spec": {**MANIFEST["spec"], "cleanPodPolicy": "Sometimes"}}
        with pytest.raises(ValueError, match=r"^train: spec\.cleanPodPolicy: "):
            step(spec=None, manifest=older)

    def test_an_older_manifest_takes_no_values_of_inputs(self) -> None:
        older = {"apiVersion": "kubeflow.org/v1beta1", "spec": {**MANIFEST["spec"], "cleanPodPolicy": text("p")}}
        with pytest.raises(ValueError, match=r"^train: .* of the format v1beta1: convert it first: mxjob convert"):
            step(spec=None, manifest=older, inputs=[Parameter(name="p")])

    def test_a_deadline_always_stands_in_the_job(self) -> None:
        assert manifest_of(step())["spec"]["runPolicy"]["activeDeadlineSeconds"] == 86400
        assert manifest_of(step(deadline=60))["spec"]["runPolicy"]["activeDeadlineSeconds"] == 60
        assert manifest_of(with_policy(activeDeadlineSeconds=5))["spec"]["runPolicy"]["activeDeadlineSeconds"] == 5

    @pytest.mark.parametrize(
        ("timeout", "seconds"),
        [("2h", 7200), ("1h30m", 5400), ("90s", 90), ("1.5s", 2), ("48h", 86400), ("{{inputs.parameters.t}}", 86400)],
    )
    def test_a_job_is_not_active_for_longer_than_its_step_waits(self, timeout: str, seconds: int) -> None:
        assert manifest_of(step(timeout=timeout))["spec"]["runPolicy"]["activeDeadlineSeconds"] == seconds

    def test_a_deadline_of_the_job_itself_stands_whatever_the_steps_timeout(self) -> None:
        spec = MXJobSpec(image="a", command=COMMAND, active_deadline_seconds=7200)
        assert manifest_of(step(spec=spec, timeout="1h"))["spec"]["runPolicy"]["activeDeadlineSeconds"] == 7200

    def test_a_deadline_may_be_a_timedelta(self) -> None:
        for timeout, seconds in ((None, 5400), ("1h", 3600), ("2h", 5400)):
            policy = manifest_of(step(deadline=timedelta(hours=1.5), timeout=timeout))["spec"]["runPolicy"]
            assert policy["activeDeadlineSeconds"] == seconds

    @pytest.mark.parametrize("deadline", ["3600", 1.5, True, "{{inputs.parameters.d}}"])
    @pytest.mark.parametrize("timeout", [None, "1h"])
    def test_a_deadline_of_another_type_is_rejected(self, deadline: Any, timeout: str | None) -> None:
        with pytest.raises(ValueError, match=r"^train: deadline: must be seconds, a whole number or a timedelta, is "):
            step(deadline=deadline, timeout=timeout)

    @pytest.mark.parametrize(
        "value", [text("p"), integer("p"), number("p"), data("p")], ids=lambda value: value.kind.name
    )
    def test_a_value_of_an_input_stands_in_the_job_or_is_named(self, value: Value) -> None:
        described = [each for each in FIELDS if each not in ("name", "namespace")]
        roles = [(field, {"workers": Role(**{field: value})}) for field in described if hasattr(Role, field)]
        for field, fields in [*((field, {field: value}) for field in described), *roles]:
            try:
                made = step(
                    spec=MXJobSpec(**{"image": "a", "command": COMMAND, **fields}), inputs=[Parameter(name="p")]
                )
            except ValueError as error:
                words = {"queue_name": "metadata.labels"}
                assert words.get(field, field) in str(error) or ("input p: spec." in str(error) and value.is_text)
            else:
                assert "inputs.parameters.p" in made._build_manifest(), field

    def test_what_lies_on_the_job_does_not_lie_on_its_poller(self) -> None:
        """A queue's label on the poller's pod would have the queue hold the poller back as well."""
        labelled = {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "gpu"}}, **MANIFEST}
        made = MXJobStep(name="queued", manifest=labelled)
        assert "queue-name: gpu" in made._build_manifest()
        assert made._build_template().metadata is None

    def test_what_the_kubelet_would_take_for_a_variable_of_argos_pod_stands_there_as_an_escape(self) -> None:
        spec = MXJobSpec(image="a", command=["sh", "-c", "echo $$ $(ARGO_POD_NAME) é"])
        made = step(spec=spec)._build_manifest()
        assert r'"echo \u0024\u0024 \u0024(ARGO_POD_NAME) é"' in made
        assert "$" not in made

    def test_a_killed_poller_is_restarted_in_its_pod_on_request(self) -> None:
        patch = json.loads(str(step(restart_killed_poller=True).pod_spec_patch))
        (main,) = patch["containers"]
        assert (main["name"], main["restartPolicy"]) == ("main", "Never")
        (rule,) = main["restartPolicyRules"]
        assert rule == {"action": "Restart", "exitCodes": {"operator": "In", "values": [137]}}
        assert step().pod_spec_patch is None


class TestRefusals:
    @pytest.mark.parametrize(
        ("fields", "words"),
        [
            ({"action": "create"}, "the action is apply"),
            ({"set_owner_reference": True}, "leave set_owner_reference out"),
            ({"active_deadline_seconds": 5}, "would end who waits, not the job"),
            ({"manifest_from": ManifestFrom(artifact=Artifact(name="a"))}, "can't be checked"),
            ({"timeout": "60"}, "Argo can't read '60': write 90s"),
            ({"timeout": "soon"}, "Argo can't read 'soon'"),
            ({"success_condition": "status.state==Succeeded,status.restarts<1"}, "can't read"),
            ({"prefix": "Train_1"}, "can't begin the name of an MXJob"),
            ({"prefix": "a" * 60}, "at most"),
            ({"spec": None}, "give spec or manifest"),
            ({"retry_strategy": RetryStrategy(limit=2)}, "find the same failed job. .*backoffLimit"),
            ({"outputs": [Parameter(name="result")]}, "output result: the step has one of that name already"),
            ({"node_selector": {"pool": "gpus"}}, r"not the job's: .*MXJobSpec\(node_selector=.*Workflow\(node_sel"),
            ({"tolerations": [Toleration(key="gpu")]}, r"MXJobSpec\(tolerations="),
            ({"affinity": Affinity()}, r"MXJobSpec\(affinity="),
            ({"scheduler_name": "volcano"}, r"MXJobSpec\(scheduler_name="),
            ({"priority_class_name": "high"}, r"Workflow\(pod_priority_class_name="),
            ({"restart_killed_poller": True, "pod_spec_patch": "{}"}, "is a pod_spec_patch: give one of them"),
        ],
        ids=lambda value: str(value)[:40],
    )
    def test_what_would_break_the_step_is_refused_when_it_is_built(self, fields: dict[str, Any], words: str) -> None:
        with pytest.raises(ValueError, match=words):
            step(**fields)

    @pytest.mark.parametrize("suspend", [True, False])
    def test_a_manifest_leaves_suspension_to_others(self, suspend: bool) -> None:
        with pytest.raises(ValueError, match=r"runPolicy\.suspend: leave it out"):
            with_policy(suspend=suspend)

    def test_a_null_says_nothing_of_suspension(self) -> None:
        with_policy(suspend=None)

    def test_a_workflow_that_refers_to_a_template_has_its_exit_handler(self) -> None:
        """Argo rejects a workflow with templates beside workflowTemplateRef."""
        referring = Workflow(generate_name="a-", workflow_template_ref=models.WorkflowTemplateRef(name="mine"))
        with pytest.raises(ValueError, match=r"give the exit handler to mine itself, delete_jobs_on_exit\(template\)"):
            delete_jobs_on_exit(referring)
        assert not referring.templates

    def test_a_job_that_could_be_gone_before_the_step_looks_is_refused(self) -> None:
        with pytest.raises(ValueError, match="300 at least"):
            with_policy(ttlSecondsAfterFinished=10)

    def test_tags_of_argo_in_text_are_refused_with_what_to_use(self) -> None:
        with pytest.raises(ValueError, match=r"args\[0\].*use mxnet_argo\.text\(\)"):
            step(spec=MXJobSpec(image="a", command=COMMAND, args=["{{inputs.parameters.lr}}"]))

    def test_only_text_can_be_joined(self) -> None:
        with pytest.raises(TypeError, match="use text"):
            "--workers=" + integer("workers")

    @pytest.mark.parametrize("name", ["", "a b", "x}}", "a'b"])
    def test_what_is_no_parameter_name_is_refused(self, name: str) -> None:
        with pytest.raises(ValueError, match="is not the name of a parameter"):
            text(name)


FILLED_IN_LATER: list[dict[str, Any]] = [
    {"container_resources": {"limits": {"memory": text("p")}}},
    {"container_resources": {"limits": {"memory": text("p") + "Gi"}}},
    {"container_resources": {"limits": {"memory": expression("workflow.parameters.memory")}}},
    {"container_resources": data("p")},
    {"restart_policy": text("p")},
    {"restart_policy": "On" + text("p")},
    {"clean_pod_policy": text("p")},
    {"restart_scope": text("p")},
    {"success_policy": text("p")},
    {"placement": text("p")},
    {"run_policy": {"ttlSecondsAfterFinished": integer("p")}},
    {"ttl_seconds_after_finished": integer("p")},
    {"backoff_limit": integer("p")},
    {"volumes": data("p")},
    {"env": data("p")},
    {"tolerations": data("p")},
    {"node_selector": data("p")},
    {"workers": integer("p"), "servers": integer("p")},
]


class TestWhatIsFilledInLater:
    @pytest.mark.parametrize("fields", FILLED_IN_LATER, ids=lambda fields: str(list(fields)))
    def test_what_no_default_says_is_judged_by_the_api_server(self, fields: dict[str, Any]) -> None:
        spec = MXJobSpec(image="a", command=COMMAND, **fields)
        for inputs in ([Parameter(name="p")], [Parameter(name="p", default="{{workflow.name}}")]):
            assert "restartPolicy" in step(spec=spec, inputs=[*inputs])._build_manifest()
            MXJobRunner(name="r", image="i", spec=spec, inputs=[*inputs])

    def test_a_default_that_is_sound_only_with_the_text_around_it_is_taken(self) -> None:
        spec = MXJobSpec(image="a", command=COMMAND, restart_policy="On" + text("p"))
        assert '"On" + inputs' in step(spec=spec, inputs=[Parameter(name="p", default="Failure")])._build_manifest()

    def test_what_is_wrong_beside_it_is_still_said(self) -> None:
        spec = MXJobSpec(image="a", command=COMMAND, restart_policy=text("p"), run_policy={"backofLimit": 3})
        with pytest.raises(ValueError, match="backofLimit") as caught:
            step(spec=spec, inputs=[Parameter(name="p")])
        assert "restartPolicy" not in str(caught.value)


class TestConditions:
    @pytest.mark.parametrize(
        "condition",
        [
            "status.state == Succeeded",
            "status.state in (A,B)",
            "status.x != y",
            "!status.done",
            "status.n > 3",
            "status.done",
        ],
    )
    def test_argos_grammar_is_taken(self, condition: str) -> None:
        check_condition("success_condition", condition)

    @pytest.mark.parametrize(
        "condition",
        [
            'status.conditions.#(type=="X").status',
            "a >= 3",
            "a == b c",
            "a || b",
            "a == 'x'",
            "a > -1",
            "",
            "a == b,c == d",
        ],
    )
    def test_what_argo_reads_too_late_or_otherwise_is_refused(self, condition: str) -> None:
        with pytest.raises(ValueError, match="can't read"):
            check_condition("success_condition", condition)


WRONG = {
    "command": ("python train.py", "input command: 'python train.py' is not JSON"),
    "args": ('"--epochs 20"', r"""input args: '"--epochs 20"' is no JSON list"""),
    "env": ('[{"name": "A", "value": 1}]', "input env: .*value"),
    "resources": ("{'limits': {}}", "input resources: .* is not JSON"),
    "workers": ("two", "input workers: 'two' is not a whole number"),
    "servers": (-1, "input servers: .*replicas: .*should be greater than or equal to 0"),
    "deadline": (-5, "input deadline: .*activeDeadlineSeconds"),
    "backoff-limit": ("1.5", "input backoff-limit: '1.5' is not a whole number"),
}
GIVEN = {"image": "a", "command": ["python"]}


class TestArguments:
    @pytest.mark.parametrize("template", ["mxjob-train", "mxjob-runner"])
    @pytest.mark.parametrize("name", list(WRONG))
    def test_what_a_template_cannot_read_is_refused_with_the_name_of_the_input(self, template: str, name: str) -> None:
        value, words = WRONG[name]
        with pytest.raises(ValueError, match=f"^mine: {template}: (train|run): {words}"):
            mxjob_ref("mine", template, {**GIVEN, name: value})

    def test_a_pipelines_arguments_are_checked_by_the_job_that_takes_them(self) -> None:
        given = {**GIVEN, "tune-image": "a", "tune-command": ["python"]}
        with pytest.raises(ValueError, match="mxjob-tune-then-train: tune: input tune-servers: 'x' is not a whole"):
            mxjob_ref("mine", "mxjob-tune-then-train", {**given, "tune-servers": "x"})
        with pytest.raises(ValueError, match="mxjob-sweep: train: input workers"):
            mxjob_ref("mine", "mxjob-sweep", {**GIVEN, "trials": [1], "workers": 0.5})

    def test_what_has_tags_in_it_is_left_to_argo(self) -> None:
        task = mxjob_ref("mine", "mxjob-train", {**GIVEN, "workers": "{{inputs.parameters.n}}"})
        assert task.arguments["workers"] == "{{inputs.parameters.n}}"  # type: ignore[index,call-overload]

    def test_a_reference_adds_nothing_to_the_workflow_around_it(self) -> None:
        reference._entry.cache_clear()
        with Workflow(name="w", entrypoint="both") as workflow, DAG(name="both"):
            mxjob_ref("mine", "mxjob-sweep", {**GIVEN, "trials": [1]})
        assert [each.name for each in workflow.templates] == ["both"]

    @pytest.mark.parametrize(
        "inputs",
        [
            {"lr": "0.1"},
            [{"lr": "0.1"}],
            Parameter(name="lr", default="0.1"),
            [models.Parameter(name="lr", default="0.1")],
            models.Inputs(parameters=[models.Parameter(name="lr")]),
            Parameter(name="lr", value="0.1"),
            [models.Parameter(name="lr", value="0.1")],
        ],
        ids=["mapping", "list of mappings", "parameter", "model", "model of all", "value", "value of a model"],
    )
    def test_inputs_may_be_given_in_each_of_heras_forms(self, inputs: Any) -> None:
        spec = MXJobSpec(image="a", command=COMMAND, env={"LR": text("lr")})
        for made in (step(inputs=inputs, spec=spec), MXJobRunner(name="r", image="i", inputs=inputs, spec=spec)):
            built = made._build_template()
            assert built.inputs is not None
            assert [each.name for each in built.inputs.parameters or []] == ["lr"]

    @pytest.mark.parametrize("model", [Parameter, models.Parameter])
    def test_pipelines_keep_all_that_an_input_says(self, model: Any) -> None:
        key = models.ConfigMapKeySelector(name="c", key="k")
        given = [
            model(name="lr"),
            model(name="optimizer", default="sgd", enum=["sgd", "adam"], description="which"),
            model(name="image", value_from=ValueFrom(config_map_key_ref=key)),
            model(name="epochs", value="3"),
        ]
        used = {"LR": text("lr"), "OPT": text("optimizer"), "EPOCHS": text("epochs")}
        spec = MXJobSpec(image=text("image"), command=COMMAND, env=used)
        both = step(name="a", spec=spec, inputs=given), step(name="b", spec=spec, inputs=given)
        for dag in (
            sweep("search", both[0], by="x", trial_inputs=["lr"]),
            tune_then_train("both", *both, tuned_input="lr"),
        ):
            built = dag._build_template().inputs
            assert built is not None
            found = {each.name: each for each in built.parameters or []}
            optimizer = found["optimizer"]
            assert (optimizer.default, optimizer.enum, optimizer.description) == ("sgd", ["sgd", "adam"], "which")
            assert found["image"].value_from == ValueFrom(config_map_key_ref=key)
            assert found["epochs"].default == "3"

    @pytest.mark.parametrize("artifact", [Artifact(name="log", path="/log"), OwnArtifact(name="log", path="/log")])
    @pytest.mark.parametrize("field", ["inputs", "outputs"])
    def test_an_artifact_is_refused_with_the_volume_that_reaches_the_jobs_pods(self, field: str, artifact: Any) -> None:
        model = models.Inputs if field == "inputs" else models.Outputs
        forms = [artifact, [Parameter(name="lr"), artifact]]
        forms += [model(artifacts=[artifact])] if isinstance(artifact, models.Artifact) else []
        for given in forms:
            for make in (step, lambda **fields: MXJobRunner(name="train", image="i", spec=step().spec, **fields)):
                with pytest.raises(ValueError, match=r"train: artifact log: .*ExistingVolume\(claim_name="):
                    make(**{field: given})

    def test_what_is_said_of_a_step_later_holds_for_its_job(self) -> None:
        made = step()
        made.timeout = "1h"
        made.inputs = {"lr": "0.1"}
        made.spec = MXJobSpec(image="a", command=COMMAND, args=[text("lr")])
        assert "activeDeadlineSeconds: 3600" in made._build_manifest()
        assert "inputs.parameters.lr" in made._build_manifest()
        made.spec = MXJobSpec(image="a", command=COMMAND, args=[text("epochs")])
        with pytest.raises(ValueError, match="the manifest uses epochs"):
            made._build_manifest()


class TestWorkflows:
    def test_jobs_are_deleted_on_exit_unless_the_run_succeeded(self) -> None:
        with Workflow(name="w", entrypoint="train") as workflow:
            step()
        delete_jobs_on_exit(workflow)
        spec = workflow.to_dict()["spec"]
        assert spec["onExit"] == "mxjob-cleanup"
        handler, delete = spec["templates"][1:]
        ((only,),) = handler["steps"]
        assert only["when"] == "{{=workflow.status != 'Succeeded'}}"
        assert only["arguments"]["parameters"] == [{"name": "which", "value": "status.state!=Succeeded"}]
        assert "mxjob.kubeflow.org/workflow-uid={{workflow.uid}}" in delete["resource"]["flags"]
        assert delete["retryStrategy"]["retryPolicy"] == "Always"

    def test_whoever_submits_a_workflow_may_choose_whether_they_are(self) -> None:
        with Workflow(name="w", entrypoint="train", arguments=Parameter(name="lr", value="1")) as workflow:
            step()
        delete_jobs_on_exit(workflow, choice="on-failure")
        spec = workflow.to_dict()["spec"]
        ended = "workflow.status != 'Succeeded' && (workflow.parameters['on-failure'] ?? 'delete') != 'keep'"
        waits = f"{{{{={ended} && (workflow.parameters['keep-failed-for'] ?? '0') != '0'}}}}"
        steps = {each["name"]: each for (each,) in spec["templates"][1]["steps"]}
        assert {name: each["when"] for name, each in steps.items()} == {
            "delete-unfinished": waits,
            "keep": waits,
            "delete": f"{{{{={ended}}}}}",
        }
        assert steps["keep"]["continueOn"] == {"error": True, "failed": True}
        lr, choice, kept = spec["arguments"]["parameters"]
        assert (lr["name"], choice["name"], choice["value"]) == ("lr", "on-failure", "delete")
        assert (kept["name"], kept["value"]) == ("keep-failed-for", "0")

    def test_an_input_of_both_steps_has_one_default(self) -> None:
        def made(name: str, default: str) -> MXJobStep:
            inputs = [Parameter(name="tuned", default=name), Parameter(name="x", default=default)]
            return step(name=name, inputs=inputs)

        with pytest.raises(ValueError, match=r"both: tune and train both have an input x, with .*'1', '2'"):
            tune_then_train("both", made("tune", "1"), made("train", "2"), tuned_input="tuned")
        assert tune_then_train("both", made("tune", "1"), made("train", "1"), tuned_input="tuned")

    def test_two_templates_of_one_name_are_refused(self) -> None:
        with Workflow(name="w", entrypoint="train") as workflow:
            step()
            step(deadline=60)
        with pytest.raises(ValueError, match="two templates are named 'train'"):
            delete_jobs_on_exit(workflow)

    def test_an_exit_handler_of_the_users_is_not_replaced(self) -> None:
        workflow = WorkflowTemplate(name="w", entrypoint="train", on_exit="mine")
        with pytest.raises(ValueError, match=r"add mxnet_argo\.exit_handler\(\) to its templates"):
            delete_jobs_on_exit(workflow)

    def test_an_exit_hook_that_argo_would_never_run_is_refused(self) -> None:
        workflow = Workflow(name="w", entrypoint="train", hooks={"exit": models.LifecycleHook(template="mine")})
        with pytest.raises(ValueError, match="an exit handler already, and Argo runs one only"):
            delete_jobs_on_exit(workflow)
        running = models.LifecycleHook(template="mine", expression="workflow.status == 'Running'")
        delete_jobs_on_exit(Workflow(name="w", entrypoint="train", hooks={"running": running}))

    def test_the_exit_handler_may_be_added_within_a_workflow_or_outside(self) -> None:
        with Workflow(name="w", entrypoint="train", on_exit="mine") as within:
            step()
            within.templates.extend(exit_handler())
        outside = Workflow(name="w", entrypoint="train", on_exit="mine")
        outside.templates.extend([step(), *exit_handler()])
        for workflow in (within, outside):
            names = sorted(each["name"] for each in workflow.to_dict()["spec"]["templates"])
            assert names == ["mxjob-cleanup", "mxjob-delete", "train"]

    def test_a_built_step_that_is_copied_says_how_to_make_another(self) -> None:
        for made in (step(), MXJobRunner(name="train", image="i", spec=step().spec)):
            with pytest.raises(ValueError, match=r"other: .* build another, by a function .* dataclasses\.replace\(\)"):
                replace(made, name="other")

    @pytest.mark.parametrize("kind", [MXJobStep, MXJobRunner])
    def test_its_trials_run_a_few_at_a_time_by_step_or_runner(self, kind: type[MXJobStep | MXJobRunner]) -> None:
        spec = MXJobSpec(image="a", command=COMMAND, env={"LR": text("lr")})
        fields: dict[str, Any] = {"name": "train", "inputs": [Parameter(name="lr")], "spec": spec}
        trial = kind(**fields, **({"image": "i"} if kind is MXJobRunner else {}))
        with Workflow(name="w") as workflow:
            sweep("search", trial, by="loss", trial_inputs=["lr"], parallelism=2)
        (trials,) = (each for each in workflow.templates if isinstance(each, DAG) and each.name == "search-trials")
        (task,) = trials.tasks
        assert isinstance(task, Task)
        assert task.arguments == {"lr": "{{item.lr}}"}
        assert (trials.parallelism, trials.fail_fast) == (2, False)

    def test_a_sweep_that_cannot_be_is_refused(self) -> None:
        trial = step(inputs=[Parameter(name="lr"), Parameter(name="metric", default="x")])
        for fields, words in (
            ({"trial_inputs": ["momentum"]}, "train has no input momentum; it has lr, metric"),
            ({"trial_inputs": ["lr"]}, "train has an input metric, which is the sweep's"),
            ({"trial_inputs": ["lr", "metric"], "direction": "max"}, "'max' is neither maximize nor minimize"),
        ):
            with pytest.raises(ValueError, match=words):
                sweep("search", trial, by="accuracy", **fields)  # type: ignore[arg-type]

    def test_a_reference_to_a_shipped_template_has_its_arguments_checked(self) -> None:
        arguments = {"image": "a", "command": ["python"], "workers": 3}
        task = mxjob_ref("train", "mxjob-train", arguments)
        assert task.arguments == {"image": "a", "command": '["python"]', "workers": "3"}
        with pytest.raises(ValueError, match="takes no 'imag': did you mean 'image'"):
            mxjob_ref("train", "mxjob-train", {"imag": "a", "command": []})
        with pytest.raises(ValueError, match="takes no 'on-failure'"):  # it is for an exit handler, and this has none
            mxjob_ref("train", "mxjob-train", {**arguments, "on-failure": "keep"})
        with pytest.raises(ValueError, match="needs 'command'"):
            mxjob_ref("train", "mxjob-train", {"image": "a"})
        with pytest.raises(ValueError, match="no template 'mxjob-trian': did you mean 'mxjob-train'"):
            mxjob_ref("train", "mxjob-trian", arguments)


@pytest.mark.parametrize("parameter", [Parameter, models.Parameter])
def test_an_argument_may_be_a_parameter_with_a_value(parameter: Any) -> None:
    given = {**GIVEN, "workers": parameter(name="n", value="2")}
    assert mxjob_ref("r", "mxjob-train", given).arguments["workers"] == "2"  # type: ignore[index,call-overload]
    with pytest.raises(ValueError, match="input workers: 'x' is not a whole number"):
        mxjob_ref("r", "mxjob-train", {**GIVEN, "workers": parameter(name="n", value="x")})


@pytest.mark.kubernetes("argo-evaluate")
@pytest.mark.parametrize("result", ['a","--epochs","999', '{"accuracy": 0.5}', "two\nlines {{x}} $HOME"])
@pytest.mark.parametrize("written", ["a list", "JSON", "a Parameter"])
def test_a_result_within_a_list_stays_one_argument(argo: Expressions, result: str, written: str) -> None:
    with Workflow(name="w", entrypoint="both"), DAG(name="both"):
        first = mxjob_ref("one-first", "mxjob-train", GIVEN)
        tag = "{{tasks.one-first.outputs.parameters.result}}"
        given = ["--from", first.get_parameter("result") if written == "a Parameter" else tag, "--of={{workflow.name}}"]
        args = json.dumps(given) if written == "JSON" else given
        second = mxjob_ref("second", "mxjob-train", {**GIVEN, "args": args})
    scope = {"tasks.one-first.outputs.parameters.result": result, "workflow.name": "run"}
    arrived = argo.filled_in(second.arguments["args"], scope)  # type: ignore[index,call-overload]
    assert json.loads(arrived) == ["--from", result, "--of=run"]


def test_the_tags_of_a_list_are_also_written_where_argo_checks_its_references() -> None:
    """Of expressions it checks none: a task with a wrong one would wait for ever."""
    first = mxjob_ref("first", "mxjob-train", GIVEN)
    assert first.result == first.get_parameter("result").value == "{{tasks.first.outputs.parameters.result}}"
    with pytest.raises(ValueError, match="there is no output 'result'"):
        _ = mxjob_ref("search", "mxjob-sweep", {**GIVEN, "trials": [1]}).result
    args = ["--from", first.result, "--of={{workflow.parameters.lrr}}", "--to={{tasks.first.ip}}", first.result]
    given = mxjob_ref("r", "mxjob-train", {**GIVEN, "args": args, "image": "{{workflow.name}}"}).arguments
    assert isinstance(given, dict)
    assert given["references"] == f"{first.result} {{{{workflow.parameters.lrr}}}} {{{{tasks.first.ip}}}}"
    assert "references" not in mxjob_ref("r", "mxjob-train", {**GIVEN, "args": first.result}).arguments  # type: ignore[operator]


def test_an_item_that_is_a_mapping_is_refused_within_a_list() -> None:
    """Argo's expressions know the texts of its fields only."""
    given = {**GIVEN, "args": ["--trial", "{{item}}"]}
    mxjob_ref("r", "mxjob-train", given, with_items=[0.1, 0.2])
    mxjob_ref("r", "mxjob-train", {**GIVEN, "args": ["{{item.lr}}"]}, with_items=[{"lr": 0.1}])
    with pytest.raises(ValueError, match=r"r: \{\{item\}\} is a mapping, .* such as \{\{item\.lr\}\}"):
        mxjob_ref("r", "mxjob-train", given, with_items=[{"lr": 0.1}])


@pytest.mark.parametrize("trials", ["0.1,0.2", [], {"lr": 1}, "[0.1"])
def test_trials_that_are_none_are_refused_when_it_is_built(trials: Any) -> None:
    with pytest.raises(ValueError, match=r"search: argument trials: .* JSON"):
        mxjob_ref("search", "mxjob-sweep", {**GIVEN, "trials": trials})
    mxjob_ref("search", "mxjob-sweep", {**GIVEN, "trials": "{{inputs.parameters.trials}}"})


@pytest.mark.parametrize("direction", ["min", "Maximize"])
def test_a_direction_that_is_none_is_refused_when_it_is_built(direction: str) -> None:
    with pytest.raises(ValueError, match=f"direction is '{direction}': .*maximize"):
        mxjob_ref("search", "mxjob-sweep", {**GIVEN, "trials": [1], "direction": direction})


@pytest.mark.parametrize(
    "value",
    [
        Parameter(name="i"),
        models.Parameter(name="i"),
        [Parameter(name="i")],
        text("i"),
        {1},
        float("nan"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_argument_without_a_text_is_named(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^r: argument image: "):
        mxjob_ref("r", "mxjob-train", {**GIVEN, "image": value})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("workers", "{{workflow.parameters.workers}}"),
        ("workers", g.workflow.parameters.workers),
        ("workers", Parameter(name="workers")),
        ("volumes", "{{inputs.parameters.volumes}}"),
        ("image", g.inputs.parameters.image),
    ],
)
def test_what_argo_would_fill_in_is_rejected_by_its_path_with_what_to_write(field: str, value: Any) -> None:
    given: dict[str, Any] = {"image": "i", "command": COMMAND, field: value}
    with pytest.raises(ValueError, match=rf'^{field}: must be .*: what Argo fills in is integer\("x"\)'):
        MXJobSpec(**given)


def test_only_that_is_told_so() -> None:
    with pytest.raises(ValueError, match=r"workers: must be a whole number from 0 on.* is the string 'two'$"):
        MXJobSpec(image="i", workers="two")  # type: ignore[arg-type]


def test_text_where_a_number_belongs_is_rejected_whatever_it_says() -> None:
    spec = MXJobSpec(image="i", command=COMMAND, workers=expression("workflow.parameters.workers"), servers=0)
    with pytest.raises(ValueError, match=r"Worker\.replicas: .* of type integer.*: text: integer\(.* makes a number"):
        step(spec=spec)
    with pytest.raises(ValueError, match=r"input memory: spec\.runPolicy\.backoffLimit.*makes a number of it"):
        step(spec=replace(spec, workers=1, backoff_limit=text("memory")), inputs=[Parameter(name="memory")])


def test_a_number_of_what_is_one_already_is_rejected() -> None:
    with pytest.raises(TypeError, match=r"inputs\.parameters\.a is integer already"):
        data(integer("a"))


def test_a_number_is_written_as_one() -> None:
    assert "? asFloat(given) : wrong" in number("rate").tag
    assert number("rate").kind.parse("1e-3") == 0.001
    with pytest.raises(ValueError, match="'NaN' is not a number"):
        number("rate").kind.parse("NaN")


@pytest.mark.parametrize(
    ("said", "final"),
    [
        ("error: MXJob digits-0123456789ab failed: worker-0 exited with code 1:\nBoom", True),
        ('Error from server (NotFound): mxjobs.kubeflow.org "digits" not found', True),
        ("MXJob digits has been deleted while its status was still being checked", True),
        ("the resource has been deleted", True),
        (
            'Error from server (BadRequest): error when creating "/tmp/manifest.yaml": MXJob in version "v1" cannot be'
            ' handled as a MXJob: strict decoding error: unknown field "spec.bogus"',
            True,
        ),
        ('admission webhook "jobs.example.com" denied the request: no quota', True),
        ('Error from server (Forbidden): mxjobs.kubeflow.org is forbidden: User "a" cannot create resource', True),
        ('Error from server (Forbidden): mxjobs.kubeflow.org "d" is forbidden: exceeded quota: few, used: 1', False),
        ('error: MXJob digits failed: pods "d" is forbidden: exceeded quota: few', True),
        ("main: Error (exit code 64): error: output accuracy: fromjson cannot be applied to: null", True),
        ('main: Error (exit code 64): unexpected token ")"', True),
        ("main: Error (exit code 64): function not defined: fromjsn/0", True),
        ('main: Error (exit code 64): invalid escape sequence "\\d" in string literal', True),
        ('main: Error (exit code 64): invalid token "\'"', True),
        ("main: Error (exit code 64): input(s)/0 is not allowed", True),
        ("main: Error (exit code 64): halt error: 5", True),
        (
            'main: Error (exit code 64): error executing jsonpath "{.status.conditions[5].type}": Error executing'
            " template: array index out of bounds: index 5, length 3",
            True,
        ),
        ("main: Error (exit code 64): unexpected EOF", False),
        ('error: Apply failed with 1 conflict: conflict with "argo-mxjob-0": .spec.mxReplicaSpecs', False),
        ("pod deleted", False),
        ("OOMKilled (exit code 137)", False),
        ("The node was low on resource: memory.", False),
        ('Post "https://10.0.0.1/apis/kubeflow.org/v1": context deadline exceeded', False),
    ],
)
def test_a_poller_s_last_words_say_whether_another_would_end_the_same_way(said: str, final: bool) -> None:
    strategy = step().retry_strategy
    assert strategy is not None
    source = re.sub("lastRetry.message contains ('.*?')", r"(\1 in said)", str(strategy.expression))
    source = re.sub("lastRetry.message matches ('.*?')", r"bool(re.search(r\1, said))", source)
    source = source.replace("&&", "and").replace("||", "or")
    assert eval(source, {"re": re, "said": said}) is not final


@pytest.mark.kubernetes("argo-evaluate")
@pytest.mark.parametrize(
    ("retries", "message", "flags"),
    [
        ("0", "", ["--field-manager=argo-mxjob-0", "--server-side=false", "--dry-run=none"]),
        ("1", "pod deleted", ["--field-manager=argo-mxjob-1", "--server-side=true", "--dry-run=none"]),
        (
            "2",
            "Apply failed with 1 conflict",
            ["--field-manager=argo-mxjob-2", "--server-side=false", "--dry-run=client"],
        ),
    ],
    ids=["the first", "another", "after a conflict"],
)
def test_a_poller_creates_the_job_or_follows_it(
    argo: Expressions, retries: str, message: str, flags: list[str]
) -> None:
    resource = step(flags=["--validate=false"])._build_template().resource
    assert resource is not None
    scope = {"retries": retries, "lastRetry.message": message}
    given = [argo.filled_in(each, scope).replace("{{retries}}", retries) for each in resource.flags or []]
    assert [each.replace("True", "true").replace("False", "false") for each in given] == [*flags, "--validate=false"]


def test_no_field_of_a_retry_is_left_to_an_organisations_template_defaults() -> None:
    """Argo merges `templateDefaults` into what a template leaves out, which would end a running job's only poller."""
    spec = MXJobSpec(image="a", command=COMMAND)
    with Workflow(name="w", entrypoint="train") as workflow:
        step()
        MXJobRunner(name="run", image="i", spec=spec)
    delete_jobs_on_exit(workflow)
    given = {
        each["name"]: each["retryStrategy"]
        for each in workflow.to_dict()["spec"]["templates"]
        if "retryStrategy" in each
    }
    assert given.keys() == {"train", "run", "mxjob-delete"}
    for strategy in given.values():
        assert strategy.keys() == {"limit", "retryPolicy", "backoff", "expression"}
        assert strategy["retryPolicy"] == "Always"
        assert strategy["backoff"].keys() == {"duration", "factor", "cap", "maxDuration"}
        assert timedelta(days=365) < timedelta(hours=int(strategy["backoff"]["maxDuration"].removesuffix("h")))


def test_ten_more_pollers_are_tried_and_their_pauses_grow() -> None:
    """Written down here once more: a golden file follows whatever the code says."""
    strategy = step().retry_strategy
    assert strategy is not None
    assert strategy.backoff is not None
    assert (strategy.limit, strategy.backoff.duration, strategy.backoff.cap) == (10, "5s", "10m")
    assert strategy.backoff.factor == IntOrString(root=2)


HERAS: dict[str, Any] = {
    "env": [
        Env(name="A", value=1),
        Env(name="B", value=text("p")),
        SecretEnv(name="C", secret_name="s", secret_key="k"),
        ConfigMapEnv(name="D", config_map_name="c", config_map_key="k"),
        {"name": "E", "value": "e"},
    ],
    "env_from": [ConfigMapEnvFrom(name="c", prefix="P_")],
    "volumes": [
        ExistingVolume(name="data", claim_name="data", mount_path="/data", read_only=True),
        EmptyDirVolume(name="scratch", mount_path="/scratch"),
        SecretVolume(name="keys", secret_name="s", mount_path="/keys"),
        {"name": "other", "emptyDir": {}},
    ],
    "volume_mounts": [{"name": "other", "mountPath": "/other"}],
}
KUBERNETES: dict[str, Any] = {
    "env": [
        {"name": "A", "value": "1"},
        {"name": "B", "value": text("p")},
        {"name": "C", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        {"name": "D", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
        {"name": "E", "value": "e"},
    ],
    "env_from": [{"prefix": "P_", "configMapRef": {"name": "c"}}],
    "volumes": [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data", "readOnly": True}},
        {"name": "scratch", "emptyDir": {}},
        {"name": "keys", "secret": {"secretName": "s"}},
        {"name": "other", "emptyDir": {}},
    ],
    "volume_mounts": [
        {"name": "other", "mountPath": "/other"},
        {"name": "data", "mountPath": "/data", "readOnly": True},
        {"name": "scratch", "mountPath": "/scratch"},
        {"name": "keys", "mountPath": "/keys"},
    ],
}


def test_heras_own_objects_mean_what_kubernetes_words_mean() -> None:
    resources = Resources(cpu_request=2, memory_limit="4Gi", gpus=1)
    gpu = {"nvidia.com/gpu": "1"}
    limits = {"requests": {"cpu": "2", **gpu}, "limits": {"memory": "4Gi", **gpu}}
    for own, theirs in (
        ({**HERAS, "container_resources": resources}, {**KUBERNETES, "container_resources": limits}),
        ({"workers": Role(**HERAS)}, {"workers": Role(**KUBERNETES)}),
        ({"workers": {"container_resources": resources}}, {"workers": {"container_resources": limits}}),
        ({"volumes": HERAS["volumes"][1]}, {"volumes": [{"name": "scratch", "emptyDir": {}}],
         "volume_mounts": [{"name": "scratch", "mountPath": "/scratch"}]}),
    ):  # fmt: skip
        made = MXJobSpec(image="a", command=COMMAND, **own).to_dict()
        assert made == MXJobSpec(image="a", command=COMMAND, **theirs).to_dict()


def test_a_volume_that_argo_would_make_for_its_own_pods_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Volume data .*give ExistingVolume\(claim_name="):
        MXJobSpec(image="a", command=COMMAND, volumes=[Volume(name="data", size="1Gi", mount_path="/data")])
