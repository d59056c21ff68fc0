# Two commands: `make demo` and `make test`. Both set up .venv first; they need Python >= 3.10 and make, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TEST_MODELS := more mobilenet_v3_large-seeded-fp32 resnet50-seeded-fp32
# Published as source alone: both only point to the wheels that hold the code.
SOURCES = --no-binary tensorrt-rtx,tensorrt-rtx-cu13
# The command `emogaze` itself, from this checkout.
INSTALL = $(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: demo test test-long lint lock clean

demo: $(VENV)/.demo
	$(BIN)/python -m models fetch default
	$(BIN)/python -m host_tools demo -o runs/demo

test: $(VENV)/.test lint
	$(BIN)/python -m models fetch default $(TEST_MODELS)
	@if command -v npm >/dev/null; then $(BIN)/python -m models fetch npm; fi
	$(BIN)/python -m pytest

test-long: $(VENV)/.test lint
	$(BIN)/python -m models fetch default $(TEST_MODELS)
	@if command -v npm >/dev/null; then $(BIN)/python -m models fetch npm; fi
	$(BIN)/python -m pytest -m "long or not long"

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 10) else "Python >= 3.10 is needed: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: requirements/demo.lock | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --require-hashes --only-binary :all: -r requirements/demo.lock
	$(INSTALL)
	touch $@

$(VENV)/.test: requirements/test.lock | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --require-hashes --only-binary :all: $(SOURCES) -r requirements/test.lock
	$(INSTALL)
	touch $@ $(VENV)/.demo

lock:
	uv pip compile --universal --python-version 3.10 --generate-hashes --no-header -c requirements/constraints.txt setup.py \
	  --extra cpu --extra litert --extra video --extra record --extra models --extra host --extra report --extra checkout -o requirements/demo.lock
	uv pip compile --universal --python-version 3.10 --generate-hashes --no-header -c requirements/constraints.txt setup.py \
	  --extra cpu --extra litert --extra openvino --extra video --extra record --extra models --extra host --extra report \
	  --extra privacy --extra annotate --extra ray --extra dev --extra trt-check -o requirements/test.lock

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
