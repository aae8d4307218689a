"""`mxjob convert`, run as a user runs it."""

import json
import re

import pytest
import seed_manifests as seeds
import yaml

from mxnet_operator.api import job_formats


def test_a_list_format_becomes_v1_with_a_comment_above_each_field_that_was_not_written(mxjob):
    code, out, err = mxjob("convert", "-f", "-", stdin=seeds.SEED_004_DIST)
    assert (code, err) == (0, "")
    assert out.startswith(
        """\
# The job of document 004; the indentation, which it lost on its way, is restored.
# was kubeflow.org/v1alpha1
apiVersion: kubeflow.org/v1
kind: MXJob
metadata:
  name: example-dist-job
spec:
  # was dist: in v1 the replicas say so
  jobMode: MXTrain
  runPolicy:
    # was the format's default, All
    cleanPodPolicy: All
  # was the list spec.replicaSpecs
  mxReplicaSpecs:
    Scheduler:
      replicas: 1
      # was template.spec.restartPolicy: OnFailure; the exit code decides which exits are retried
      restartPolicy: ExitCode
      template:
        spec:
          containers:
          - image: jzp1025/mxnet:test
            name: mxnet
            command:
            - python
            args:
            - train_mnist.py
            workingDir: /incubator-mxnet/example/image-classification
            ports:
            # was PsRootPort
            - name: mxjob-port
              containerPort: 9000
"""
    )
    assert yaml.safe_load(out) == job_formats.to_v1(seeds.manifest(seeds.SEED_004_DIST))


@pytest.mark.parametrize("text", seeds.ALL.values(), ids=seeds.ALL)
def test_converting_twice_changes_nothing(mxjob, text):
    code, once, _ = mxjob("convert", "-", stdin=text)
    assert code == 0
    assert mxjob("convert", "-", stdin=once) == (0, once, "")
    assert mxjob("validate", "-", stdin=once)[0] == 0


@pytest.mark.parametrize("text", seeds.ALL.values(), ids=seeds.ALL)
def test_comments_of_a_manifest_stay_with_their_fields(mxjob, text):
    lines = [line for line in text.rstrip().splitlines() if line.strip() and not line.lstrip().startswith("#")]
    commented = [
        each
        for number, line in enumerate(lines)
        for each in (
            f"# above <{number}>",
            f"{line}  # at <{number}>" if not line.endswith("|") else f"{line} # at <{number}>",
        )
    ]
    plain = mxjob("convert", "-", stdin="\n".join(lines))[1]
    code, out, _ = mxjob("convert", "-", stdin="\n".join([*commented, "# foot\n"]))
    assert code == 0
    assert yaml.safe_load(out) == yaml.safe_load(plain)
    assert out.endswith("# foot\n")
    assert sorted(re.findall(r"<\d+>", out)) == sorted(f"<{number}>" for number in range(len(lines)) for _ in "ab")
    for line in out.splitlines():
        if at := re.search(r"^\s*(?:- )?(\w+):.*  # at <(\d+)>$", line):
            key, number = at.groups()
            assert NAMES.get(was := re.split(r"[:\s]", lines[int(number)].strip(" -"))[0], was).strip('"') == key


NAMES = {"replicaSpecs": "mxReplicaSpecs", "cleanupPodPolicy": "cleanPodPolicy"} | {
    name.lower(): name for name in ("Scheduler", "Server", "Worker")
}


def test_comments_stay_beside_flow_lists_texts_and_fields_that_v1_lacks(mxjob):
    code, out, _ = mxjob("convert", "-", stdin=COMMENTED)
    assert code == 0
    (_, server, worker) = re.split(r"(?m)^    (?=(?:# \S+: servers|# third))", out)
    assert out.startswith(
        "# Copyright\n# the nightly job\n# was kubeflow.org/v1alpha1\napiVersion: kubeflow.org/v1  # old\n"
    )
    for text in (
        "# uid: the server's\n# left out",
        "  jobMode: MXTrain  # distributed\n",
        "    cleanPodPolicy: None  # keep pods\n",
        "  # the gang\n  # was the list",
        "    # one scheduler\n    # PsRootPort: our port\n    Scheduler:\n      replicas: 1  # just one\n",
        "      restartPolicy: ExitCode  # why\n",
        "            - a\n            # second\n            - b  # tail\n",
    ):
        assert text in out
    assert "# mxReplicaType: servers\n    Server:" in out
    assert "- |  # header\n              echo # no comment\n              x\n            # after the text\n" in server
    assert "- name: A  # variables\n              value: '# no comment'\n" in server
    assert worker.startswith("# third\n    # named no type: the format's default\n    Worker:")


def test_comments_stay_with_long_texts_items_of_a_list_and_aliases(mxjob):
    words = " ".join(["word"] * 60)
    job = """\
- apiVersion: kubeflow.org/v1alpha1
  kind: MXJob
  metadata: {name: NAME}  # NAME
  spec:
    replicaSpecs:
    - replicas: 1
      mxReplicaType: SCHEDULER
      template: &template
        spec:
          containers:
          - name: mxnet
            image: a
            args:
            - WORDS  # args of NAME
    - mxReplicaType: SERVER
      template: *template
    - template: *template
"""
    items = "".join(f"# begins {name}\n" + job.replace("NAME", name) for name in ("one", "two"))
    code, out, _ = mxjob("convert", "-", stdin=f"kind: List\nitems:\n{items}# foot\n".replace("WORDS", words))
    assert code == 0
    assert [each["metadata"]["name"] for each in yaml.safe_load_all(out)] == ["one", "two"]
    assert all(words in json.dumps(each) for each in yaml.safe_load_all(out))
    for name, text in zip(("one", "two"), out.split("\n---\n"), strict=True):
        assert text.startswith(f"# begins {name}\n")
        assert f"            # args of {name}\n            - word" in text
        assert (text.count("# args"), text.count(f"  # {name}\n")) == (1, 1)
    assert out.endswith("# foot\n")


COMMENTED = """\
# Copyright

# the nightly job
apiVersion: kubeflow.org/v1alpha1  # old
kind: MXJob
metadata:
  name: example
  uid: abc # the server's
spec:
  jobMode: dist   # distributed
  cleanupPodPolicy: None  # keep pods
  # the gang
  replicaSpecs:
    # one scheduler
    - replicas: 1  # just one
      mxReplicaType: SCHEDULER
      PsRootPort: 9000 # our port
      template:
        spec:
          containers:
            - {image: a, name: mxnet, command: [
                 a,
                 # second
                 b  # tail
              ]}
          restartPolicy: OnFailure # why
    - replicas: 2
      mxReplicaType: SERVER # servers
      template:
        spec:
          containers:
            - image: a
              name: mxnet
              command:
              - |  # header
                echo # no comment
                x
              # after the text
              env:
              - {name: A, value: "# no comment"}  # variables
    - # third
      template: {spec: {containers: [{image: "a#b", name: mxnet}]}}
"""


def test_other_documents_keep_every_letter_and_their_place(mxjob):
    other = "# my map\nkind: ConfigMap  # mine\ndata:   {a: 'b'}"
    v1 = mxjob("convert", "-", stdin=seeds.SEED_000_MXNETJOB)[1].rstrip("\n") + "  # a comment of mine"
    code, out, _ = mxjob("convert", "-", stdin=f"{other}\n---\n{seeds.SEED_003_LINEAR}---\n{v1}\n")
    assert code == 0
    first, converted, last = out.split("\n---\n")
    assert first == other
    assert yaml.safe_load(converted)["apiVersion"] == "kubeflow.org/v1"
    assert last == v1 + "\n"


def test_the_items_of_a_list_are_converted_one_by_one(mxjob):
    jobs = [seeds.manifest(seeds.SEED_001_STORED), seeds.manifest(seeds.SEED_004_STORED), {"kind": "ConfigMap"}]
    _, out, _ = mxjob("convert", "-", stdin=yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": jobs}))
    names = [(each["kind"], each.get("metadata", {}).get("name")) for each in yaml.safe_load_all(out)]
    assert names == [("MXJob", "mxnet-job"), ("MXJob", "example-dist-job"), ("ConfigMap", None)]


def test_a_mistake_is_told_with_line_and_right_spelling_and_nothing_is_printed(mxjob):
    wrong = seeds.SEED_003_LINEAR.replace("mxReplicaType: WORKER", "mxReplicaType: WORKER\n      PsRootPort: 9000")
    code, out, err = mxjob("convert", "-f", "-", stdin=f"{seeds.SEED_000_MXNETJOB}---\n{wrong}")
    assert (code, out) == (2, "")
    line = 1 + f"{seeds.SEED_000_MXNETJOB}---\n{wrong}".splitlines().index("      PsRootPort: 9000")
    expected = "spec.replicaSpecs[2].PsRootPort: Invalid value: 9000: is called mxPort in fioravanzo.org"
    assert err == f"stdin:{line}: {expected}\n"


def test_an_unknown_field_is_a_mistake_too(mxjob):
    code, out, err = mxjob("convert", "-", stdin=seeds.V1BETA1_TUNE.replace("label:", "lable:"))
    assert (code, out) == (2, "")
    assert err.endswith('unknown field "spec.mxReplicaSpecs.TunerServer.lable", did you mean label?\n')


def test_a_manifest_has_to_be_named(mxjob):
    code, _, err = mxjob("convert")
    assert code == 2
    assert "mxjob convert -f old.yaml" in err
