# SPDX-License-Identifier: GPL-2.0
#
# How apt is asked for packages of kernel source: a part of the scripts that do so. They have a folder $tmp and a file
# $log, and $package names the package.

# apt ARGUMENTS...: apt-get for downloads. It drops its rights for them by default, and the user that it
# would become can't write our folder.
apt()
{
	apt-get -q -o APT::Sandbox::User=root -o APT::Update::Error-Mode=any "$@"
}

# mirror_suites LABEL SUITE...: lines for apt by which it reads these suites of the mirror of this label. Fails if apt
# knows none.
mirror_suites()
{
	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' \
		"Label: $1" 2> "$log" | head -n 1)
	[ -n "$mirror" ] || return 1
	shift
	for suite; do
		echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main"
	done
}

# apt_sources: set $apt_dirs to apt options by which it finds the base's package. Nothing but its own
# lists for a package of this release; lists, cache and sources below $tmp for one of another suite of
# the same mirror, so that nothing of the system's changes.
apt_sources()
{
	apt_dirs=
	suites=$(base_var SOURCE_SUITES)
	[ -n "$suites" ] || return 0
	mkdir -p "$tmp/apt/lists/partial" "$tmp/apt/archives/partial"
	# shellcheck disable=SC2086
	mirror_suites Debian $suites > "$tmp/apt/sources.list" ||
		die "apt knows no mirror of Debian to ask for $package: run apt-get update"
	apt_dirs="-o Dir::Etc::SourceList=$tmp/apt/sources.list -o Dir::Etc::SourceParts=/dev/null"
	apt_dirs="$apt_dirs -o Dir::State=$tmp/apt -o Dir::State::Lists=$tmp/apt/lists -o Dir::Cache=$tmp/apt"
	# shellcheck disable=SC2086
	quiet "$log" apt $apt_dirs update ||
		die "can't read the lists of $suites: check the network: $(why "$log")"
}

# offered: the versions that apt's lists have and its preferences don't forbid, the newest first.
offered()
{
	# shellcheck disable=SC2086
	apt-cache $apt_dirs policy "$package" 2> "$log" |
		awk '/^( \*\*\*|    ) [^ ]/ && $NF >= 0 { print $(NF - 1) }' | sort -rVu
}

# alone VERSION: preferences by which apt offers this version of the package and no other.
alone()
{
	printf '%s\n' "Package: $package" "Pin: version $1" 'Pin-Priority: 990' '' \
		"Package: $package" 'Pin: release *' 'Pin-Priority: -1' ''
}
