"""The commands that the provider adds to `airflow`; read by each of Airflow's processes, so it imports little."""

from typing import Any, cast

from airflow.cli.cli_config import (
    ARG_OUTPUT,
    ARG_VERBOSE,
    ActionCommand,
    Arg,
    GroupCommand,
    lazy_load_command,
    positive_int,
)

_arg: Any = Arg  # Airflow's own is untyped
_ARGS = (
    _arg(("--namespace",), help="Namespace of the jobs. Default: all namespaces"),
    _arg(("--conn-id",), default="kubernetes_default", help="Airflow connection of type kubernetes"),
    _arg(("--config-file",), help="Path of a kubeconfig, in place of the connection's"),
    _arg(("--cluster-context",), help="A context of the kubeconfig"),
    _arg(
        ("--min-age-minutes",),
        default=10,
        type=cast("Any", positive_int)(allow_zero=True),
        help="Keep jobs younger than this many minutes, whose task may be about to end them itself. Default: 10",
    ),
    _arg(
        ("--include-unknown",),
        action="store_true",
        help="Also delete jobs whose task this Airflow does not know: its run was deleted, or it is another Airflow's",
    ),
    _arg(("--delete",), action="store_true", help="Delete the jobs; without it they are only shown"),
    ARG_OUTPUT,
    ARG_VERBOSE,
)


def get_mxnet_cli_commands() -> list[GroupCommand]:
    cleanup = ActionCommand(
        name="cleanup-jobs",
        help="Show, and with --delete delete, unfinished MXJobs for which no task waits any more",
        description=(
            "Show unfinished MXJobs that tasks of this Airflow created and no longer wait for, or delete them. "
            "Exit code: 0 none is left, 1 some could not be deleted, 3 some were found and not deleted."
        ),
        func=lazy_load_command("mxnet_provider.cli.cleanup_jobs.cleanup_jobs"),
        args=_ARGS,
    )
    return [GroupCommand(name="mxnet", help="Manage MXJobs of tasks", subcommands=(cleanup,))]
