# SPDX-License-Identifier: GPL-2.0
#
# Base 6.1: what differs from base to base.

# Debian's package that holds the source.
SOURCE_PACKAGE = linux-source-6.1

# Its versions that the series was tested on, the best first.
VERIFIED = 6.1.192-2

# Tasks that exit write no PERF_RECORD_READ, attr.inherit_stat or not.
BASE_SKIPS = read_inherit_stat:*

# Fixes whose lines are beside those of a fix before them: they apply behind it only.
NOT_ALONE = refuse-oversized-samples

include $(dir $(lastword $(MAKEFILE_LIST)))../selftests.mk

# All of a sample is prepared for each event anew, but for a callchain that BPF asked for.
PRE_FAILS := $(filter-out software_samples:%,$(PRE_FAILS))
STOCK_FAILS := $(filter-out software_samples:%,$(STOCK_FAILS))

# No tracepoint tells of the functions that other CPUs are made to call.
POST_SKIPS += $(NO_CALLS_SKIPS)
