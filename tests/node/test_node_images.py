"""The images that the project's Dockerfiles make."""

import pytest
from real_node.images import DIGITS, OPERATOR, Archive, archives, build, export


@pytest.fixture(scope="module")
def rebuilt(bare_node, tmp_path_factory):
    """The controller's image, built once more, from nothing."""
    path = tmp_path_factory.mktemp("rebuilt") / "operator.tar"
    build(OPERATOR, "--no-cache")
    export(OPERATOR, path)
    return Archive(OPERATOR, path)


def test_the_controllers_image_built_again_is_the_same_to_the_byte(rebuilt):
    (first,) = archives([OPERATOR])
    assert rebuilt.digest == first.digest


@pytest.mark.parametrize("image", [OPERATOR, DIGITS], ids=["operator", "digits"])
def test_images_run_as_nobody_and_say_what_they_are(image):
    (archive,) = archives([image])
    config = archive.config()["config"]
    assert config["User"] == "65532:65532"
    assert config["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert config["Labels"]["org.opencontainers.image.title"]
