# SPDX-License-Identifier: GPL-2.0
#
# Base 6.12: what differs from base to base.

# Debian's package that holds the source.
SOURCE_PACKAGE = linux-source-6.12

# Self-tests that don't pass, as <program>:<case>; * stands for anything. `make check` holds each tree to
# its lists both ways: all cases that they match must end so, all others must pass, and each pattern must
# match something.

# The guest has no PMU, neither for hardware events nor for AUX areas: the same on all trees.
NO_PMU_FAILS = remove_on_exec:*
NO_PMU_SKIPS = mmap:perf_mmap.aux.*

POST_FAILS = $(NO_PMU_FAILS)
POST_SKIPS = $(NO_PMU_SKIPS)

# What the fixes mend.
STOCK_FAILS = $(NO_PMU_FAILS) software_samples:*
STOCK_SKIPS = $(NO_PMU_SKIPS)

# Without the support, whatever writes backward or pauses.
PRE_FAILS = $(STOCK_FAILS) \
	overflow_filter:*backward* \
	overflow_handler:*backward* \
	overwrite_events:* \
	overwrite_nested:* \
	overwrite_read:*backward* \
	overwrite_running:* \
	overwrite_sideband:* \
	overwrite_sizes:* \
	overwrite_stress:* \
	overwrite_walk:overwrite_walk.* \
	overwrite_writable:*backward* \
	pause_output:* \
	write_direction:*backward*
PRE_SKIPS = $(NO_PMU_SKIPS)
