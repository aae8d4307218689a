#!/usr/bin/env bash
# Makes in a folder (default dist/) what a release consists of: wheel, source archive, chart, install.yaml, the image's
# archive and bill of materials, notes, checksums. Needs kubectl and helm; without docker all but the image is made.
# IMAGE_NAME is the name of the image in install.yaml, without its tag (default mxnet-operator).
set -euo pipefail
cd "$(dirname "$0")/.."
dist=${1:-dist} image=${IMAGE_NAME:-mxnet-operator}

for program in kubectl helm; do
	command -v "$program" >/dev/null || { echo >&2 "$program was not found: install it, then run make release again"; exit 1; }
done
rm -rf "$dist" && mkdir -p "$dist"
version=$(.venv/bin/python -m hatchling version)
.venv/bin/python tools/release_notes.py "v$version" >"$dist/notes.md"
.venv/bin/python -m hatchling build -d "$dist" >/dev/null
helm package operator/charts/mxnet-operator -d "$dist" 2> >(grep -v "found symbolic link" >&2) >/dev/null
kubectl kustomize operator/manifests/overlays/standalone |
	sed "s|image: mxnet-operator:.*|image: $image:$version|" >"$dist/install.yaml"
make sbom SBOM="$dist/sbom.cdx.json"
if docker info >/dev/null 2>&1; then
	docker build -f operator/Dockerfile -t "$image:$version" .
	docker run --rm "$image:$version" --version
	docker save "$image:$version" | gzip >"$dist/mxnet-operator-$version-image.tar.gz"
else
	echo >&2 "docker does not run here: the image is not made"
fi
(cd "$dist" && sha256sum -- * >.sums && mv .sums SHA256SUMS)
echo "$dist of $version:" && ls -1 "$dist"
