# SPDX-License-Identifier: GPL-2.0
#
# The front door: each target is one of scripts/, see there (scripts/<name> -h).

BASE ?= 6.12
BASE_FROM := $(origin BASE)
TREE ?= post
KDIR ?=
PACKAGE ?=
AFTER ?= 10
TRIGGER ?=
CPUS ?= 4
TIMEOUT ?= 120
ICOUNT ?=
PROG ?=
ARGS ?=
ARCH ?= x86_64
# What it may be, for help.
ARCHS = $(shell sed -n "s/^ARCHS='\(.*\)'$$/\1/p" scripts/lib.sh)
ONLY ?=
CONFIG ?=
PART ?=
REV ?= HEAD
VERSION ?= 1
OLD ?=
SIGNOFF ?=
FROM ?= HEAD
FORM ?= pre
TOPIC ?=
CHANGES ?=
COMPILE ?=
TRAILERS ?=
BRANCH ?=
export BRANCH COMPILE FROM FORM TOPIC TRAILERS CHANGES REV VERSION OLD SIGNOFF BASE TREE KDIR PACKAGE ARCH CONFIG PART AFTER TRIGGER CPUS TIMEOUT ICOUNT ARGS ONLY
MAKEFLAGS += --no-print-directory

.PHONY: help run check check-all check-config tree kernel kunit kselftest model guest bench bench-native \
	edit save port drift flight-recorder selftests-tar series mails bisect broken clean clean-cache
help:
	@echo 'make run              build post, boot it, fly a recorder over a real workload there'
	@echo 'make check            all tests; ends with: N passed, N failed, N skipped'
	@echo 'make check-all        these and all that takes longer, in parts; what passed is not run again'
	@echo 'make check-config     the unit tests and self-tests on kernels of other configurations'
	@echo 'make tree             the kernel tree TREE of BASE, checked out; prints where'
	@echo 'make kernel           its kernel for the guest; prints where'
	@echo 'make kunit            its unit tests, under the kernel'\''s own kunit.py, on ARCH'
	@echo 'make kselftest        its self-tests, in the guest; PROG= some of them'
	@echo 'make selftests-tar    a tarball of them to build and run on another machine; prints where'
	@echo 'make model            the protocols of the pause and of triggers, with Spin'
	@echo 'make guest PROG=path  run programs there as root and exit with their status'
	@echo 'make flight-recorder  build/flight_recorder, for the kernel that runs here'
	@echo 'make series           the patches for git am: build/$(BASE)/series/'
	@echo 'make mails KDIR=path  mails for a kernel tree of yours, and how to send them; TOPIC=name: of one topic'
	@echo 'make mails KDIR=path TOPIC=name BRANCH=b4/name  the same as a branch there, for b4'
	@echo 'make edit             the series as git commits in a work tree of BASE, to change it there'
	@echo 'make save             write these commits back to series/, bases/ and the new files'
	@echo 'make edit FORM=onstock  the topic helpers instead, on stock; make save FORM=onstock writes them'
	@echo 'make port BASE=7.3    carry what changed on 6.12 since the last commit to another base'
	@echo 'make drift            compose the series for all kernel packages that the mirror offers: a table'
	@echo 'make bisect           compile after each patch, for four processors, and run the unit tests'
	@echo 'make broken           each test/broken/*.patch must fail the test that it names'
	@echo 'make bench            what it all costs, in instructions: pre, stock, post side by side'
	@echo 'make bench-native     what a record costs on this processor, in time'
	@echo 'make clean            remove build/;  make clean-cache: remove sources and ccache'
	@echo
	@echo 'BASE=$(BASE)  (of: $(notdir $(patsubst %/base.mk,%,$(wildcard bases/*/base.mk))))'
	@echo 'TREE=$(TREE)  (of: stock fixes pre core post helpers onstock upto-PATCH onstock-PATCH topic-TOPIC)'
	@echo 'KDIR=$(KDIR)  (a kernel tree to use instead of Debian'\''s source)'
	@echo 'PACKAGE=$(PACKAGE)  (a file linux-source-*.deb to use instead of the one that apt finds)'
	@echo 'CONFIG=$(CONFIG)  (of: $(filter-out kernel kunit% $(ARCHS),$(notdir $(basename $(wildcard config/*.config)))))'
	@echo 'PART=$(PART)  (check-all, of: '"$$(scripts/check-all -l)"')'
	@echo 'AFTER=$(AFTER)  (run: seconds until the snapshot)'
	@echo 'TRIGGER=$(TRIGGER)  (run: what ends the second flight, an event or: event if filter)'
	@echo 'PROG=$(PROG) ARGS=$(ARGS)  (guest: programs, and what each is given; kselftest: programs)'
	@echo 'CPUS=$(CPUS) TIMEOUT=$(TIMEOUT) ICOUNT=$(ICOUNT)  (guest: see scripts/guest -h)'
	@echo 'ARCH=$(ARCH)  (kunit: x86_64, i386 or arm64; kernel, guest, kselftest, selftests-tar, check-config: of $(ARCHS))'
	@echo 'TOPIC=$(TOPIC)  (mails, of: '"$$(sed -n 's/^\([a-z-]*\):.*/\1/p' series/topics | grep -v '^core' | xargs)"')'
	@echo 'REV=$(REV) VERSION=$(VERSION) CHANGES=$(CHANGES) OLD=$(OLD) SIGNOFF=$(SIGNOFF) TRAILERS=$(TRAILERS) BRANCH=$(BRANCH)'
	@echo '    (mails: see scripts/mails -h)'
	@echo 'COMPILE=$(COMPILE)  (drift: 1 compiles, too)'
	@echo 'ONLY=$(ONLY)  (broken, drift: of these patches or versions only)'

run check check-all check-config kunit kselftest model broken bisect bench bench-native:
	@scripts/$@ $(if $(filter kunit,$@),$(ARCH)) $(if $(filter kselftest,$@),$(PROG))

edit save port drift:
	@scripts/install-packages
	@scripts/$@

tree:
	@scripts/install-packages
	@scripts/tree -a

kernel:
	@scripts/install-packages
	@scripts/kernel

guest:
	@scripts/install-packages
	@scripts/guest $(PROG)

flight-recorder selftests-tar:
	@scripts/$@

mails:
	@scripts/install-packages git-email libmailtools-perl
	@BASE=$(if $(filter file,$(BASE_FROM)),,$(BASE)) scripts/mails

series:
	@scripts/install-packages
	@scripts/write-series

clean:
	@scripts/clean

clean-cache:
	@scripts/clean -c
