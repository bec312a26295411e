# SPDX-License-Identifier: GPL-2.0
#
# Base 7.3: what differs from base to base.

# Debian's package that holds the source.
SOURCE_PACKAGE = linux-source-7.3

# The suites of the mirror that have it: none of this release does.
SOURCE_SUITES = trixie-backports sid

# Debian 12's sparse is too old for it: its make runs none.
SPARSE = no
