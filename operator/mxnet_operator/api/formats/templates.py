"""Fields of older formats beside a template that v1 writes in it: the port, the scheduler, and no restartPolicy."""

from collections.abc import Iterator
from typing import Any

from mxnet_operator.api import names
from mxnet_operator.api.structural import FieldError

Template = dict[str, Any]


def with_port(template: Template, port: int, **more: str) -> Template:
    """Return the template whose `mxnet` container has a port named `mxjob-port`: this one, where it names none.

    Only a job that is over can be without such a container: it was stored before the CRD's rules.
    """
    if port_of(template) is not None:
        return template
    spec = template["spec"]
    main = names.main_container(spec["containers"])
    ours = {"name": names.PORT_NAME, "containerPort": port, **more}
    with_ours = {**main, "ports": [*(main.get("ports") or ()), ours]}
    containers = [with_ours if each is main else each for each in spec["containers"]]
    return {**template, "spec": {**spec, "containers": containers}}


def port_of(template: Template) -> Any:
    """Return the number of the port named `mxjob-port`, or None."""
    ports = names.main_container(template["spec"]["containers"]).get("ports") or ()
    return next((port.get("containerPort") for port in ports if port.get("name") == names.PORT_NAME), None)


def port_path(template: Template) -> tuple[str, ...]:
    """Return the path of that port in a template that has it."""
    containers = template["spec"]["containers"]
    main = names.main_container(containers)
    position = next(i for i, port in enumerate(main["ports"]) if port.get("name") == names.PORT_NAME)
    return ("spec", "containers", str(containers.index(main)), "ports", str(position))


def without(template: Template, field: str) -> Template:
    return {**template, "spec": {name: value for name, value in template["spec"].items() if name != field}}


def port_conflicts(path: str, field: str, port: int | None, template: Template) -> Iterator[FieldError]:
    """Yield the error of a port given twice with two values: beside the template at `path`, and in its container."""
    named = port_of(template)
    if port is not None and named is not None and port != named:
        why = f"Invalid value: {port}: ambiguous: the container's port {names.PORT_NAME} says {named}; give one of them"
        yield FieldError(f"{path}.{field}", "FieldValueInvalid", why)
