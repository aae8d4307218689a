"""What an MXJobStep becomes, and what it refuses before a workflow is submitted."""

from datetime import date
from typing import Any

import pytest
import yaml
from hera.workflows import Parameter, Task, Workflow, WorkflowTemplate
from hera.workflows.models import Artifact, ManifestFrom

from mxnet_argo import MXJobSpec, MXJobStep, data, delete_jobs_on_exit, integer, mxjob_ref, number, sweep, text
from mxnet_argo.conditions import check_condition

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
    assert isinstance(made.manifest, str)
    quoted = made.manifest.replace('"', "`").replace("'", "`").replace("{{=", "'{{=").replace("}}", "}}'")
    loaded: dict[str, Any] = yaml.safe_load(quoted)
    return loaded


def as_json(value: str) -> str:
    """The tag that writes a value as JSON without two braces and without `$`, as `manifest_of` shows it."""
    return rf"{{{{=sprig.replace(`$`, `\\u0024`, sprig.replace(`{{` + `{{`, `{{\\u007b`, toJson({value})))}}}}"


def with_policy(**policy: Any) -> MXJobStep:
    return step(spec=MXJobSpec(image="a:1", command=COMMAND, run_policy=policy))


class TestManifest:
    def test_the_name_is_the_same_for_each_attempt_and_no_other_run_has_it(self) -> None:
        name = manifest_of(step())["metadata"]["name"]
        assert name == "{{=toJson(`train-` + sprig.trunc(12, sprig.sha256sum(workflow.uid + `/` + node.name)))}}"

    def test_job_and_pods_are_labelled_for_clean_up_and_argo_logs(self) -> None:
        manifest = manifest_of(step())
        assert manifest["metadata"]["labels"]["mxjob.kubeflow.org/workflow-uid"] == "{{=toJson(workflow.uid)}}"
        for spec in manifest["spec"]["mxReplicaSpecs"].values():
            assert spec["template"]["metadata"]["labels"] == {
                "workflows.argoproj.io/workflow": "{{=toJson(workflow.name)}}"
            }

    def test_a_job_goes_with_its_workflow_only_where_that_is_asked_for(self) -> None:
        asked = "mxjob.kubeflow.org/delete-with-workflow: 'true'"
        ours = {"metadata": {"annotations": {"ours": "1"}}, "spec": MXJobSpec(image="a", command=COMMAND).to_dict()}
        given = step(spec=None, manifest=ours, delete_with_workflow=True)
        assert "annotations" not in str(step().manifest)
        assert asked in str(step(delete_with_workflow=True).manifest)
        assert asked in str(given.manifest)
        assert "ours: '1'" in str(given.manifest)
        assert ours["metadata"] == {"annotations": {"ours": "1"}}

    def test_it_is_applied_owned_waited_for_and_retried_by_argos_own_means(self) -> None:
        template = step()._build_template().model_dump(by_alias=True, exclude_none=True)
        resource = template["resource"]
        assert resource["action"] == "apply"
        assert "setOwnerReference" not in resource
        assert "maxDuration" not in template["retryStrategy"]["backoff"]
        assert resource["successCondition"] == "status.state == Succeeded"
        assert resource["failureCondition"] == "status.state == Failed"
        assert "failure condition" in template["retryStrategy"]["expression"]
        assert [each["name"] for each in template["outputs"]["parameters"]] == ["job", "state", "message", "result"]

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

    def test_what_lies_on_the_job_does_not_lie_on_its_poller(self) -> None:
        """A queue's label on the poller's pod would have the queue hold the poller back as well."""
        labelled = {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "gpu"}}, **MANIFEST}
        made = MXJobStep(name="queued", manifest=labelled)
        assert "queue-name: gpu" in str(made.manifest)
        assert made._build_template().metadata is None

    def test_inputs_are_filled_in_as_json_never_as_text(self) -> None:
        inputs = [
            Parameter(name="args", default="[]"),
            Parameter(name="workers", default="2"),
            Parameter(name="learning-rate"),
        ]
        spec = MXJobSpec(
            image="a", command=COMMAND, args=data("args"), workers=integer("workers"), env={"LR": text("learning-rate")}
        )
        worker = manifest_of(step(inputs=inputs, spec=spec))["spec"]["mxReplicaSpecs"]["Worker"]
        (container,) = worker["template"]["spec"]["containers"]
        assert worker["replicas"] == "{{=asInt(inputs.parameters.workers)}}"
        assert container["args"] == as_json("sprig.fromJson(inputs.parameters.args)")
        assert container["env"] == [{"name": "LR", "value": as_json("inputs.parameters[`learning-rate`]")}]

    def test_text_is_joined_within_the_expression(self) -> None:
        inputs = [Parameter(name="lr")]
        spec = MXJobSpec(image="a", command=COMMAND, args=["--lr=" + text("lr") + ' "quoted"'])
        made = step(inputs=inputs, spec=spec).manifest
        assert r'toJson("--lr=" + inputs.parameters.lr + " \"quoted\"")))}}' in str(made)

    def test_what_the_kubelet_would_take_for_a_variable_of_argos_pod_stands_there_as_an_escape(self) -> None:
        spec = MXJobSpec(image="a", command=["sh", "-c", "echo $$ $(ARGO_POD_NAME) é"])
        made = str(step(spec=spec).manifest)
        assert r'"echo \u0024\u0024 \u0024(ARGO_POD_NAME) é"' in made
        assert "$" not in made

    def test_a_whole_manifest_of_any_shape_may_be_given(self) -> None:
        manifest = {"metadata": {"labels": {"team": "a"}}, **MANIFEST}
        made = manifest_of(MXJobStep(name="lone", manifest=manifest))
        assert made["metadata"]["labels"]["team"] == "a"
        assert list(made["spec"]["mxReplicaSpecs"]) == ["Worker"]
        assert MANIFEST["spec"].keys() == {"jobMode", "mxReplicaSpecs"}

    def test_without_servers_there_is_no_scheduler(self) -> None:
        assert list(
            manifest_of(step(spec=MXJobSpec(image="a", command=COMMAND, servers=0)))["spec"]["mxReplicaSpecs"]
        ) == ["Worker"]


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
            ({"spec": None}, "give either spec or manifest"),
            ({"manifest": MANIFEST}, "give either spec or manifest"),
        ],
        ids=lambda value: str(value)[:40],
    )
    def test_what_would_break_the_step_is_refused_when_it_is_built(self, fields: dict[str, Any], words: str) -> None:
        with pytest.raises(ValueError, match=words):
            step(**fields)

    @pytest.mark.parametrize("field", ["name", "generateName", "namespace"])
    def test_a_manifest_names_neither_job_nor_namespace(self, field: str) -> None:
        with pytest.raises(ValueError, match=rf"metadata\.{field}: leave it out"):
            MXJobStep(name="train", manifest={"metadata": {field: "x"}, **MANIFEST})

    def test_a_manifest_with_what_json_cannot_say_is_refused_by_its_path(self) -> None:
        with pytest.raises(ValueError, match=r"^train: metadata\.annotations\.day: .* is a date, .*kubectl does$"):
            MXJobStep(name="train", manifest={"metadata": {"annotations": {"day": date(2020, 1, 1)}}, **MANIFEST})

    def test_what_the_api_server_would_refuse_is_refused_here_in_its_words(self) -> None:
        with pytest.raises(ValueError, match=r"spec\.runPolicy\.cleanPodPolicy"):
            with_policy(cleanPodPolicy="Sometimes")
        with pytest.raises(ValueError, match=r"spec\.runPolicy\.backofLimit.*backoffLimit"):
            with_policy(backofLimit=3)

    def test_a_manifest_leaves_suspension_to_others(self) -> None:
        with pytest.raises(ValueError, match=r"runPolicy\.suspend: leave it out"):
            with_policy(suspend=True)

    def test_a_job_that_could_be_gone_before_the_step_looks_is_refused(self) -> None:
        with pytest.raises(ValueError, match="300 at least"):
            with_policy(ttlSecondsAfterFinished=10)

    def test_tags_of_argo_in_text_are_refused_with_what_to_use(self) -> None:
        with pytest.raises(ValueError, match=r"args\[0\].*use mxnet_argo\.text\(\)"):
            step(spec=MXJobSpec(image="a", command=COMMAND, args=["{{inputs.parameters.lr}}"]))

    def test_an_input_that_is_used_must_be_declared_and_its_default_fit(self) -> None:
        spec = MXJobSpec(image="a", command=COMMAND, workers=integer("workers"))
        with pytest.raises(ValueError, match="the manifest uses workers: declare it in inputs"):
            step(spec=spec)
        with pytest.raises(ValueError, match="the default of an input is not what its place takes"):
            step(spec=spec, inputs=[Parameter(name="workers", default="many")])

    def test_only_text_can_be_joined(self) -> None:
        with pytest.raises(TypeError, match="use text"):
            "--workers=" + integer("workers")

    @pytest.mark.parametrize("name", ["", "a b", "x}}", "a'b"])
    def test_what_is_no_parameter_name_is_refused(self, name: str) -> None:
        with pytest.raises(ValueError, match="is not the name of a parameter"):
            text(name)


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


class TestWorkflows:
    def test_jobs_are_deleted_on_exit_unless_the_run_succeeded(self) -> None:
        with Workflow(name="w", entrypoint="train") as workflow:
            step()
        delete_jobs_on_exit(workflow)
        spec = workflow.to_dict()["spec"]
        assert spec["onExit"] == "mxjob-cleanup"
        handler, delete = spec["templates"][1:]
        assert handler["steps"][0][0]["when"] == "{{workflow.status}} != Succeeded"
        assert "mxjob.kubeflow.org/workflow-uid={{workflow.uid}}" in delete["resource"]["flags"]

    def test_whoever_submits_a_workflow_may_choose_whether_they_are(self) -> None:
        with Workflow(name="w", entrypoint="train", arguments=Parameter(name="lr", value="1")) as workflow:
            step()
        delete_jobs_on_exit(workflow, choice="on-failure")
        spec = workflow.to_dict()["spec"]
        when = "{{workflow.status}} != Succeeded && {{workflow.parameters.on-failure}} != keep"
        assert spec["templates"][1]["steps"][0][0]["when"] == when
        lr, choice = spec["arguments"]["parameters"]
        assert (lr["name"], choice["name"], choice["value"]) == ("lr", "on-failure", "delete")

    def test_two_templates_of_one_name_are_refused(self) -> None:
        with Workflow(name="w", entrypoint="train") as workflow:
            step()
            step(deadline=60)
        with pytest.raises(ValueError, match="two templates are named 'train'"):
            delete_jobs_on_exit(workflow)

    def test_an_exit_handler_of_the_users_is_not_replaced(self) -> None:
        workflow = WorkflowTemplate(name="w", entrypoint="train", on_exit="mine")
        with pytest.raises(ValueError, match="has an exit handler already"):
            delete_jobs_on_exit(workflow)

    def test_a_sweep_passes_each_trial_its_values_and_all_of_them_the_rest(self) -> None:
        inputs = [Parameter(name="lr"), Parameter(name="image", default="a")]
        trial = step(inputs=inputs, spec=MXJobSpec(image=text("image"), command=COMMAND, env={"LR": text("lr")}))
        dag = sweep("search", trial, by="accuracy", trial_inputs=["lr"], parallelism=2)
        (task,) = dag.tasks
        assert isinstance(task, Task)
        assert task.arguments == {"lr": "{{item.lr}}", "image": "{{inputs.parameters.image}}"}
        assert (dag.parallelism, dag.fail_fast) == (2, False)
        with pytest.raises(ValueError, match="train has no input momentum"):
            sweep("search", trial, by="accuracy", trial_inputs=["momentum"])

    def test_a_reference_to_a_shipped_template_has_its_arguments_checked(self) -> None:
        arguments = {"image": "a", "command": ["python"], "workers": 3}
        task = mxjob_ref("train", "mxjob-train", arguments)
        assert task.arguments == {"image": "a", "command": '["python"]', "workers": "3"}
        with pytest.raises(ValueError, match="takes no 'imag': did you mean 'image'"):
            mxjob_ref("train", "mxjob-train", {"imag": "a", "command": []})
        with pytest.raises(ValueError, match="needs 'command'"):
            mxjob_ref("train", "mxjob-train", {"image": "a"})
        with pytest.raises(ValueError, match="no template 'mxjob-trian': did you mean 'mxjob-train'"):
            mxjob_ref("train", "mxjob-trian", arguments)


def test_a_number_is_written_as_one() -> None:
    assert number("rate").tag == "{{=asFloat(inputs.parameters.rate)}}"
