# SPDX-License-Identifier: GPL-2.0
#
# Base 7.3: what differs from base to base.

# Debian's package that holds the source.
SOURCE_PACKAGE = linux-source-7.3

# Its versions that the series was tested on, the best first.
VERIFIED = 7.3.4-1~bpo13+1

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
	read_inherit_stat:*.exit_elsewhere \
	read_inherit_stat:*.never_there \
	read_inherit_stat:*.storm

include $(dir $(lastword $(MAKEFILE_LIST)))../selftests.mk

# PERF_RECORD_LOST takes a task of its own there. Without the support nothing pauses.
FIXES_FAILS += read_inherit_stat:*.lost_names_task
PRE_FAILS += read_inherit_stat:*.lost_names_task
