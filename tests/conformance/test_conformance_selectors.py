"""Jobs can be selected by their state: the fixture `api` may be ours or a real one."""

from apiserver_objects import JOBS, mxjob


async def test_jobs_are_selected_by_their_state(api, namespace):
    jobs = JOBS.format(namespace)
    for name, state in (("new", None), ("done", "Succeeded"), ("broken", "Failed")):
        (await api.post(jobs, mxjob(name))).ok()
        if state:
            (await api.merge(f"{jobs}/{name}/status", {"status": {"state": state}})).ok()

    async def selected(selector):
        found = (await api.get(jobs, fieldSelector=selector)).ok()["items"]
        return {job["metadata"]["name"] for job in found}

    assert await selected("status.state=Failed") == {"broken"}
    assert await selected("status.state!=Succeeded") == {"new", "broken"}
    assert await selected("status.state!=Succeeded,status.state!=Failed") == {"new"}
