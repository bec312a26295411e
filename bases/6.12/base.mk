# SPDX-License-Identifier: GPL-2.0
#
# Base 6.12: what differs from base to base.

# Debian's package that holds the source.
SOURCE_PACKAGE = linux-source-6.12

# Its versions that the series was tested on, the best first.
VERIFIED = 6.12.117-1~deb12u1

# Tasks that exit write no PERF_RECORD_READ, attr.inherit_stat or not.
BASE_SKIPS = read_inherit_stat:*

include $(dir $(lastword $(MAKEFILE_LIST)))../selftests.mk
