"""Which pods every Kubernetes API server rejects, field by field, and in which words.

One table in the order of kube-apiserver's own rules; each row goes to both servers. A row whose words end early shows
only a beginning: Go prints a whole structure after it.
"""

import pytest
from apiserver_objects import PODS, pod

CONTAINER = "spec.containers[0]"
VARIABLE = f"{CONTAINER}.env[0].valueFrom"
VOLUME = "spec.volumes[0]"
LABEL = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'"
SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'"
KEY = "a valid config key must consist of alphanumeric characters"
PORT = "must be between 1 and 65535, inclusive"
ID = "must be between 0 and 2147483647, inclusive"
MODE = "must be a number between 0 and 0777 (octal), both inclusive"
NAME_PART = "name part must consist of alphanumeric characters"
OF_VARIABLES = (
    'supported values: "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", '
    '"spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"'
)
OF_FILES = (
    'supported values: "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"'
)
RESOURCES = (
    'supported values: "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", '
    '"requests.ephemeral-storage", "requests.memory"'
)
SIDECAR = "Forbidden: may not be set for init containers without restartPolicy=Always"


def one(**fields):
    """The containers of a pod with one, which has these fields."""
    return {"containers": [{"name": "a", "image": "a", **fields}]}


def source(**source):
    """A pod with one variable from a source."""
    return one(env=[{"name": "A", "valueFrom": source}])


def volume(**source):
    """A pod with one volume of a source."""
    return {"volumes": [{"name": "v", **source}]}


def probe(**fields):
    """A pod whose container has a liveness probe."""
    return one(livenessProbe={"exec": {"command": ["true"]}, **fields})


def nodes(**expression):
    """A pod that needs nodes of which this expression holds."""
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def pods(**term):
    """A pod that needs to be near others."""
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def spread(**fields):
    """A pod with one constraint on its topology."""
    return {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", **fields}]}


NODES = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
NEAR = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
SPREAD = "spec.topologySpreadConstraints[0]"

VARIABLES = [
    (source(fieldRef={"fieldPath": ""}), [f"{VARIABLE}.fieldRef.fieldPath: Required value"]),
    (
        source(fieldRef={"fieldPath": "metadata.nome"}),
        [
            f'{VARIABLE}.fieldRef.fieldPath: Invalid value: "metadata.nome": error converting fieldPath: field label '
            "not supported: metadata.nome"
        ],
    ),
    (
        source(fieldRef={"fieldPath": "status.phase"}),
        [f'{VARIABLE}.fieldRef.fieldPath: Unsupported value: "status.phase": {OF_VARIABLES}'],
    ),
    (
        source(fieldRef={"fieldPath": "metadata.labels"}),
        [f'{VARIABLE}.fieldRef.fieldPath: Unsupported value: "metadata.labels": {OF_VARIABLES}'],
    ),
    (
        source(fieldRef={"fieldPath": "metadata.labels['a b']"}),
        [f'{VARIABLE}.fieldRef: Invalid value: "a b": {NAME_PART}'],
    ),
    (
        source(fieldRef={"fieldPath": "metadata.name['a']"}),
        [
            f"{VARIABLE}.fieldRef.fieldPath: Invalid value: \"metadata.name['a']\": error converting fieldPath: field"
            " label does not support subscript: metadata.name['a']"
        ],
    ),
    (
        source(fieldRef={"fieldPath": "metadata.name", "apiVersion": "v2"}),
        [
            f'{VARIABLE}.fieldRef.fieldPath: Invalid value: "metadata.name": error converting fieldPath: unsupported '
            "pod version: v2"
        ],
    ),
    (source(resourceFieldRef={"resource": ""}), [f"{VARIABLE}.resourceFieldRef.resource: Required value"]),
    (
        source(resourceFieldRef={"resource": "limits.gpu"}),
        [f'{VARIABLE}.resourceFieldRef.resource: Unsupported value: "limits.gpu": {RESOURCES}'],
    ),
    (
        source(resourceFieldRef={"resource": "limits.cpu", "divisor": "2"}),
        [
            f'{VARIABLE}.resourceFieldRef.divisor: Invalid value: "limits.cpu": only divisor\'s values 1m and 1 are'
            " supported with the cpu resource"
        ],
    ),
    (
        source(resourceFieldRef={"resource": "limits.memory", "divisor": "2"}),
        [
            f'{VARIABLE}.resourceFieldRef.divisor: Invalid value: "limits.memory": only divisor\'s values 1, 1k, 1M, '
            "1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the memory resource"
        ],
    ),
    (
        source(secretKeyRef={"name": "S_", "key": "k"}),
        [f'{VARIABLE}.secretKeyRef.name: Invalid value: "S_": {SUBDOMAIN}'],
    ),
    (source(secretKeyRef={"name": "s", "key": ""}), [f"{VARIABLE}.secretKeyRef.key: Required value"]),
    (
        source(configMapKeyRef={"name": "c", "key": "a b"}),
        [f'{VARIABLE}.configMapKeyRef.key: Invalid value: "a b": {KEY}'],
    ),
    (
        one(envFrom=[{}]),
        [f'{CONTAINER}.envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`'],
    ),
    (
        one(envFrom=[{"configMapRef": {"name": "c"}, "secretRef": {"name": "s"}}]),
        [f'{CONTAINER}.envFrom: Invalid value: "": may not have more than one field specified at a time'],
    ),
    (
        one(envFrom=[{"configMapRef": {"name": "C_"}}]),
        [f'{CONTAINER}.envFrom[0].configMapRef.name: Invalid value: "C_": {SUBDOMAIN}'],
    ),
    (one(envFrom=[{"secretRef": {}}]), [f"{CONTAINER}.envFrom[0].secretRef.name: Required value"]),
    (
        one(envFrom=[{"prefix": "a=b", "secretRef": {"name": "s"}}]),
        [f'{CONTAINER}.envFrom[0].prefix: Invalid value: "a=b": a valid environment variable name must consist only'],
    ),
]

VOLUMES = [
    ({"volumes": [{"emptyDir": {}}]}, [f"{VOLUME}.name: Required value"]),
    (
        {"volumes": [{"name": "a" * 64, "emptyDir": {}}]},
        [f'{VOLUME}.name: Invalid value: "{"a" * 64}": must be no more than'],
    ),
    (
        volume(emptyDir={"sizeLimit": "-1"}),
        [f"{VOLUME}.emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity"],
    ),
    (volume(hostPath={"path": ""}), [f"{VOLUME}.hostPath.path: Required value"]),
    (
        volume(hostPath={"path": "/a/../b", "type": "Link"}),
        [
            f"{VOLUME}.hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
            f'{VOLUME}.hostPath.type: Unsupported value: "Link": supported values: "", "BlockDevice", "CharDevice",'
            ' "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"',
        ],
    ),
    (volume(secret={}), [f"{VOLUME}.secret.secretName: Required value"]),
    (volume(configMap={}), [f"{VOLUME}.configMap.name: Required value"]),
    (volume(persistentVolumeClaim={"claimName": ""}), [f"{VOLUME}.persistentVolumeClaim.claimName: Required value"]),
    (
        volume(secret={"secretName": "s", "defaultMode": 512}),
        [f"{VOLUME}.secret.defaultMode: Invalid value: 512: {MODE}"],
    ),
    (
        volume(configMap={"name": "c", "items": [{"key": "", "path": "/a", "mode": -1}]}),
        [
            f"{VOLUME}.configMap.items[0].key: Required value",
            f'{VOLUME}.configMap.items[0].path: Invalid value: "/a": must be a relative path',
            f"{VOLUME}.configMap.items[0].mode: Invalid value: -1: {MODE}",
        ],
    ),
    (
        volume(configMap={"name": "c", "items": [{"key": "a", "path": "..a"}]}),
        [f"{VOLUME}.configMap.items[0].path: Invalid value: \"..a\": must not start with '..'"],
    ),
    (
        volume(nfs={"server": "", "path": "a"}),
        [
            f"{VOLUME}.nfs.server: Required value",
            f'{VOLUME}.nfs.path: Invalid value: "a": must be an absolute path',
        ],
    ),
    (
        volume(downwardAPI={"items": [{"path": "a"}]}),
        [f"{VOLUME}.downwardAPI: Required value: one of fieldRef and resourceFieldRef is required"],
    ),
    (
        volume(downwardAPI={"items": [{"path": "a", "fieldRef": {"fieldPath": "spec.nodeName"}}]}),
        [f'{VOLUME}.downwardAPI.fieldRef.fieldPath: Unsupported value: "spec.nodeName": {OF_FILES}'],
    ),
    (
        volume(downwardAPI={"items": [{"path": "../a", "resourceFieldRef": {"resource": "limits.cpu"}}]}),
        [
            f"{VOLUME}.downwardAPI.path: Invalid value: \"../a\": must not contain '..'",
            f"{VOLUME}.downwardAPI.resourceFieldRef.containerName: Required value",
        ],
    ),
    (
        volume(projected={"defaultMode": 512, "sources": [{"secret": {"name": ""}}]}),
        [
            f"{VOLUME}.projected.defaultMode: Invalid value: 512: {MODE}",
            f"{VOLUME}.projected.sources[0].secret.name: Required value",
        ],
    ),
    (
        volume(projected={"sources": [{"secret": {"name": "s"}, "configMap": {"name": "c"}}]}),
        [f"{VOLUME}.projected.sources[0]: Forbidden: may not specify more than 1 volume type per source"],
    ),
    (
        volume(
            projected={
                "sources": [{"secret": {"name": "s", "items": [{"key": "a", "path": "x"}, {"key": "b", "path": "x"}]}}]
            }
        ),
        [f'{VOLUME}.projected: Invalid value: "s": conflicting duplicate paths'],
    ),
    (
        volume(projected={"sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 60}}]})
        | {"serviceAccountName": "default"},
        [
            f"{VOLUME}.projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 60: may not specify a"
            " duration less than 10 minutes"
        ],
    ),
]

CONTAINERS = [
    (one(name="a" * 64), [f'{CONTAINER}.name: Invalid value: "{"a" * 64}": must be no more than 63']),
    (one(image=" a"), [f'{CONTAINER}.image: Invalid value: " a": must not have leading or trailing whitespace']),
    (
        one(terminationMessagePolicy="Log"),
        [
            f'{CONTAINER}.terminationMessagePolicy: Unsupported value: "Log": supported values: "File",'
            ' "FallbackToLogsOnError"'
        ],
    ),
    (
        one(imagePullPolicy="Often"),
        [f'{CONTAINER}.imagePullPolicy: Unsupported value: "Often": supported values: "Always", "IfNotPresent"'],
    ),
    (
        one(restartPolicy="Sometimes"),
        [f'{CONTAINER}.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "Never"'],
    ),
    (
        one(ports=[{"containerPort": 1, "name": "A_long_name_of_it-"}]),
        [
            f'{CONTAINER}.ports[0].name: Invalid value: "A_long_name_of_it-": {why}'
            for why in ("must be no more than 15", "must contain only alpha-numeric", "must not begin or end")
        ],
    ),
    (
        one(ports=[{"containerPort": 1, "name": "1--2"}]),
        [
            f'{CONTAINER}.ports[0].name: Invalid value: "1--2": {why}'
            for why in ("must contain at least one letter", "must not contain consecutive hyphens")
        ],
    ),
    (
        one(ports=[{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]),
        [f'{CONTAINER}.ports[1].name: Duplicate value: "a"'],
    ),
    (
        one(ports=[{"containerPort": 1, "hostPort": 70000, "protocol": "ICMP"}]),
        [
            f"{CONTAINER}.ports[0].hostPort: Invalid value: 70000: {PORT}",
            f'{CONTAINER}.ports[0].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"',
        ],
    ),
    (
        one(ports=[{"containerPort": 1, "hostPort": 8}, {"containerPort": 2, "hostPort": 8}]),
        [f'{CONTAINER}.ports[1].hostPort: Duplicate value: "TCP//8"'],
    ),
    (
        {"hostNetwork": True, **one(ports=[{"containerPort": 1, "hostPort": 8}])},
        [f"{CONTAINER}.ports[0].hostPort: Invalid value: 8: must match `containerPort` when `hostNetwork` is true"],
    ),
    (
        volume(emptyDir={}) | one(volumeMounts=[{"name": "v", "mountPath": "/v", "mountPropagation": "Bidirectional"}]),
        [
            f"{CONTAINER}.volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is available only "
            "to privileged containers"
        ],
    ),
    (
        volume(emptyDir={}) | one(volumeMounts=[{"name": "v", "mountPath": "/v", "recursiveReadOnly": "Enabled"}]),
        [f"{CONTAINER}.volumeMounts.recursiveReadOnly: Forbidden: may only be specified when readOnly is true"],
    ),
    (
        volume(secret={}) | one(volumeMounts=[{"name": "v", "mountPath": "/v"}]),
        [f"{VOLUME}.secret.secretName: Required value", f'{CONTAINER}.volumeMounts[0].name: Not found: "v"'],
    ),
    (
        one(resources={"limits": {"gpu": "1"}}),
        [
            f'{CONTAINER}.resources.{field}[gpu]: Invalid value: "gpu": {why}'
            for field in ("limits", "requests")
            for why in (
                "must be a standard resource type or fully qualified",
                "must be a standard resource for containers",
            )
        ],
    ),
    (
        one(resources={"requests": {"requests.x.io/a": "1"}, "limits": {"requests.x.io/a": "1"}}),
        [
            f'{CONTAINER}.resources.{field}[requests.x.io/a]: Invalid value: "requests.x.io/a": doesn\'t follow '
            "extended resource name standard"
            for field in ("limits", "requests")
        ],
    ),
    (
        one(resources={"limits": {"hugepages-2Mi": "2Mi"}}),
        [f"{CONTAINER}.resources: Forbidden: HugePages require cpu or memory"],
    ),
    (one(securityContext={"runAsUser": -1}), [f"{CONTAINER}.securityContext.runAsUser: Invalid value: -1: {ID}"]),
    (
        one(securityContext={"allowPrivilegeEscalation": False, "capabilities": {"add": ["CAP_SYS_ADMIN"]}}),
        [f"{CONTAINER}.securityContext: Invalid value: "],
    ),
    (probe(exec={}), [f"{CONTAINER}.livenessProbe.exec.command: Required value"]),
    (one(livenessProbe={}), [f"{CONTAINER}.livenessProbe: Required value: must specify a handler type"]),
    (
        probe(tcpSocket={"port": 1}),
        [f"{CONTAINER}.livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type"],
    ),
    (
        one(livenessProbe={"httpGet": {"port": 0, "scheme": "FTP", "httpHeaders": [{"name": "a b", "value": ""}]}}),
        [
            f"{CONTAINER}.livenessProbe.httpGet.port: Invalid value: 0: {PORT}",
            f'{CONTAINER}.livenessProbe.httpGet.scheme: Unsupported value: "FTP": supported values: "HTTP", "HTTPS"',
            f'{CONTAINER}.livenessProbe.httpGet.httpHeaders: Invalid value: "a b": a valid HTTP header must consist of',
        ],
    ),
    (
        one(livenessProbe={"tcpSocket": {"port": "A"}}),
        [
            f'{CONTAINER}.livenessProbe.tcpSocket.port: Invalid value: "A": {why}'
            for why in ("must contain only alpha-numeric", "must contain at least one letter")
        ],
    ),
    (
        probe(periodSeconds=-1, successThreshold=2),
        [
            f"{CONTAINER}.livenessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
            f"{CONTAINER}.livenessProbe.successThreshold: Invalid value: 2: must be 1",
        ],
    ),
    (
        one(readinessProbe={"exec": {"command": ["true"]}, "terminationGracePeriodSeconds": 5}),
        [
            f"{CONTAINER}.readinessProbe.terminationGracePeriodSeconds: Invalid value: 5: must not be set for"
            " readinessProbes"
        ],
    ),
    (
        one(lifecycle={"preStop": {"sleep": {"seconds": 31}}}),
        [
            f"{CONTAINER}.lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than"
            " terminationGracePeriodSeconds (30)"
        ],
    ),
    (
        one(lifecycle={"postStart": {}}),
        [f"{CONTAINER}.lifecycle.postStart: Required value: must specify a handler type"],
    ),
    (
        one() | {"initContainers": [{"name": "a", "image": "a", "livenessProbe": {"exec": {"command": ["true"]}}}]},
        [
            'spec.initContainers[0].name: Duplicate value: "a"',
            f"spec.initContainers[0].livenessProbe: {SIDECAR}",
        ],
    ),
]

WHOLE = [
    (
        {"dnsPolicy": "Mine"},
        [
            'spec.dnsPolicy: Unsupported value: "Mine": supported values: "ClusterFirstWithHostNet", "ClusterFirst",'
            ' "Default", "None"'
        ],
    ),
    (
        {"dnsPolicy": "None"},
        ["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
    ),
    (
        {"dnsConfig": {"nameservers": ["dns"], "options": [{"value": "a"}]}},
        [
            'spec.dnsConfig.nameservers[0]: Invalid value: "dns": must be a valid IP address',
            "spec.dnsConfig.options[0]: Required value: must not be empty",
        ],
    ),
    ({"nodeSelector": {"a b": "c d"}}, [f'spec.nodeSelector: Invalid value: "{each}": ' for each in ("a b", "c d")]),
    (
        {"securityContext": {"fsGroup": -1, "supplementalGroups": [-2], "fsGroupChangePolicy": "Never"}},
        [
            f"spec.securityContext.fsGroup: Invalid value: -1: {ID}",
            f"spec.securityContext.supplementalGroups[0]: Invalid value: -2: {ID}",
            'spec.securityContext.fsGroupChangePolicy: Unsupported value: "Never": supported values: "Always",'
            ' "OnRootMismatch"',
        ],
    ),
    (
        {"readinessGates": [{"conditionType": "a b"}]},
        [f'spec.readinessGates[0].conditionType: Invalid value: "a b": {NAME_PART}'],
    ),
    ({"nodeName": "N_"}, [f'spec.nodeName: Invalid value: "N_": {SUBDOMAIN}']),
    (
        {"hostAliases": [{"ip": "here", "hostnames": ["A_"]}]},
        [
            'spec.hostAliases[0].ip: Invalid value: "here": must be a valid IP address',
            f'spec.hostAliases[0].hostnames[0]: Invalid value: "A_": {SUBDOMAIN}',
        ],
    ),
]

PLACEMENT = [
    (
        {"tolerations": [{"value": "x"}]},
        ['spec.tolerations[0].operator: Invalid value: "": operator must be Exists when `key` is empty'],
    ),
    (
        {"tolerations": [{"key": "a", "operator": "Exists", "value": "x"}]},
        ["spec.tolerations[0].operator: Invalid value: \"x\": value must be empty when `operator` is 'Exists'"],
    ),
    (
        {"tolerations": [{"key": "a b", "value": "c d"}]},
        [
            f'spec.tolerations[0].key: Invalid value: "a b": {NAME_PART}',
            'spec.tolerations[0].operator: Invalid value: "c d": a valid label must be an empty string or consist of',
        ],
    ),
    (
        {"tolerations": [{"key": "a", "operator": "In"}, {"key": "a", "operator": "Lt", "value": "1"}]},
        [
            'spec.tolerations[0].operator: Unsupported value: "In": supported values: "Equal", "Exists"',
            'spec.tolerations[1].operator: Unsupported value: "Lt": supported values: "Equal", "Exists", "Lt", "Gt"',
        ],
    ),
    (
        {"tolerations": [{"key": "a", "effect": "Never", "tolerationSeconds": 5}]},
        [
            "spec.tolerations[0].effect: Invalid value: \"Never\": effect must be 'NoExecute' when `tolerationSeconds` "
            "is set",
            'spec.tolerations[0].effect: Unsupported value: "Never": supported values: "NoSchedule", '
            '"PreferNoSchedule", "NoExecute"',
        ],
    ),
    (
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}},
        [f"{NODES}: Required value: must have at least one node selector term"],
    ),
    (
        nodes(key="a", operator="In"),
        [
            f"{NODES}[0].matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or",
        ],
    ),
    (
        nodes(key="a", operator="Exists", values=["b"]),
        [f"{NODES}[0].matchExpressions[0].values: Forbidden: may not be specified when `operator` is 'Exists' or"],
    ),
    (
        nodes(key="a", operator="Gt"),
        [f"{NODES}[0].matchExpressions[0].values: Required value: must be specified single value when `operator` is"],
    ),
    (
        nodes(key="a b", operator="Near", values=["c d"]),
        [
            f'{NODES}[0].matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator',
            f'{NODES}[0].matchExpressions[0].key: Invalid value: "a b": {NAME_PART}',
            f'{NODES}[0].matchExpressions[0].values[0]: Invalid value: "c d": a valid label must be',
        ],
    ),
    (
        {
            "affinity": {
                "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 0, "preference": {}}]}
            }
        },
        [
            "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 0: "
            "must be in the range 1-100"
        ],
    ),
    (
        pods(topologyKey="", labelSelector={"matchExpressions": [{"key": "a", "operator": "Gt"}]}),
        [
            f'{NEAR}.labelSelector.matchExpressions[0].operator: Invalid value: "Gt": not a valid selector operator',
            f"{NEAR}.topologyKey: Required value: can not be empty",
            f'{NEAR}.topologyKey: Invalid value: "": name part must be non-empty',
            f'{NEAR}.topologyKey: Invalid value: "": {NAME_PART}',
        ],
    ),
    (
        pods(topologyKey="zone", namespaces=["N_"]),
        [f'{NEAR}.namespace: Invalid value: "N_": {LABEL}'],
    ),
    (
        pods(topologyKey="zone", matchLabelKeys=["a"]),
        [f"{NEAR}.matchLabelKeys: Forbidden: must not be specified when labelSelector is not set"],
    ),
    (
        spread(maxSkew=0, topologyKey="", whenUnsatisfiable="Hope"),
        [
            f"{SPREAD}.maxSkew: Invalid value: 0: must be greater than zero",
            f"{SPREAD}.topologyKey: Required value: can not be empty",
            f'{SPREAD}.whenUnsatisfiable: Unsupported value: "Hope": supported values: "DoNotSchedule"',
        ],
    ),
    (
        {
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"} for _ in range(2)
            ]
        },
        [f'{SPREAD}.{{topologyKey, whenUnsatisfiable}}: Duplicate value: "{{zone, DoNotSchedule}}"'],
    ),
    (
        spread(whenUnsatisfiable="ScheduleAnyway", minDomains=2, nodeTaintsPolicy="Look"),
        [
            f"{SPREAD}.minDomains: Invalid value: 2: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not"
            " ScheduleAnyway",
            f'{SPREAD}.nodeTaintsPolicy: Unsupported value: "Look": supported values: "Honor", "Ignore"',
        ],
    ),
]


@pytest.mark.parametrize("rows", [VARIABLES, VOLUMES, CONTAINERS, WHOLE, PLACEMENT], ids=lambda rows: str(len(rows)))
async def test_a_pod_is_rejected_for_each_wrong_field(api, namespace, rows):
    found = []
    for spec, expected in rows:
        answer = await api.post(PODS.format(namespace), pod("a", **spec))
        body = answer.body
        said = [f"{each['field']}: {each['message']}" for each in (body.get("details") or {}).get("causes", ())]
        is_same = len(said) == len(expected) and all(map(str.startswith, said, expected))
        if answer.code != 422 or not is_same:
            found.append((spec, answer.code, said or body.get("message"), expected))
    assert not found
    assert (await api.get(PODS.format(namespace))).ok()["items"] == []


async def test_what_kubernetes_fills_in_is_filled_in(api, namespace):
    spec = volume() | {"hostNetwork": True} | one(ports=[{"containerPort": 8080}])
    created = (await api.post(PODS.format(namespace), pod("a", **spec))).ok()["spec"]
    assert created["volumes"][0] == {"name": "v", "emptyDir": {}}
    assert created["containers"][0]["ports"] == [{"containerPort": 8080, "hostPort": 8080, "protocol": "TCP"}]


@pytest.mark.parametrize("size", [1e300, "1e300", "-1e-300", "9" * 40, "1e-40"])
async def test_a_quantity_of_any_size_is_one(api, namespace, size):
    negative = str(size).startswith("-")
    spec = volume(emptyDir={"sizeLimit": size}) | one(resources={"limits": {"memory": size}})
    answer = await api.post(PODS.format(namespace), pod("a", **spec))
    assert answer.code == (422 if negative else 201), answer.body


async def test_an_empty_text_is_no_value_where_there_is_a_default(api, namespace):
    of_pod = {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler"}
    of_container = {
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "Always",
    }
    containers = one(**dict.fromkeys(of_container, ""), ports=[{"containerPort": 80, "protocol": ""}])
    created = (await api.post(PODS.format(namespace), pod("a", **dict.fromkeys(of_pod, ""), **containers))).ok()["spec"]
    (container,) = created["containers"]
    assert {name: created[name] for name in of_pod} == of_pod
    assert {name: container[name] for name in of_container} == of_container
    assert container["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
