# The two commands of the README are `make run` and `make test`; both do their own set-up with Go and Node only.
SHELL := /bin/sh
GO ?= go
# The flags of the handler's build, for tests and linters too: with others each package would be compiled once more.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath $(GOFLAGS)
# Many tests wait for processes and deadlines: more of them at a time than there are processors.
WAITING := -p 4 -parallel 8
# golangci-lint runs vet, with all of its checks.
TESTED := -vet=off $(TESTFLAGS)
# The end-to-end tests of `make test`: the plain path, an outage, a kill.
SMOKES := ^(TestFiveHundredDocumentsArriveExactly|TestCosmosGoesAwayAfterHalfOfThePatches|TestKillBetweenSQLCommitAndPatch)$$
# Long tests of raced packages that run one goroutine at a time.
ALONE := ^(TestWhoIsGivenUp|TestHistoriesOfAComparison|TestADocumentOfManyLines|TestAKillAtEveryCallChangesNothing|TestRequestsGrowWithTheLines|TestAllCorruptionsAreFoundExactly)$$
# The packages that start goroutines or guard something from them (test/arch holds the list and names those that are left out).
RACED := ./cmd/azure ./cmd/local/internal/proc ./cmd/sqlwriterctl ./internal/app ./internal/breaker ./internal/commit ./internal/cosmos ./internal/invoice ./internal/ops ./internal/reconcile ./internal/run ./internal/servicebus ./internal/store/sqlite ./internal/store/sqlserver ./internal/ui ./test/azuretest ./test/emulators/cosmosdb ./test/emulators/cosmosdb/cosmosdbtest ./test/emulators/funchost ./test/emulators/loopback ./test/emulators/servicebus
# Tests with a daily size in packages that `make e2e` does not run whole.
DAILY := ^(TestWhoIsGivenUp|TestBadDocumentsDoNotHoldThoseThatALockPutOff|TestFiftyLargeDocumentsInOneBatch|TestReadNeedsLittleMemoryForALargeDocument|TestCompletionInBash|TestNoRequestBreaksTheAPI|TestTheStrangersHouse)$$
# SQLite's translated C is left out of the race detector: it has no goroutines of its own, and watching it makes the SQL
# suites nine times slower.
RACE := -race -gcflags=modernc.org/sqlite/lib=-race=false
TOOLS := $(CURDIR)/.tools
GOLANGCI := $(TOOLS)/golangci-lint
GOVULNCHECK := $(TOOLS)/govulncheck
# Random histories of `make e2e` are new ones each time.
SEED := $(or $(SEED),$(shell date +%s))
e2e: export SQLWRITER_TEST_SEED := $(SEED)
FUZZTIME ?= 30s
FAULTTIME ?= 10m
PYTHON ?= python3
SQLFLUFF := $(TOOLS)/sqlfluff
BICEP := $(TOOLS)/bicep
# Folders of T-SQL as it is sent. A test holds that no .sql file is outside of them unless its golden is inside.
TSQL := deploy internal/store/sqlserver/adoption internal/store/sqlserver/migrations internal/store/sqlserver/testdata

# What the pages, the vendor's SDKs, the T-SQL lint and the check of the templates depend on. Where CI_BASE names a commit
# and none of it differs from that commit, `make check` prints that it skips them.
PAGES_INPUT := Makefile go.mod go.sum internal test/browser test/storybook
SDKCHECKS_INPUT := Makefile go.mod go.sum deploy/alerts internal/condition internal/events internal/fault test/emulators test/sdkchecks
SQLLINT_INPUT := Makefile .sqlfluff test/sqlfluff $(TSQL)
BICEP_INPUT := Makefile go.mod go.sum deploy docs/settings.md functions host.json internal/config internal/store/sqlserver test/bicep
# $(call skips,TARGET,INPUTS) is a shell condition. It is false when git cannot compare.
skips = [ -n "$(CI_BASE)" ] && git diff --quiet "$(CI_BASE)" -- $(2) && echo "$(1): SKIPPED, nothing that it depends on differs from $(CI_BASE)"

.DEFAULT_GOAL := help
.PHONY: help run servers ctl compiled test check race e2e pages storybook lint sqllint bicep vuln mutants faults fuzz bench stage azure publish update packages azurite servicebus browser sdkchecks fetched clean

help: ## Show this help.
	@grep -hE '^[a-z0-9]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9]+):.*## /  make \1\t/' | expand -t 18

run: compiled ## Start everything locally and show the main job and an outage. ONCE=1: end after the check. OUTAGE=0: no outage. SQL_CONNECTION=sqlserver://...: on that server. MAPPING=FILE: with its columns.
	@exec bin/local run # no shell in between: the stack ends when make does

servers: compiled ## Start Azurite, Cosmos DB and Service Bus emulators and SQL without a host, for `func start` in .stage; SQL_CONNECTION and MAPPING as above.
	@exec bin/local servers

ctl: ## Build bin/sqlwriterctl, the operators' tool: some seconds after `make run`.
	$(GO) build -o bin/ -ldflags "-X main.version=$$(git describe --tags --always --dirty 2>/dev/null) -X main.revision=$$(git rev-parse HEAD 2>/dev/null)" ./cmd/sqlwriterctl # the flags of make run: nothing is compiled twice

compiled:
	@GO='$(GO)' sh cmd/local/compile.sh

test: ## Run the tests of every package, in two minutes: random histories, crash tests and scenarios in a small size (-short), of the whole stack three end-to-end tests.
	@$(MAKE) --no-print-directory -j3 azurite servicebus $(if $(wildcard test/emulators/azurite/node_modules),,packages) # npm waits for the network
	$(GO) test -short $(WAITING) -timeout 10m $(TESTED) $$($(GO) list ./... | grep -v '/test/e2e$$')
	$(GO) test -run '$(SMOKES)' -timeout 5m $(TESTED) ./test/e2e

check: sqllint bicep lint race e2e pages sdkchecks mutants vuln ## What `make test` leaves out: lint, templates, race, e2e, pages, the vendor's SDKs, the mutants, known vulnerabilities (installs its tools into .tools; needs Python 3 and a C compiler).

race: export CGO_ENABLED := 1
race: azurite servicebus ## The packages that start goroutines, in the size of `make test`, with the race detector (but for long ones that run one goroutine at a time). Needs a C compiler.
	$(GO) test -short $(RACE) $(WAITING) -skip '$(ALONE)' -timeout 15m $(TESTED) $(filter-out ./cmd/sqlwriterctl,$(RACED))
	$(GO) test -short $(RACE) -run 'Doctor|Report' -timeout 5m $(TESTED) ./cmd/sqlwriterctl # its other commands do one thing at a time

# End-to-end tests wait for deadlines; what needs processors only runs beside them, and leaves them the processors.
e2e: azurite servicebus browser ## The whole stack end to end (test/e2e but for what `make test` runs of it, cmd/local), and comparisons, crash tests, scenarios and others in their daily size. SEED=n: random histories from there.
	@echo "random histories begin at seed $(SEED): SEED=$(SEED) make e2e repeats them"
	@{ nice -n 10 $(GO) test -timeout 20m $(TESTED) ./internal/reconcile ./test/comparison ./test/crashtest ./test/scenario && \
	nice -n 10 $(GO) test -timeout 10m -run '$(DAILY)' $(TESTED) ./internal/commit ./internal/app ./internal/invoice ./internal/store/sqlite ./handlers ./cmd/sqlwriterctl; } & daily=$$!; \
	$(GO) test -timeout 20m -skip '$(SMOKES)' $(TESTED) ./test/e2e ./cmd/local; code=$$?; wait $$daily && exit $$code

pages: browser ## The operators' pages in a headless Chromium: axe-core, keyboard, phone, without JavaScript, polling (Linux on x86_64).
	@$(call skips,pages,$(PAGES_INPUT)) || $(GO) test -count=1 -timeout 20m $(TESTED) ./test/browser

storybook: browser ## Write every page in every state into .storybook (index.html), with pictures; and the pictures of docs/pages.md.
	$(GO) test ./test/browser -run '^TestStorybook$$' -count=1 -timeout 20m -storybook $(CURDIR)/.storybook

# -count=1: what Node reads is unknown to Go's cache of test results.
SDKCHECKS := $(wildcard test/sdkchecks/*/package-lock.json)
sdkchecks: servicebus $(SDKCHECKS:package-lock.json=node_modules/.package-lock.json) ## The vendor's JavaScript SDKs against the emulators, and its parser of KQL over deploy/alerts.
	@$(call skips,sdkchecks,$(SDKCHECKS_INPUT)) || $(GO) test -count=1 -timeout 10m $(TESTED) ./test/sdkchecks/...
test/sdkchecks/%/node_modules/.package-lock.json: test/sdkchecks/%/package-lock.json
	cd test/sdkchecks/$* && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error

lint: $(GOLANGCI) ## golangci-lint with the chosen linters (.golangci.yml gives a reason for each).
	$(GOLANGCI) run ./...

sqllint: $(SQLFLUFF)/installed ## sqlfluff on all T-SQL, as it is sent (.sqlfluff gives a reason for each exception).
	@$(call skips,sqllint,$(SQLLINT_INPUT)) || $(SQLFLUFF)/bin/python test/sqlfluff/lint.py lint --ignore-local-config --config .sqlfluff --disable-progress-bar $(TSQL)

bicep: $(BICEP)/installed ## The templates for Azure against the vendor's types and what the app needs. No compiler of Bicep sees them.
	@$(call skips,bicep,$(BICEP_INPUT)) || $(GO) test -count=1 -timeout 10m $(TESTED) ./test/bicep

vuln: $(GOVULNCHECK) ## Known vulnerabilities in what we call. VULN=required: fail when it cannot look.
	@$(GOVULNCHECK) ./...; code=$$?; \
	if [ $$code -eq 3 ] || { [ $$code -ne 0 ] && [ '$(VULN)' = required ]; }; then exit 1; fi; \
	if [ $$code -ne 0 ]; then echo "vuln: SKIPPED, govulncheck could not do its work (exit $$code, its reason stands above)"; fi

mutants: ## Break each rule of the product on purpose: each mutant must be killed by the test that is named for it.
	@$(GO) run ./test/mutants

faults: azurite servicebus ## Long fault campaigns: all pairs of faults, FAULTTIME (10m) of histories, real minutes of outages, a changed mapping over 100,000 lines; on SQLWRITER_TEST_SQLSERVER too when it is set.
	$(GO) test ./test/crashtest -run '^(TestEverySingleFault|TestPairsOfFaults)$$' -pairs 1 -count=1 -timeout 8h -v
	$(GO) test ./test/crashtest -run '^TestInterleaved$$' -duration $(FAULTTIME) -count=1 -timeout 0 -v
	$(GO) test ./test/crashtest -run '^TestInterleavedRuns$$' -runseeds 2000 -count=1 -timeout 0 -v
	SQLWRITER_FAULTS=1 $(GO) test ./test/e2e -run '^TestCampaign' -count=1 -timeout 30m -v
	SQLWRITER_FAULTS=1 $(GO) test ./internal/commit -run '^TestWhoIsGivenUp$$' -count=1 -timeout 30m -v
	SQLWRITER_MAPPED=100000 $(GO) test ./test/comparison -run '^TestAChangedMapping$$' -count=1 -timeout 60m -v

fuzz: ## Fuzz the envelope and message decoders and the document reader, FUZZTIME (30s) each.
	$(GO) test ./internal/invoice -run '^$$' -fuzz FuzzRead -fuzztime $(FUZZTIME)
	$(GO) test ./handlers -run '^$$' -fuzz FuzzEnvelope -fuzztime $(FUZZTIME)
	$(GO) test ./handlers -run '^$$' -fuzz FuzzMessage -fuzztime $(FUZZTIME)

bench: ## Measure the write beside its rivals and the statements of runs and reports with a million rows (writes docs/figures.md), then the benchmarks of reading and writing.
	$(GO) test ./test/bench -run '^TestBench$$' -count=1 -timeout 20m -v -page $(CURDIR)/docs/figures.md
	$(GO) test ./internal/store/sqlite -run '^TestMillion$$' -count=1 -timeout 20m -v -million $(CURDIR)/docs/figures.md
	$(GO) test -run '^$$' -bench . -benchmem ./internal/invoice ./internal/store/sqlite ./handlers

stage: ## Lay out .stage exactly as the Functions host wants its script root; beside `make servers` with settings that point to them.
	$(GO) run ./cmd/stage -state .local

# typed gives these variables to a program as they were typed after make, and none that the environment happens to have.
typed = $(foreach X,$1,$(if $(filter command,$(origin $X)),$X='$(subst ','\'',$($X))'))
azure: ctl ## Make or change the environment of a resource group, by the file GROUP.bicepparam (docs/deploy.md): make azure GROUP=name. Needs az. At the first time PARAMS=FILE and SQL_ADMIN=ENTRA-GROUP; later MODE and LEASE_PREFIX, YES=1.
	@$(GO) run ./cmd/azure deploy $(call typed,GROUP PARAMS SQL_ADMIN MODE LEASE_PREFIX YES)

publish: ctl ## Publish to a function app, and look at it with sqlwriterctl doctor: make publish APP=name (needs func, git to name the build, az). MIGRATED=SET: where the database cannot be asked.
	@$(GO) run ./cmd/azure publish $(call typed,APP MIGRATED)

update: ## Rewrite what is produced from tables: goldens, docs/rules.md, docs/errors.md, docs/events.md, docs/findings.md, docs/settings.md, docs/api.md, openapi.json, the sample settings.
	$(GO) test ./internal/events ./internal/invoice ./internal/ops ./internal/reconcile ./internal/store/sqlite ./internal/store/sqlserver ./internal/config ./internal/opsapi ./handlers ./cmd/azure ./cmd/sqlwriterctl ./test/bicep -run 'Golden|Rules|Sample|Produced' -update

packages:
	@$(GO) list -test -export -deps ./... >/dev/null # compiles, links nothing
azurite: test/emulators/azurite/node_modules/.package-lock.json
test/emulators/azurite/node_modules/.package-lock.json: test/emulators/azurite/package-lock.json
	cd test/emulators/azurite && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error

SERVICEBUS := test/emulators/servicebus
servicebus: $(SERVICEBUS)/node_modules/.package-lock.json
$(SERVICEBUS)/node_modules/.package-lock.json: $(SERVICEBUS)/package-lock.json
	cd $(SERVICEBUS) && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error

# The browser of the npm package runs on Linux on x86_64 alone; elsewhere the tests that need it are skipped. The variable makes them fail
# here if it is absent.
BROWSER := $(TOOLS)/browser
ifeq ($(shell uname -sm),Linux x86_64)
export SQLWRITER_TEST_BROWSER := $(BROWSER)
browser: $(BROWSER)/chromium
else
browser:
	@echo "browser: SKIPPED, it needs Linux on x86_64, and this is $$(uname -sm)"
endif
$(BROWSER)/chromium: test/browser/package-lock.json test/browser/install.mjs
	cd test/browser && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error
	node test/browser/install.mjs $(BROWSER)

$(GOLANGCI):
	GOBIN=$(TOOLS) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
$(GOVULNCHECK):
	GOBIN=$(TOOLS) $(GO) install golang.org/x/vuln/cmd/govulncheck@v1.8.0

# By the interpreter and never by its scripts, which hold absolute paths: a checkout may be moved.
$(SQLFLUFF)/installed $(BICEP)/installed: $(TOOLS)/%/installed: test/%/requirements.txt
	@command -v $(PYTHON) >/dev/null || { echo "make check needs Python 3.10 or later for T-SQL and templates, and $(PYTHON) is absent"; exit 1; }
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

# What `make test` and `make check` install and compile, side by side where make has jobs: CI begins so.
fetched: $(GOLANGCI) $(GOVULNCHECK) $(SQLFLUFF)/installed $(BICEP)/installed $(SDKCHECKS:package-lock.json=node_modules/.package-lock.json) azurite servicebus browser packages

clean: ## Remove what was built or kept: bin, .stage, .tools, .local, .storybook.
	rm -rf bin .stage .tools .local .storybook
