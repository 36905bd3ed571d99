# `make up` and `make test` work from a clean clone on a fresh Debian machine. On Ubuntu `make up` runs the container image.
.PHONY: help install install-dev up test check bench conformance jobs-image test-jobs test-apps
.PHONY: image image-all image-report test-image test-platform sbom aio-image test-aio lock clean
.DEFAULT_GOAL := help
BIN := .venv/bin
ENGINE ?= docker
PLATFORM ?= linux/arm64

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | column -t -s '	'

install: ## install what the server needs, start nothing
	@scripts/install

install-dev:
	@scripts/install --dev

up: ## install what is missing, start the server, print how to connect; Ctrl-C stops it
	@exec scripts/up

test: install-dev ## install what the tests need and run all of them, real Chromium included
	@scripts/test

check: install-dev ## ruff, mypy --strict, import-linter, plain English, docs, tests that mirror modules
	@scripts/check

bench: install-dev ## measure: calls beside the bare CLI and its MCP server, the egress proxy, the audit log, the guards, test jobs
	@$(BIN)/python -m bench
	-@$(BIN)/python -m bench.egress
	@$(BIN)/python -m bench.audit
	@$(BIN)/python -m bench.guards
	-@$(BIN)/python -m bench.jobs

aio-image: ## build the overlay for AIO Sandbox on AIO's own image (deploy/aio); ENGINE=podman for Podman
	@scripts/aio-image $${ENGINE:-docker}

test-aio: install-dev ## build the overlay on a stand-in for AIO's image and test it in containers
	@scripts/test-aio

conformance: install-dev ## the MCP conformance suites and the inspector, against a running server of its own
	@scripts/conformance

jobs-image: ## build the image for test jobs, with Docker or with ENGINE=podman
	@scripts/jobs-image

test-jobs: install-dev ## hostile and ordinary jobs in real containers, with Docker and with Podman
	@scripts/test-jobs

test-apps: install-dev ## install real applications and work through tasks on them
	@scripts/test-apps

image: ## build the container image for this platform; ENGINE=docker or podman
	@scripts/image $(ENGINE)

image-all: ## build it for linux/amd64 and linux/arm64, the foreign platform emulated
	@scripts/image-all

test-image: install-dev ## start the image behind every lock and test it from outside, with Docker and Podman
	@scripts/test-image

test-platform: ## run the unit suite inside the image of another platform, emulated; PLATFORM=linux/amd64 for this one
	@scripts/test-platform $(PLATFORM)

image-report: install-dev ## measure the image against its budgets; writes docs/reference/footprint.md
	@scripts/image-report

sbom: ## write the image's bill of materials: build/sbom.spdx.json and build/sbom.cdx.json
	@scripts/sbom $(ENGINE)

lock: ## update the hashed requirement files
	@scripts/lock

clean: ## remove generated files from this folder
	rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage build dist
