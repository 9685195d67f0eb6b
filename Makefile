# Every target can be run again at any time, does only what is missing, and works from a fresh clone.
SHELL := /bin/sh
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
BIN := .venv/bin
ARGS ?=
# What a shell starts in the background ignores Ctrl-C for good, and tests press it.
SIGNALS := $(shell env --default-signal=INT,QUIT true 2>/dev/null && echo env --default-signal=INT,QUIT)
export PYTHON

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Set up what it needs, and show an action asked for, approved, run and undone
	@$(SIGNALS) .ci/demo $(ARGS)

.PHONY: test
test: services ## Run the tests, four files at a time (ARGS="-k name" for some of them)
	@base=$$(mktemp -d /tmp/goXXXX) && trap 'rm -rf "$$base"' EXIT && \
	    $(SIGNALS) $(BIN)/pytest -n 4 --dist loadfile --no-loadscope-reorder --basetemp="$$base" $(ARGS) # sockets want short paths

.PHONY: unit
unit: setup ## Run the tests that need no Docker and no server (at most 90 seconds on two cores)
	@base=$$(mktemp -d /tmp/goXXXX) && trap 'rm -rf "$$base"' EXIT && \
	    $(BIN)/pytest -n 2 --dist loadfile -m unit --basetemp="$$base" $(wildcard $(shell cat tests/unit.txt)) $(ARGS)

.PHONY: thorough
thorough: services ## Run the tests that are too long for every time
	@$(MAKE) test ARGS="-m thorough $(ARGS)"

.PHONY: setup
setup: ## Make the virtual environment .venv from the locks
	@.ci/setup

.PHONY: services
services: setup ## See to Docker, the sandbox image and the homeserver's environment
	@.ci/services

.PHONY: lint
lint: setup ## Check style, types and who imports whom
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

.PHONY: format
format: setup ## Rewrite the code in the one style
	@$(BIN)/ruff check --fix --quiet .
	@$(BIN)/ruff format --quiet .

.PHONY: protos
protos: setup ## Generate goex/rpc/ from protos/
	@$(BIN)/python protos/generate.py

.PHONY: trace
trace: services ## Count the files and functions that run for one action; writes trace.json
	@$(BIN)/python -m tools.trace $(ARGS)

.PHONY: reference
reference: setup ## Write the generated pages of docs/ anew
	@$(BIN)/python -m tools.reference
	@$(BIN)/python -m tools.assurance

.PHONY: docs
docs: reference ## Build the site of docs/ into .cache/site
	@.ci/docs

.PHONY: check-protos
check-protos: setup ## See whether goex/rpc/ is what protos/ says
	@$(BIN)/python protos/generate.py --check

.PHONY: attacks
attacks: services ## Run every attack, also against runsc and an engine that maps users (minutes)
	@$(BIN)/pytest -m "thorough or not thorough" tests/adversarial tests/runtimes/code/test_runsc.py $(ARGS)

.PHONY: conformance
conformance: setup ## Run the conformance suite of MCP against goex mcp (needs Node)
	@$(BIN)/python -m tests.conformance.run $(ARGS)

.PHONY: agent-tasks
agent-tasks: services ## Do eight tasks as an agent does, by MCP and goex-client; print trips and tokens (needs Docker)
	@$(BIN)/python -m tools.agent_tasks $(ARGS)

.PHONY: coding-agents
coding-agents: services ## Run Claude Code, Codex, Gemini CLI and Copilot CLI with a scripted model, connected to GoEx (needs npm)
	@base=$$(mktemp -d /tmp/goXXXX) && trap 'rm -rf "$$base"' EXIT && \
	    $(SIGNALS) $(BIN)/pytest --basetemp="$$base" -m "thorough or not thorough" tests/coding_agents $(ARGS)

.PHONY: mcp-servers
mcp-servers: services ## Add, call and undo published MCP servers from npm and PyPI, and try to get out of them (minutes)
	@base=$$(mktemp -d /tmp/goXXXX) && trap 'rm -rf "$$base"' EXIT && \
	    $(SIGNALS) $(BIN)/pytest --basetemp="$$base" -m "thorough or not thorough" --durations=0 tests/goex/servers $(ARGS)

.PHONY: frameworks
frameworks: services ## Run the programs of examples/ with the real frameworks and a scripted model (needs a package index)
	@base=$$(mktemp -d /tmp/goXXXX) && trap 'rm -rf "$$base"' EXIT && \
	    $(SIGNALS) $(BIN)/pytest --basetemp="$$base" -m "thorough or not thorough" tests/frameworks $(ARGS)

.PHONY: bench
bench: services ## Measure, print a table, write bench.json
	@$(BIN)/python -m tools.bench.run $(ARGS)

.PHONY: acceptance
acceptance: services ## Measure what is accepted of other people's documents and schemas (needs npm, Docker); writes acceptance.json
	@$(BIN)/python -m tools.acceptance $(ARGS)

.PHONY: prism
prism: setup ## Let Prism judge the requests of imported documents (needs npm); writes acceptance.json
	@$(BIN)/python -m tools.acceptance prism -- $(ARGS)

.PHONY: replay
replay: setup ## Count the questions a task of AgentDojo's and BFCL's ground truth takes; writes replay.json
	@nice -n 15 $(BIN)/python -m tools.replay.run

.PHONY: peers
peers: setup ## Install what make bench measures the sandbox beside, each in an environment of its own
	@for peer in epicbox swe-rex; do \
	    [ -e .cache/peers/$$peer/.done ] || { \
	        echo "==> peers: $$peer into .cache/peers/$$peer" && rm -rf .cache/peers/$$peer && \
	        $(BIN)/python -m venv .cache/peers/$$peer && \
	        .cache/peers/$$peer/bin/pip install --quiet -r tools/bench/peers/$$peer.txt && \
	        : >.cache/peers/$$peer/.done; } || exit 1; \
	done

.PHONY: soak
soak: services ## Run ten thousand actions, and see that nothing of them is left (ARGS="--actions 500" for fewer)
	@$(BIN)/python -m tools.bench.soak $(ARGS)

.PHONY: huge
huge: setup ## Take back a program on a folder of a million files (minutes)
	@$(BIN)/python -m tools.bench.huge $(ARGS)

.PHONY: plots
plots: setup ## Draw docs/plots anew
	@$(BIN)/python -m tools.plots.voting
	@$(BIN)/python -m tools.plots.cost
	@$(BIN)/python -m tools.plots.space
	@$(BIN)/python -m tools.plots.sandbox

.PHONY: screenshot
screenshot: services ## Take the pictures of the notification and the page anew
	@$(BIN)/python -m tools.plots.notification
	@$(BIN)/python -m tools.plots.page

.PHONY: crash
crash: services ## Kill everything at every point of every step, let disks fail, and write docs/crash.md
	@$(BIN)/python -m tests.crash.run $(ARGS)

.PHONY: lock
lock: ## Write the locks anew (ARGS=--upgrade for the newest versions)
	@.ci/lock $(ARGS)

.PHONY: clean
clean: ## Remove environments, caches and what was built (Docker keeps its images)
	@rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist build bench.json
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
