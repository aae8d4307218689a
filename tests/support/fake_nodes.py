"""Fake nodes, on which KWOK runs pods, and the annotation that says how these pods end."""

EXIT_CODE = "test.mxjob/exit-code"
NODES = "/api/v1/nodes"


def fake_node(name, **resources):
    """The manifest of a node of 8 CPUs with further resources."""
    allocatable = {"cpu": "8", "memory": "32Gi", "pods": "110", **resources}
    return {
        "metadata": {"name": name, "labels": {"type": "kwok"}},
        "status": {"allocatable": allocatable, "capacity": allocatable},
    }


def ending(builder, **exit_codes):
    """The job whose pods end, a moment after they started, with these codes by type; the others run on."""
    for replica_type, code in exit_codes.items():
        builder.template_metadata(replica_type, annotations={EXIT_CODE: str(code)})
    return builder
