# `make run` and `make test` are all that a newcomer needs; both make the environment in .venv first.

UV = .venv/bin/uv
export UV_PYTHON_DOWNLOADS = never
# compiled once, at installation: every start is faster
export UV_COMPILE_BYTECODE = 1

.PHONY: run test check format docs bench image hooks clean
.DEFAULT_GOAL = help

help: ## show this
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1\t\2/p' Makefile

.venv/.run: uv.lock pyproject.toml scripts/setup
	@scripts/setup run

.venv/.dev: uv.lock pyproject.toml scripts/setup
	@scripts/setup dev

run: .venv/.run ## start the daemon here and print the link to its page; ARGS="--set log.level=debug"
	@exec .venv/bin/ostiary run $(ARGS)

test: check ## everything that CI runs; TESTS="tests/gateway -k config" for a part
	@scripts/browser && without= || without=--ignore=tests/browser; \
	set -x; .venv/bin/python -m pytest -n auto $$without $(TESTS)

check: .venv/.dev ## format, lint, types, arrows between the rooms, dependencies, lock
	.venv/bin/ruff format --check --quiet .
	.venv/bin/ruff check --quiet .
	.venv/bin/python -m mypy
	.venv/bin/lint-imports
	.venv/bin/deptry .
	$(UV) lock --check --quiet

format: .venv/.dev ## put the code into form
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

docs: .venv/.dev ## write the tables of docs/configuration.md
	.venv/bin/python scripts/write_configuration.py

bench: .venv/.dev ## measure; each benchmark prints JSON
	.venv/bin/python -m bench $(ARGS)

image: ## build the container image; ENGINE=podman
	$(or $(ENGINE),docker) build --tag ostiary .

hooks: ## check before every commit
	git config core.hooksPath .githooks

clean: ## remove what was made, the environment included
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build
