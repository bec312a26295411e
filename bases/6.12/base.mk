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

# What the fixes mend, and the freezing pause.
STOCK_FAILS = $(NO_PMU_FAILS) \
	pause_freeze:* \
	pause_state:*.context_is_locked \
	pause_state:*.fdinfo_* \
	pause_state:*backward_*.lost_comes_before \
	pause_state:*.stream_of_child \
	software_samples:*
STOCK_SKIPS = $(NO_PMU_SKIPS)
# A record that turns up after the pause, if one is in flight in just these tries: pass or fail.
STOCK_RACES = lossless:lossless.counted.swaps

# Without the support, whatever writes backward or pauses.
PRE_FAILS = $(NO_PMU_FAILS) \
	lossless:* \
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
	pause_cost:* \
	pause_freeze:* \
	pause_output:* \
	pause_state:* \
	software_samples:* \
	write_direction:*backward*
PRE_SKIPS = $(NO_PMU_SKIPS)
