"""What a Dockerfile in an image's folder says about how it is run."""

import pytest

from mxnet_operator.local.images.folder import Start, read_start


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ('FROM a\nWORKDIR /app\nCOPY . .\nCMD ["python", "t.py"]\n', Start("/app", (), ("python", "t.py"))),
        ('ENTRYPOINT ["python"]\nCMD ["t.py"]', Start("", ("python",), ("t.py",))),
        ('CMD ["x"]\nENTRYPOINT ["python"]', Start("", ("python",), ("x",))),
        ('FROM a AS b\nCMD ["x"]\nFROM b\nENTRYPOINT ["python"]', Start("", ("python",), ())),
        ('FROM a AS b\nCMD ["x"]\nFROM b\nCMD ["y"]\nENTRYPOINT ["python"]', Start("", ("python",), ("y",))),
        ("CMD python t.py --n 2", Start("", (), ("/bin/sh", "-c", "python t.py --n 2"))),
        ('CMD ["python", \\\n# why\n  "t.py"]', Start("", (), ("python", "t.py"))),
        ('FROM a AS b\nWORKDIR /b\nCMD ["b"]\nFROM c\nworkdir /c/\nRUN true', Start("/c", (), ())),
        (
            'FROM a as Base\nWORKDIR /b\nENTRYPOINT ["e"]\nFROM c\nFROM --platform=linux base AS d',
            Start("/b", ("e",), ()),
        ),
        ("FROM a AS a\nWORKDIR /a\nFROM a AS a\nWORKDIR b\nFROM a", Start("/a/b")),
        ("WORKDIR /a\nWORKDIR b/../c", Start("/a/c", (), ())),
        ("RUN echo CMD x", Start()),
    ],
)
def test_workdir_entrypoint_and_cmd_of_the_last_stage_count(tmp_path, text, start):
    (tmp_path / "Dockerfile").write_text(text)
    assert read_start(tmp_path) == start


def test_a_folder_without_a_dockerfile_says_nothing(tmp_path):
    assert read_start(tmp_path) == Start()
