"""fioravanzo.org/v1alpha1, StefanoFioravanzo/mx-operator's: `mxPort`, SCHEDULER where no type is named, own exit codes.

It had no cleanup policy; nothing is deleted, since the document promises no deletion and logs are worth keeping.
"""

from typing import Final

from mxnet_operator.api.forms.form import Form
from mxnet_operator.api.forms.list_spec import ListDefaults, list_conflicts, list_to_v1
from mxnet_operator.api.forms.phases import list_words, read_list_status
from mxnet_operator.api.kinds import FIORAVANZO as KIND
from mxnet_operator.api.older.lists import DEFAULT_TYPE

RETRYABLE: Final = tuple(range(128, 256))
"""Its documentation: "1-127 = permanent error, 128-255 = retryable error"."""
_DEFAULTS: Final = ListDefaults(
    entry_type=DEFAULT_TYPE[KIND.group],
    port_field="mxPort",
    port=9000,
    clean_pod_policy="None",
    retryable=RETRYABLE,
)
FIORAVANZO: Final = Form(
    "fioravanzo",
    KIND,
    KIND.api_version,
    list_to_v1(_DEFAULTS),
    list_conflicts(_DEFAULTS),
    list_words("mx_replica_type"),
    read_list_status,
    has_runtime_id=True,
    has_phases=True,
)
