"""Reading manifests: documents, lines, and what is no YAML."""

import pytest
from unreadable_manifests import REFUSED

from mxnet_operator.cli.errors import CommandError, Exit
from mxnet_operator.cli.manifests import read_documents

TWO = """\
# a comment
apiVersion: kubeflow.org/v1
kind: MXJob
spec:
  mxReplicaSpecs:
    Worker:
      template:
        spec:
          containers:
            - name: other
            - name: mxnet
              image: a
---
---
kind: ConfigMap
"""


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "job.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write


def test_empty_documents_are_passed_over_and_the_rest_are_counted(write):
    documents = read_documents(write(TWO))

    assert [(each.position, each.content["kind"]) for each in documents] == [(1, "MXJob"), (2, "ConfigMap")]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("", 2),
        ("spec.mxReplicaSpecs.Worker.template.spec.containers[1].image", 12),
        ("spec.mxReplicaSpecs.Worker.template.spec.containers[0]", 10),
        ("spec.mxReplicaSpecs.Worker.template.spec.containers[0].image", 10),  # missing: where it would be
        ("spec.jobMode", 4),
    ],
)
def test_a_field_is_found_at_its_line_or_at_the_nearest_field_above(write, path, line):
    assert read_documents(write(TWO))[0].line(path) == line


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [1\nb: 2\n", ":2:2: not valid YAML: expected ',' or ']'"),
        ("a: 1\nb:\n  c: 1\n  c: 2\n", ':4:3: key "c" is set twice'),
        ("a: !!python/object:os.system x\n", ":1:4: the tag !!python/object:os.system says what JSON can't"),
        ("# nothing\n---\n", ": empty; expected an MXJob manifest"),
        (b"a: \xff\x00", ": not text in UTF-8: byte 3"),
        (b"\xff\xfe\x00", ": not text in UTF-16: byte 2"),
        ("a: 1\nb: x\x07\n", ":2:5: not valid YAML: character U+0007 is not allowed"),
    ],
)
def test_what_is_no_manifest_is_refused_with_its_place(write, text, said):
    with pytest.raises(CommandError) as refused:
        read_documents(write(text))

    assert said in refused.value.message
    assert refused.value.code is Exit.USAGE


def test_a_file_that_is_not_there_is_refused_by_name():
    with pytest.raises(CommandError, match=r"/no/such\.yaml: No such file"):
        read_documents("/no/such.yaml")


@pytest.mark.parametrize(
    ("text", "is_job"),
    [("kind: MXJob", True), ("kind: MxJob", True), ("spec: {}", True), ("- 1", True), ("kind: Service", False)],
)
def test_a_document_counts_as_a_job_unless_it_says_another_kind(write, text, is_job):
    assert read_documents(write(text))[0].is_job is is_job


@pytest.fixture(params=[["validate", "-f"], ["convert", "-f"], ["run", "-f"]], ids=lambda words: words[0])
def refused(request, mxjob):
    """Runs a command on a file; what it said on stderr, once it has refused with 2 and without a traceback."""

    def run(path):
        code, out, err = mxjob(*request.param, path)
        assert (code, out) == (2, "")
        assert "Traceback" not in err
        return err

    return run


@pytest.mark.sampled
def test_every_command_refuses_what_can_be_no_manifest_in_one_line(write, refused):
    for case, (text, _) in REFUSED.items():
        said = refused(write(text)).splitlines()
        assert len(said) == 1, case
        assert said[0].startswith("error: "), case
        assert "job.yaml" in said[0], case


def test_every_command_refuses_what_is_no_file_of_text_in_one_line(tmp_path, refused):
    (tmp_path / "folder").mkdir()
    (tmp_path / "program").write_bytes(b"\x7fELF\xff")
    (tmp_path / "empty").touch()
    with (tmp_path / "large").open("wb") as large:
        large.truncate(100 * 2**20)
    said = {path.name: refused(str(path)).partition(f"{path.name}: ")[2] for path in tmp_path.iterdir()}
    assert said == {
        "empty": "empty; expected an MXJob manifest\n",
        "folder": "Is a directory\n",
        "large": "larger than 16 MiB, which is no manifest\n",
        "program": "not text in UTF-8: byte 4 can't be read\n",
    }
