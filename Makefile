# The commands a person types. Each creates what it needs: a fresh clone is enough.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
GUARANTEE ?= exactly_once_v2
BROKER ?= embedded
SEEDS ?= 1000
SECONDS ?= 60
MINUTES ?= 10
CASES ?= 1000
SEED ?= 0
RECORD ?= measured
FAULTS := $(addprefix tests/monitoring/,test_faults.py test_disk_faults.py test_load_faults.py test_record_and_query_faults.py)
PRODUCT := millrace streams state coordinator pytest_millrace.py

# Tests start thousands of processes: without kept bytecode each compiles all that it imports, which
# takes three times as long as the import itself.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help porting demo test ci ci-full bench bench-restore bench-broker bench-groups bench-dsl bench-rebalance bench-node-loss bench-peers bench-latency bench-spark bench-reconcile bench-report clients tools registry containers liveness cluster monitoring monitoring-faults security smoke differential differential-tests docs spark spark-embedded spark-kafka soak-reconcile fuzz fuzz-queries gates unit simulation soak soak-app conformance integration crashes upgrade versions changelog dist audit lock package pythons clean

help:  ## list the commands
	@sed -n 's/^\([a-z-]*\):.*##/\1\t/p' $(MAKEFILE_LIST) | expand -t 20

# Every file that is installed has one of the hashes in requirements/, but for our own package, which
# is built by what was installed so.
INSTALL := install --quiet --disable-pip-version-check
INSTALL_OWN := $(INSTALL) --no-deps --no-build-isolation --editable .

$(VENV)/installed: pyproject.toml requirements/dev.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip $(INSTALL) --require-hashes --requirement requirements/dev.txt
	$(BIN)/pip $(INSTALL_OWN)
	touch $@

# With pyspark, which is half a gigabyte: for what needs it.
$(VENV)/installed-spark: $(VENV)/installed requirements/spark.txt
	$(BIN)/pip $(INSTALL) --require-hashes --requirement requirements/spark.txt
	touch $@

# With mkdocs, for the site only.
$(VENV)/installed-docs: $(VENV)/installed requirements/docs.txt
	$(BIN)/pip $(INSTALL) --require-hashes --requirement requirements/docs.txt
	touch $@

# The tools of a release, which bring another pip, in an environment of their own.
$(VENV)-release/installed: requirements/release.txt
	$(PYTHON) -m venv $(VENV)-release
	$(VENV)-release/bin/pip $(INSTALL) --require-hashes --requirement requirements/release.txt
	touch $@

demo: $(VENV)/installed$(if $(SPARK),-spark)  ## word count on real input with kills: SPARK=1 reconciles the results, GUARANTEE=at_least_once, BROKER=host:port CONNECTION=file
	$(BIN)/python -m examples.demo --guarantee $(GUARANTEE) --broker $(BROKER) $(if $(CONNECTION),--connection $(CONNECTION)) $(if $(SPARK),--spark)

test: $(VENV)/installed-spark $(VENV)/installed-docs  ## gates, unit, simulation, conformance, integration, documentation
	$(BIN)/python -m tests.ci test

gates: $(VENV)/installed-spark  ## lint, format, types, who imports whom, what is dangerous
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive $(PRODUCT)

# With --files-in-memory nothing waits for a disk, which these tests are not about; those of integration
# and the crash matrix keep to the disk.
unit: $(VENV)/installed-spark  ## unit tests, and a little fuzzing: OPTIONS=--hypothesis-profile=ci tries more examples
	$(BIN)/pytest -q --files-in-memory tests/unit tests/fuzz tests/ci $(OPTIONS)

simulation: $(VENV)/installed  ## histories of broker, groups, rebalances and runtime under faults, from a few seeds
	$(BIN)/pytest -q tests/simulation

soak: $(VENV)/installed  ## many such histories: SEEDS=1000
	$(BIN)/python -m tests.simulation --seeds $(SEEDS)

monitoring: $(VENV)/installed  ## alert rules and dashboards in a real Prometheus; needs Debian's package prometheus
	$(BIN)/pytest -q tests/monitoring $(addprefix --ignore=,$(FAULTS)) $(OPTIONS)

monitoring-faults: $(VENV)/installed  ## more faults in a running application, each judged by its alerts; as root
	$(BIN)/pytest -q $(FAULTS) $(OPTIONS)

smoke: $(VENV)/installed  ## Kafka's smoke test of Kafka Streams and of ours, with kills, verified by its driver; needs Java and Maven
	$(BIN)/pytest -q tests/smoke $(OPTIONS)

soak-app: $(VENV)/installed  ## workers under kills, stops, lost answers: MINUTES=10, OPTIONS='--broker kafka'
	$(BIN)/python -m tests.soak_app --minutes $(MINUTES) $(OPTIONS)

.PHONY: soak-queries
soak-queries: $(VENV)/installed  ## queries of workers under kills, each answer checked: MINUTES=10, OPTIONS='--plant dirty-read'
	$(BIN)/pytest -q tests/soak_queries
	$(BIN)/python -m tests.soak_queries --minutes $(MINUTES) $(OPTIONS)

.PHONY: bench-queries
bench-queries: $(VENV)/installed  ## how long a look-up takes, and what 1 000 queries a second take from the stream: OPTIONS=--quick
	$(BIN)/python -m benchmarks.queries $(OPTIONS)

.PHONY: bench-query-costs
bench-query-costs: $(VENV)/installed  ## processor time of a query of each kind, without a stream: OPTIONS='--rounds 5 --count 1000'
	$(BIN)/python -m benchmarks.query_costs $(OPTIONS)

conformance: $(VENV)/installed  ## the same cases against the embedded broker and real Kafka
	$(BIN)/pytest -q --files-in-memory tests/conformance

integration: $(VENV)/installed  ## real processes and kill -9: OPTIONS='--broker embedded'
	$(BIN)/pytest -q tests/integration $(OPTIONS)

crashes: $(VENV)/installed  ## kill -9 of worker and broker at each step, a store of every kind, both brokers
	$(BIN)/pytest -q tests/crashes

versions: $(VENV)/installed-spark  ## one application on nodes of 2.8 to 4.4: writes the table of docs/versions.md
	$(BIN)/pytest -q tests/versions $(if $(CI),,--write-versions) $(OPTIONS)

upgrade: $(VENV)/installed  ## data directories of an earlier commit and of real Kafka, both ways
	$(BIN)/pytest -q tests/upgrade

porting: $(VENV)/installed  ## applications of Kafka Streams and their ports, beside each other and one after the other
	$(BIN)/pytest -q tests/porting

fuzz-queries: $(VENV)/installed  ## the HTTP API of queries by its OpenAPI document: EXAMPLES=1000 for each path
	QUERY_FUZZ_EXAMPLES=$(or $(EXAMPLES),1000) $(BIN)/pytest -q tests/fuzz/test_query_api.py

fuzz: $(VENV)/installed  ## hostile bytes for a time: SECONDS=600, OPTIONS='--seed 7'
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS) $(OPTIONS)

clients: $(VENV)/installed  ## clients in other languages at work, the embedded broker killed under them
	$(BIN)/pytest -q tests/clients $(OPTIONS)

tools: $(VENV)/installed  ## Kafka's own command-line tools against both brokers
	$(BIN)/pytest -q tests/tools

registry: $(VENV)/installed  ## serdes with a real schema registry, killed, and Avro and Protobuf beside Java's libraries
	$(BIN)/pytest -q tests/registry

cluster: $(VENV)/installed  ## an application on three nodes of Kafka that are killed, paused, cut off and moved
	$(BIN)/pytest -q tests/cluster

liveness: $(VENV)/installed  ## workers that hang, lose their broker, are told to stop once and twice, on both brokers
	$(BIN)/pytest -q tests/liveness

security: $(VENV)/installed-spark  ## applications, commands and Spark on a Kafka with TLS, SASL and ACLs
	$(BIN)/pytest -q tests/security

containers: $(VENV)/installed  ## the word count on Kafka in a container, killed; the Dockerfile of the docs: KAFKA_IMAGE=... takes a stock image
	$(BIN)/pytest -q tests/containers

differential: $(VENV)/installed  ## random topologies here and in Kafka Streams: CASES=10000, SEED=7
	$(BIN)/python -m tests.differential --cases $(CASES) --seed $(SEED) $(OPTIONS)

differential-tests: $(VENV)/installed  ## kept and sampled cases of these, on a broker too, and planted bugs
	$(BIN)/pytest -q -s tests/differential

docs: $(VENV)/installed-docs  ## the documentation as a searchable site in site/, its links checked
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	$(BIN)/pytest -q tests/site tests/unit/docs/test_docstring_examples.py

spark: $(VENV)/installed-spark  ## Spark reconciles results, on both brokers: needs Java 17
	$(BIN)/pytest -q tests/spark

spark-embedded: $(VENV)/installed-spark  ## the same, on the embedded broker only
	$(BIN)/pytest -q tests/spark --broker embedded

spark-kafka: $(VENV)/installed-spark  ## what asks a broker for something of its own, on real Kafka
	$(BIN)/pytest -q tests/spark --broker kafka -k kafka

soak-reconcile: $(VENV)/installed-spark  ## an application under kills, reconciled at ten cuts: OPTIONS='--rate 5000 --cuts 3'
	$(BIN)/python -m tests.spark_soak $(OPTIONS)

bench: $(VENV)/installed  ## records a second beside a hand-written loop, half an hour; OPTIONS=--quick: three minutes
	$(BIN)/python -m benchmarks.throughput $(OPTIONS)

bench-restore: $(VENV)/installed  ## restore beside a hand-written loop; how soon a killed worker runs again
	$(BIN)/python -m benchmarks.restore $(OPTIONS)

bench-broker: $(VENV)/installed  ## the embedded broker beside real Kafka: OPTIONS='--only embedded --rounds 5'
	$(BIN)/python -m benchmarks.broker $(OPTIONS)

bench-groups: $(VENV)/installed  ## groups on both: rebalances, heartbeats, commits: OPTIONS='--quick'
	$(BIN)/python -m benchmarks.groups $(OPTIONS)

bench-rebalance: $(VENV)/installed  ## how long partitions stand still while workers come and go, beside Kafka Streams, with both protocols: OPTIONS='--quick --protocols streams'
	$(BIN)/python -m benchmarks.rebalance $(OPTIONS)

bench-node-loss: $(VENV)/installed  ## how long partitions stand still when a node of three is killed, beside Kafka Streams: OPTIONS=--quick
	$(BIN)/python -m benchmarks.node_loss $(OPTIONS)

bench-peers: $(VENV)/installed  ## operators beside Kafka Streams and a hand-written loop: OPTIONS='--broker kafka --only join'
	$(BIN)/python -m benchmarks.peers $(OPTIONS)

bench-latency: $(VENV)/installed  ## how soon results can be read, beside Kafka Streams and a loop: OPTIONS="--rates 10000"
	$(BIN)/python -m benchmarks.peers.latency $(OPTIONS)

bench-dsl: $(VENV)/installed  ## what each operator costs for a record, and metrics: OPTIONS='--only join'
	$(BIN)/python -m benchmarks.dsl $(OPTIONS)

bench-spark: $(VENV)/installed-spark  ## a topic read into Spark, beside Spark's own Kafka connector: OPTIONS=--quick
	$(BIN)/python -m benchmarks.spark_read $(OPTIONS)

bench-reconcile: $(VENV)/installed-spark  ## millrace reconcile of six kinds of state, with its parts: OPTIONS='--records 200000'
	$(BIN)/python -m benchmarks.reconcile $(OPTIONS)

bench-report: $(VENV)/installed-spark  ## what BENCH_RECORD=measured let benchmarks keep, in one table: RECORD=measured
	$(BIN)/python -m benchmarks.report $(RECORD) --to $(RECORD)/measurements.parquet

dist: $(VENV)/installed $(VENV)-release/installed  ## wheel, sdist and SBOM (CycloneDX) in dist/
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(VENV)-release/bin/python -m tests.package.sbom dist/*.whl

audit: $(VENV)-release/installed  ## ask a database of vulnerabilities about requirements/, if it answers
	$(VENV)-release/bin/python -m tests.package.audit

lock:  $(VENV)-release/installed  ## write requirements/ anew from pyproject.toml and constraints.txt: minutes
	$(VENV)-release/bin/python -m tests.package.lock

package: $(VENV)/installed  ## wheel and sdist, installed for every Python of this machine
	$(BIN)/pytest -q tests/package

pythons: $(VENV)/installed-spark  ## the unit tests on every other Python of this machine: long
	$(BIN)/python -m tests.package.unit_tests

changelog: $(VENV)/installed  ## what changelog.d/ makes of the next version's section; RELEASE=0.1.0 writes it
	$(BIN)/towncrier build --version $(or $(RELEASE),next) $(if $(RELEASE),--yes,--draft)

ci: $(VENV)/installed-spark $(VENV)/installed-docs  ## everything that CI runs, large matrices sampled
	$(BIN)/python -m tests.ci ci

ci-full: $(VENV)/installed-spark $(VENV)/installed-docs  ## the same with all of each matrix and every seed: hours
	$(BIN)/python -m tests.ci ci-full

clean:  ## remove what the commands created
	rm -rf $(VENV) $(VENV)-* dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis .kafka
