"""MXNet, Python and day that `--as-of`, `--python`, `--mxnet` and requirements mean."""

import itertools
from datetime import UTC, date, datetime, timedelta

import pytest

from mxnet_operator.local.images.day import RELEASES, DayImage, MXNetRequirement, Wanted, choose, day_options, parse_day
from mxnet_operator.local.images.uv_process import ImageError

ALL = ("2.7", "3.6", "3.7", "3.8", "3.9", "3.10", "3.11")
NAMED = (
    # as of, --python, --mxnet, requirement, Pythons of this machine: image
    ("2019-12-01", None, None, None, ALL, "1.5.1-py3.7-2019-12-01"),
    ("2019-12", None, None, "mxnet", ALL, "1.5.1-py3.7-2019-12-31"),
    ("2018", None, None, None, ALL, "1.3.1-py3.6-2018-12-31"),
    ("2018", "2.7", None, None, ALL, "1.3.1-py2.7-2018-12-31"),
    ("2019-12-01", None, "1.4.1", None, ALL, "1.4.1-py3.7-2019-12-01"),
    ("2019-12-01", None, None, None, ("3.6",), "1.5.1-py3.6-2019-12-01"),
    ("2020-01", None, None, None, (), "1.5.1-py3.8-2020-01-31"),
    ("2018-12", None, None, None, ("3.7",), "1.3.1-py3.7-2018-12-31"),
    ("2022", None, None, None, (), "1.9.1-py3.8-2022-12-31"),
    (None, None, "1.5.1", None, ALL, "1.5.1-py3.7-2020-02-20"),
    (None, None, "1.5", None, ALL, "1.5.1-py3.7-2020-02-20"),
    (None, "3.11", "1.5.1", None, ALL, "1.5.1-py3.11-2022-12-31"),
    (None, "2.7", None, None, ALL, "1.5.1-py2.7-2020-02-20"),
    (None, "3.6", None, "mxnet<1.3", ALL, "1.2.1-py3.6-2018-09-11"),
    (None, None, None, "mxnet-cu90mkl==1.5.0.post1", ALL, "1.5.0-py3.7-2019-09-29"),
    (None, None, None, "mxnet_mkl ~= 1.5.0 ; python_version > '3'", ALL, "1.5.1-py3.7-2020-02-20"),
    (None, None, None, "mxnet==1.6.0b20190926", ALL, "1.6.0-py3.8-2020-08-27"),
    (None, None, None, "mxnet==1.7.0.post1", ALL, "1.7.0-py3.8-2021-03-20"),
    (None, None, None, "mxnet>=1.3.1.post0,<1.5", ALL, "1.4.1-py3.7-2019-07-18"),
)


def chosen(as_of=None, python=None, mxnet=None, requirement=None, here=ALL, *, gpus=False):
    wanted = Wanted(parse_day(as_of) if as_of else None, python, mxnet, gpus)
    pin = MXNetRequirement.parse(requirement) if requirement else None
    return choose(wanted, pin, lambda python: python in here)


def test_each_way_to_ask_means_one_image_whose_name_says_it():
    for *asked, name in NAMED:
        image = chosen(*asked)
        assert image.name == f"mxjob/mxnet:{name}", asked
        assert DayImage.parse(image.name) == image, asked


def test_workers_with_gpus_get_the_newest_cuda_of_the_release_or_the_pinned_one():
    assert chosen("2019-12-01", gpus=True).name == "mxjob/mxnet:1.5.1-cu101-py3.7-2019-12-01"
    pinned = chosen(requirement="mxnet-cu90==1.5.0", gpus=True)
    assert pinned.requirements[0] == "mxnet-cu90==1.5.0.*"
    assert "setuptools" in pinned.requirements  # as every Python of then had it
    assert "nvidia-cudnn-cu11<9" in chosen("2022", gpus=True).requirements
    hidden = day_options(date(2019, 12, 1), ["mxnet-cu90", "numpy"])
    assert hidden[:2] == ["--exclude-newer", "2019-12-02T00:00:00Z"]
    pairs = [*zip(hidden[2::2], (each.partition("=")[0] for each in hidden[3::2]), strict=True)]
    assert pairs == [("--exclude-newer-package", name) for name in ("setuptools", "wheel", "mxnet-cu90")]
    assert [*day_options(date(2020, 2, 28), []), *day_options(date(2020, 2, 29), [])][3::2] == [
        "setuptools=2020-02-29",
        "wheel=2020-02-29",
        "2020-03-01T00:00:00Z",
        "setuptools=2021-07-01",
        "wheel=2021-07-01",
    ]
    assert "setuptools" not in " ".join(day_options(date(2021, 7, 2), []))


def test_packages_beside_a_pinned_mxnet_may_be_as_new_as_the_code():
    """requirements.txt of 2020 pins MXNet 1.4.1 and a SciPy that came after it."""
    pin = MXNetRequirement.parse("mxnet==1.4.1")
    for written, day in ((date(2020, 2, 3), "2020-02-03"), (date(2019, 6, 1), "2019-07-18"), (None, "2019-07-18")):
        image = choose(Wanted(written=written), pin, lambda python: python in ALL)
        assert image.name == f"mxjob/mxnet:1.4.1-py3.7-{day}", written
    asked = choose(Wanted(date(2019, 6, 1), written=date(2020, 2, 3)), pin, lambda python: True)
    assert asked.day == date(2019, 6, 1)


def test_what_can_not_be_is_refused_with_what_can():
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).date()
    refused = (
        ({"as_of": "2016"}, "MXNet 0.9.5 came to the index on 2017-05-02, after 2016-12-31: --as-of 2017-05-02"),
        ({"as_of": "2019", "requirement": "mxnet==1.9.1"}, "--as-of 2022-05-17, or --mxnet 1.9.1 without"),
        ({"as_of": str(tomorrow)}, "in the future"),
        ({"as_of": "2019-02-30"}, "is no day"),
        ({"as_of": "last year"}, "is no day"),
        ({"mxnet": "2.0"}, "The index has 0.9.5, "),
        ({"mxnet": "new"}, "give one like 1.5.1"),
        ({"requirement": "mxnet==1.5.1,>1.6"}, "no MXNet for mxnet==1.5.1,>1.6"),
        ({"requirement": "mxnet==new"}, "write mxnet==1.5.1"),
        ({"python": "3.12"}, "MXNet runs on Python 2.7, 3.6, "),
        ({"python": "3.8", "mxnet": "1.3.1"}, "but on 3.6, 3.7 or 2.7: --python 3.6"),
        ({"as_of": "2019", "python": "3.11"}, "--as-of 2022-12-31 or later"),
        ({"as_of": "2019-11", "here": ()}, "needs Python 3.7 or 3.6, which isn't on this machine"),
        ({"as_of": "2018", "here": ("2.7",)}, "needs Python 3.6 or 3.7, which isn't on this machine"),
    )
    for asked, says in refused:
        with pytest.raises(ImageError) as error:
            chosen(**asked)
        assert says in str(error.value), asked


def test_this_year_and_this_month_end_today():
    today = datetime.now(UTC).date()
    assert parse_day(str(today.year)) == parse_day(f"{today:%Y-%m}") == parse_day(str(today)) == today


def test_other_names_are_no_images_of_a_day():
    for name in ("1.9.1", "1.9.1-cu112", "1.5.1-py3.12", "1.5.9-py3.7", "1.5.1-py3.7-2019-13-01", "latest"):
        assert DayImage.parse(f"mxjob/mxnet:{name}") is None, name
    assert DayImage.parse("mine/mxnet:1.5.1-py3.7") is None
    assert DayImage.parse("mxjob/mxnet:1.5.1-py3.7") == DayImage("1.5.1", "3.7", date(2020, 2, 20))
    assert MXNetRequirement.parse("mxnet-model-server") is None


def test_releases_are_in_the_order_of_their_days_and_versions():
    for earlier, later in itertools.pairwise(RELEASES):
        assert earlier.released < later.released
        assert [*map(int, earlier.version.split("."))] < [*map(int, later.version.split("."))]
