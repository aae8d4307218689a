"""A kind of child is a row of a table: one that no job needs is created while the server serves it, and else not."""

import re
import runpy
from pathlib import Path

import msgspec
from controller_fixtures import JOBS, gang, world

from mxnet_operator.controller.children import KINDS

CONTRIBUTING = Path(__file__).resolve().parents[3] / "CONTRIBUTING.md"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


async def started(w, *kinds):
    await w.start(child_kinds=(*KINDS, *kinds), discovery_interval=0.02)


async def test_the_kind_that_contributing_adds_is_created_and_goes_when_its_job_is_suspended(tmp_path):
    (text,) = re.findall(
        r'^```python\n("""Row of the ConfigMaps.*?)^```$', CONTRIBUTING.read_text(), re.MULTILINE | re.DOTALL
    )
    (tmp_path / "hosts.py").write_text(text)
    hosts = runpy.run_path(str(tmp_path / "hosts.py"))["HOSTS"]
    async with world(tmp_path, start=False) as w:
        await started(w, hosts)
        await w.submit(gang())
        created = await w.eventually(CONFIGMAPS, lambda found: "digits-hosts" in found)
        assert sorted(created["digits-hosts"]["data"]["hosts"].split()) == sorted(await w.pods(5))
        (await w.api.merge(f"{JOBS}/digits", {"spec": {"runPolicy": {"suspend": True}}})).ok()
        await w.eventually(CONFIGMAPS, lambda found: "digits-hosts" not in found)


def test_a_job_reads_the_table_no_code_knows_another_kind_than_pods_by_name():
    """Every row tells apart its actions: two kinds that shared one would be sent to one resource."""
    actions = [action for kind in KINDS for action in (kind.create, *kind.end)]
    assert len(actions) == len(set(actions))
    assert [kind.resource.plural for kind in KINDS if kind.rule is None] == ["pods"]
    assert all(issubclass(action, msgspec.Struct) for action in actions)
