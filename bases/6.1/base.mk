# SPDX-License-Identifier: GPL-2.0
#
# Base 6.1: what differs from base to base.

# Debian's package that holds the source.
SOURCE_PACKAGE = linux-source-6.1

# All packages whose kernels this base covers.
PACKAGES = linux-source-6.1

# The version that the patches are made on, in whatever packaging of Debian's: they apply to it with all their context.
MADE_ON = 6.1.192-2

# The versions that the series was verified on (see there), the newest first.
VERIFIED := $(shell sed -n 's/^\([0-9][^ ]*\) .*/\1/p' $(dir $(lastword $(MAKEFILE_LIST)))versions | sort -rV)

# Tasks that exit write no PERF_RECORD_READ, attr.inherit_stat or not.
BASE_SKIPS = read_inherit_stat:read_inherit_stat.* \
	map_twice:map_twice.aux_of_redirected

# Holes of this base alone. Tasks that exec do write one, wherever they are.
BASE_FAILS = read_inherit_stat:read_on_exec.all_at_once \
	read_inherit_stat:read_on_exec.exec_elsewhere \
	read_inherit_stat:read_on_exec.never_there \
	read_inherit_stat:read_on_exec.storm

# Pages that stay charged, if two tasks meet.
BASE_RACES = map_twice:map_twice.unmapped_by_two

# A fix that builds on those before it: it calls a function of one-cpu-at-a-time, and adds up what fit-group-values
# leaves in the sample's data.
NOT_ALONE = refuse-oversized-samples

include $(dir $(lastword $(MAKEFILE_LIST)))../selftests.mk

# All of a sample is prepared for each event anew, but for a callchain that BPF asked for.
PRE_FAILS := $(filter-out software_samples:%,$(PRE_FAILS))
STOCK_FAILS := $(filter-out software_samples:%,$(STOCK_FAILS))

# No tracepoint tells of the functions that other CPUs are made to call.
POST_SKIPS += $(NO_CALLS_SKIPS)
