{{- /* Puts an object into the release's namespace, and says by its labels what made it. */}}
{{- define "mxnet-operator.place" }}
{{- $release := .release }}
{{- $metadata := .object.metadata }}
{{- if $metadata.namespace }}
{{- $_ := set $metadata "namespace" $release.Release.Namespace }}
{{- end }}
{{- range .object.subjects }}
{{- if eq .namespace "mxnet-operator" }}
{{- $_ := set . "namespace" $release.Release.Namespace }}
{{- end }}
{{- end }}
{{- $labels := dict
      "helm.sh/chart" (printf "%s-%s" $release.Chart.Name $release.Chart.Version)
      "app.kubernetes.io/version" $release.Chart.AppVersion
      "app.kubernetes.io/managed-by" $release.Release.Service }}
{{- $_ := set $metadata "labels" (merge $labels $metadata.labels) }}
{{- end }}

{{- /* Sets what the values say of the Deployment. */}}
{{- define "mxnet-operator.configure" }}
{{- $values := .values }}
{{- $_ := set .deployment.spec "replicas" (int $values.replicas) }}
{{- $template := .deployment.spec.template }}
{{- $pod := $template.spec }}
{{- $container := index $pod.containers 0 }}
{{- $tag := default .chart.AppVersion $values.image.tag }}
{{- $_ := set $container "image" (printf "%s%s%s" $values.image.repository (hasPrefix "sha256:" $tag | ternary "@" ":") $tag) }}
{{- $_ := set $container "imagePullPolicy" $values.image.pullPolicy }}
{{- $flags := index $values.components "volcano" | ternary (list "--gang-scheduling=volcano") list }}
{{- $_ := set $container "args" (concat $container.args $flags $values.args) }}
{{- range $field := list "nodeSelector" "tolerations" "affinity" "priorityClassName" "imagePullSecrets" }}
{{- with index $values $field }}
{{- $_ := set $pod $field . }}
{{- end }}
{{- end }}
{{- with $values.resources }}
{{- $_ := set $container "resources" . }}
{{- end }}
{{- $_ := set $template.metadata "labels" (merge $template.metadata.labels $values.podLabels) }}
{{- $_ := set $template.metadata "annotations" (merge (deepCopy $values.podAnnotations) $template.metadata.annotations) }}
{{- end }}
