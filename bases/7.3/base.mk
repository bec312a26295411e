# SPDX-License-Identifier: GPL-2.0
#
# Base 7.3: what differs from base to base.

# Debian's package that holds the source.
SOURCE_PACKAGE = linux-source-7.3

# All packages whose kernels this base covers.
PACKAGES = linux-source-7.3 linux-source-7.2

# The version that the patches are made on, in whatever packaging of Debian's: they apply to it with all their context.
MADE_ON = 7.3.4-1

# The versions that the series was verified on (see there), the newest first.
VERIFIED := $(shell sed -n 's/^\([0-9][^ ]*\) .*/\1/p' $(dir $(lastword $(MAKEFILE_LIST)))versions | sort -rV)

# The suites of the mirror that have it: none of this release does.
SOURCE_SUITES = trixie-backports sid

# Debian 12's sparse is too old for it: its make runs none.
SPARSE = no

# Holes of this base alone.
BASE_FAILS = map_twice:* \
	map_access:*.ends_with_the_mapping \
	map_access:*.proc_mem \
	map_access:*.proc_mem_across_pages \
	map_access:*.ptrace_peek \
	read_inherit_stat:*.all_at_once \
	read_inherit_stat:*.cpu_offline \
	read_inherit_stat:*.exec_elsewhere \
	read_inherit_stat:*.exit_elsewhere \
	read_inherit_stat:*.group_in_pieces \
	read_inherit_stat:*.never_there \
	read_inherit_stat:*.storm

# A fix that builds on one before it: it calls a function of one-cpu-at-a-time.
NOT_ALONE = refuse-oversized-samples

include $(dir $(lastword $(MAKEFILE_LIST)))../selftests.mk

# PERF_RECORD_LOST takes a task of its own there. Without the support nothing pauses.
FIXES_FAILS += read_inherit_stat:*.lost_names_task
PRE_FAILS += read_inherit_stat:*.lost_names_task
