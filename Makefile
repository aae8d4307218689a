# Everything that the project does from a checkout. `make` lists it; nothing is installed outside this folder.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
SOURCES := $(shell find operator mxnet_provider argo -type f -not -name '*.pyc' 2>/dev/null)
UV_LOCK := $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate \
	--custom-compile-command "make lock" --quiet

# Most tests wait for something else most of the time, so there are more of pytest's workers than cores. With TIER=all one
# more: several whole Airflows run then, and on busier cores Airflow's scheduler fails tasks which resume
# (docs/facts/airflow.md).
WORKERS ?= $(shell n=$$(($$(nproc) + $(if $(filter all,$(TIER)),1,2))); echo $$((n < 6 ? n : 6)))

# Local clusters, images and logs of this checkout; `export MXJOB_HOME=$$PWD/.mxjob` to use them from a shell.
export MXJOB_HOME ?= $(CURDIR)/.mxjob

.PHONY: help
help: ## List what can be made.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

.PHONY: demo
demo: $(VENV)/.installed ## Train MXNet through an MXJob from an Airflow DAG, on this machine, and write report.html.
	@$(BIN)/python examples/digits/demo.py

.PHONY: tune
tune: $(VENV)/.installed ## Tune a matrix multiplication with TVM through an MXJob, on this machine, and write tuning.html.
	@$(BIN)/python examples/tune/demo.py

# test or all. Marks say what only `all` runs: docs/tests.md.
TIER ?= test

# Where PYTHONDONTWRITEBYTECODE is set, as in many images, each of pytest's workers would rewrite the assertions of all test
# files anew: 7 CPU seconds of the 15 that it takes each to collect them.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest

.PHONY: test
test: $(VENV)/.installed ## Check the code and run the tests, but for the exhaustive ones; TIER=all runs everything, as CI does.
	@$(MAKE) lint >.lint.log 2>&1 & lint=$$!; trap 'kill $$lint 2>/dev/null || true' EXIT; failed=0; \
	$(PYTEST) -n $(WORKERS) --tier=$(TIER) $(PYTEST_ARGS) || failed=$$?; \
	wait $$lint || { cat .lint.log; failed=1; }; exit $$failed

UNIT := tests/unit tests/simulation tests/conformance tests/local/apiserver

.PHONY: unit
unit: $(VENV)/.installed ## While you edit: run the tests that start no MXNet, TVM, Airflow, Argo or control plane.
	@$(PYTEST) -n $(WORKERS) --tier=unit $(if $(findstring tests/,$(PYTEST_ARGS)),,$(UNIT)) $(PYTEST_ARGS)

.PHONY: programs
programs: $(VENV)/.installed ## Build what the tests on a real Kubernetes, Kueue, Argo and Helm need, once, with Go: some 20 minutes.
	@$(BIN)/python tests/support/kubernetes_programs.py

.PHONY: test-airflow
test-airflow: $(VENV)/.installed ## Of the tests, run those that need a whole Airflow (scheduler, triggerer, API server).
	@$(PYTEST) -m whole_airflow tests/airflow $(PYTEST_ARGS)

.PHONY: nodes
nodes: $(VENV)/.installed ## Run the scenes of a gang on three real nodes, which fail in turn: half an hour, as root; needs `make programs`.
	@$(PYTEST) --tier=all tests/node/test_three_nodes.py tests/node/scenes_of_three_nodes.py $(PYTEST_ARGS)

.PHONY: simulate
simulate: $(VENV)/.installed ## Run N (default 100000) random schedules of failures over the controller, on all cores.
	@PYTHONPATH=tests/simulation:tests/support $(BIN)/python -m simulator $(or $(N),100000) $(if $(MXJOB_SEED),--first $(MXJOB_SEED))

.PHONY: bench
bench: $(VENV)/.installed ## What 200 deferred tasks cost Airflow's triggerer, then bench-controller.
	@$(BIN)/python tests/perf/bench_triggerer.py
	@$(MAKE) bench-controller

.PHONY: bench-controller
bench-controller: $(VENV)/.installed ## What N jobs (default 50) cost our controller, training-operator and a bare client, or the checkout BASE; needs `make programs`.
	@$(BIN)/python tests/perf/bench_controller.py $(or $(N),50) $(BASE)

.PHONY: bench-crd
bench-crd: $(VENV)/.installed ## What our CRD costs the API server beside training-operator's; needs `make programs`.
	@$(BIN)/python tests/perf/bench_crd.py

.PHONY: lint
lint: $(VENV)/.installed ## Style, types, and the direction of imports.
	@echo "Checking style, types and imports"
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/mypy --no-error-summary
	@PYTHONPATH=operator:argo:. $(BIN)/lint-imports >.lint-imports.log || { cat .lint-imports.log; exit 1; }

.PHONY: install
install: $(VENV)/.installed ## Install the project and its tools into .venv, and a hook that checks commit messages.
	@tools/install_hooks.sh

.PHONY: format
format: $(VENV)/.installed ## Format the code and mend what can be mended.
	@$(BIN)/ruff check --fix --quiet; $(BIN)/ruff format --quiet

.PHONY: generate
generate: $(VENV)/.installed ## Write what is generated from code: CRDs, Argo templates and examples, the references.
	@$(BIN)/mxnet-operator crd >operator/manifests/base/crd.yaml
	@$(BIN)/mxnet-operator crd --legacy >operator/manifests/overlays/legacy/crd.yaml
	@$(BIN)/python tools/builtin_types.py
	@$(BIN)/python -m mxnet_argo argo
	@AIRFLOW_HOME=$(CURDIR)/.airflow $(BIN)/python tools/airflow_reference.py
	@$(BIN)/python tools/mxjob_reference.py
	@$(BIN)/python tools/cli_reference.py
	@$(BIN)/python tools/description_reference.py

.PHONY: screenshots
screenshots: $(VENV)/.installed ## Train on a local cluster and take the pictures of the report and the dashboard in docs/images.
	@PYTHONPATH=tests/support $(BIN)/python tests/perf/draw_screenshots.py

# Material for MkDocs is asked not to advertise its successor.
.PHONY: docs
docs: $(VENV)/.docs ## Build the site of docs/ into site/, and fail on a link or an anchor that leads nowhere.
	@NO_MKDOCS_2_WARNING=1 $(VENV)/docs/bin/mkdocs build --site-dir $(or $(SITE),site)

.PHONY: docs-version
docs-version: $(VENV)/.docs ## Commit the site as that of version VERSION (such as 0.1) to the branch gh-pages, beside the others.
	@export NO_MKDOCS_2_WARNING=1 PATH="$(CURDIR)/$(VENV)/docs/bin:$$PATH"; \
	mike deploy --update-aliases "$(VERSION)" latest && mike set-default latest

$(VENV)/.docs: $(VENV)/.requirements requirements/docs.txt $(wildcard requirements/docs-npm/*.json)
	@$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python $(VENV)/docs
	@$(BIN)/uv pip sync --quiet --python $(VENV)/docs/bin/python --compile-bytecode --require-hashes requirements/docs.txt
	@cp requirements/docs-npm/*.json $(VENV)/docs
	@npm ci --prefix $(VENV)/docs --ignore-scripts --no-audit --no-fund --silent
	@touch $@

.PHONY: sbom
sbom: $(VENV)/.installed ## Write what the controller's Python environment, or the image in the archive IMAGE, consists of (CycloneDX) to SBOM (default sbom.cdx.json).
ifdef IMAGE
	@$(BIN)/python tools/image_sbom.py "$(IMAGE)" >$(or $(SBOM),sbom.cdx.json)
else
	@work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; \
	$(BIN)/uv venv --quiet --python $(BIN)/python "$$work/image" && $(BIN)/uv venv --quiet --python $(BIN)/python "$$work/tool"; \
	$(BIN)/uv pip sync --quiet --python "$$work/tool" --require-hashes requirements/sbom.txt; \
	$(BIN)/uv pip sync --quiet --python "$$work/image" --require-hashes requirements/controller.txt; \
	"$$work/tool/bin/cyclonedx-py" environment --output-reproducible --pyproject pyproject.toml --mc-type application \
		--output-file $(or $(SBOM),sbom.cdx.json) "$$work/image/bin/python"
endif

.PHONY: release
release: $(VENV)/.installed ## Make in dist/ all that a release of this version consists of; needs kubectl and helm, and docker for the image.
	@tools/release.sh $(DIST)

.PHONY: lock
lock: $(VENV)/.installed ## Resolve all requirements anew, to the newest versions.
	@$(UV_LOCK) --upgrade pyproject.toml --all-extras --group dev -o requirements/dev.txt
	@echo 'uv>=0.9' | $(UV_LOCK) --upgrade - -o requirements/uv.txt
	@$(UV_LOCK) --upgrade -c requirements/dev.txt pyproject.toml --extra controller -o requirements/controller.txt
	@echo 'hatchling>=1.27' | $(UV_LOCK) --upgrade -c requirements/dev.txt - -o requirements/build.txt
	@echo 'cyclonedx-bom>=7' | $(UV_LOCK) --upgrade - -o requirements/sbom.txt
	@printf 'mkdocs-material>=9.6\nmike>=2.1\n' | $(UV_LOCK) --upgrade - -o requirements/docs.txt
	@cd requirements/docs-npm && npm install --package-lock-only --omit-lockfile-registry-resolved --save-exact --silent @mermaid-js/tiny@11
	@$(UV_LOCK) --upgrade tests/tools/kubeflow-training/requirements.in -o tests/tools/kubeflow-training/requirements.txt
	@$(UV_LOCK) --upgrade pyproject.toml --extra argo tests/tools/hera-6/requirements.in -o tests/tools/hera-6/requirements.txt
	@for each in tests/tools/airflow-*; do \
		$(UV_LOCK) --upgrade pyproject.toml --extra airflow $$each/requirements.in -o $$each/requirements.txt; \
	done

.PHONY: clean
clean: ## Stop this checkout's cluster and delete what was installed and built.
	@if [ -x $(BIN)/mxjob ]; then $(BIN)/mxjob local down; fi
	@rm -rf $(VENV) .mxjob .airflow dist site report.html tuning.html sbom.cdx.json

# Bytecode is made at installation: where PYTHONDONTWRITEBYTECODE is set, as in many images, each process would compile
# all that it imports anew, which is more than half of the time that a short one takes.
# The wheel is installed, never the folder: an editable install would hide what the wheel lacks.
$(VENV)/.installed: $(VENV)/.requirements pyproject.toml README.md LICENSE $(SOURCES)
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --offline \
		--compile-bytecode --reinstall-package mxnet-operator .
	@touch $@

$(VENV)/.requirements: requirements/dev.txt requirements/uv.txt
	@test -n "$(PYTHON)" || { echo >&2 "No Python 3.11 or newer was found. Install one, or name it: make PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo >&2 \
		"$(PYTHON) cannot make virtual environments. On Debian or Ubuntu: sudo apt install python3-venv"; exit 1; }
	@echo "Installing into $(VENV) (Airflow, the Kubernetes client, ...: about 600 MB, a minute or two the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt
	@$(BIN)/uv pip sync --python $(BIN)/python --compile-bytecode --require-hashes requirements/dev.txt
	@touch $@
