# SPDX-License-Identifier: GPL-2.0
#
# Base 6.12: what differs from base to base.

# Debian's package that holds the source.
SOURCE_PACKAGE = linux-source-6.12

# All packages whose kernels this base covers.
PACKAGES = linux-source-6.12

# The version that the patches are made on, in whatever packaging of Debian's: they apply to it with all their context.
MADE_ON = 6.12.117-1

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

# A fix that builds on one before it: it calls a function of one-cpu-at-a-time.
NOT_ALONE = refuse-oversized-samples

include $(dir $(lastword $(MAKEFILE_LIST)))../selftests.mk
