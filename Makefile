# `make` alone lists the commands. ARGS is passed to the command: make test ARGS="tests/commands -k port"

.DEFAULT_GOAL := help
.PHONY: help run serve worker beat benchmark screenshots test test-postgres drill lint format types lock clean
SHELL := /bin/sh
# Let Python store compiled modules. Otherwise each process compiles all of Django again.
unexport PYTHONDONTWRITEBYTECODE

PY := .venv/bin/python
# Many tests wait for processes, so two workers more than processors keep the processors busy.
TEST_WORKERS ?= $$(($$(nproc 2>/dev/null || echo 2) + 2))
PYTEST := $(PY) -m pytest -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder
TEMPLATES = $(shell find templates *_app -name '*.html' -path '*templates*' 2>/dev/null)

help: ## List all commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

run: ## Install the dependencies and serve Agent CMS on http://127.0.0.1:8000 (PORT, DATA_DIR)
	@scripts/environment runtime && exec $(PY) -m agentcms.server.run --stop-with-parent

serve: ## Migrate and run the web server in production; docs/operations.md lists the variables
	@scripts/environment runtime && deploy/start prepare && exec deploy/start web

worker: ## Run a worker in production; one or more (QUEUES=runs or QUEUES=jobs: of one kind)
	@scripts/environment runtime && exec deploy/start worker $(QUEUES)

beat: ## Run the scheduler in production; exactly one
	@scripts/environment runtime && exec deploy/start beat

benchmark: ## Measure the API under load and update docs/benchmarks (ARGS="--all", "--help")
	@scripts/environment dev && exec $(PY) -m benchmarks $(ARGS)

screenshots: ## Take screenshots of every page into screenshots/ (ARGS="--readme": those of the README)
	@scripts/environment dev && exec $(PY) scripts/screenshots.py $(ARGS)

test: ## Run the tests on SQLite
	@scripts/environment dev && exec $(PYTEST) $(ARGS)

test-postgres: ## Run the tests that use a database on a temporary PostgreSQL
	@scripts/environment dev && exec $(PY) -m tests.postgres -- $(PYTEST) $(ARGS)

drill: ## Run the tests, with the large numbers that `make test` reduces
	@scripts/environment dev && DRILL=1 exec $(PYTEST) --timeout 0 $(ARGS)

lint: ## Check style, templates and migrations
	@scripts/environment dev
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(if $(TEMPLATES),.venv/bin/djade --check $(TEMPLATES))
	DJANGO_SETTINGS_MODULE=tests.settings $(PY) manage.py makemigrations --check --dry-run

format: ## Format Python and templates
	@scripts/environment dev
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .
	$(if $(TEMPLATES),.venv/bin/djade $(TEMPLATES))

types: ## Check the types
	@scripts/environment dev && exec $(PY) -m mypy .

COMPILE := uv pip compile --python-version 3.11 --universal --constraint constraints.txt --override overrides.txt \
	--generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --custom-compile-command "make lock" pyproject.toml

lock: ## Update the requirements files (needs uv)
	$(COMPILE) -o requirements.txt
	for extra in s3 minilm dbos inngest temporal; do $(COMPILE) --extra $$extra -o requirements-$$extra.txt || exit 1; done
	$(COMPILE) --extra dev -o requirements-dev.txt

clean: ## Remove .venv and caches, but not the data in var/
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .schemathesis
	find . -name __pycache__ -type d -not -path './node_modules/*' -prune -exec rm -rf {} +
