"""The indexer: by key, by index, and how far it has come."""

from mxnet_operator.kube.cache import Indexer


def by_first_letter(word):
    return word[:1]


def test_a_removed_object_is_gone_everywhere():
    cache = Indexer({"letter": by_first_letter})
    cache.store("n/1", "10", "apple")
    assert cache.remove("n/1") == "apple"
    assert cache.remove("n/1") is None
    assert cache.get("n/1") is None
    assert cache.by_index("letter", "a") == ()


def test_an_object_without_an_index_value_is_in_no_index():
    cache = Indexer({"letter": by_first_letter})
    cache.store("n/1", "10", "")
    assert cache.by_index("letter", "") == ()


def test_the_version_only_grows_by_events_and_is_what_a_list_says():
    cache = Indexer()
    cache.advance("12")
    cache.advance("9")
    cache.advance("opaque")
    assert cache.resource_version == 12
    cache.begin_at("5")
    assert cache.resource_version == 5
