# SPDX-License-Identifier: GPL-2.0
#
# What the scripts share: where things are, one-line errors, locks, quiet commands.
# Sourced by each of them, never run.

set -eu

# A kernel build must not see the options of the make or of the shell that called us.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES O KBUILD_OUTPUT KBUILD_KCONFIG CROSS_COMPILE LLVM KCFLAGS KAFLAGS
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_EXTERNAL_DIFF GIT_DIFF_OPTS GIT_CONFIG_COUNT GIT_CONFIG_PARAMETERS
unset CDPATH
export LC_ALL=C

ROOT=$(cd "$(dirname "$0")/.." && pwd -P)
CACHE=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/perf-overwrite
# What isn't cached yet is not preprocessed for ccache's sake: it takes the headers from what the compiler tells make,
# which is a quarter of a first build.
export CCACHE_DEPEND=1
MAIN_BASE=6.12
BASE=${BASE:-$MAIN_BASE}
TREE=${TREE:-post}
KDIR=${KDIR:-}
PACKAGE=${PACKAGE:-}
CONFIG=${CONFIG:-}
ARCH=${ARCH:-x86_64}
# Processors that guests can have, with a config/<ARCH>.config each.
ARCHS='x86_64 i386 arm64 arm s390'
# The version of clang, lld and what belongs to them: Debian 12's default ones are too old.
LLVM_VERSION=19

# The topics of the series, in the order of series/topics. Those of FIXES apply to pre and to stock. On pre
# CORE follows, the support itself; on stock HELPERS, which lead to the same tree. BEYOND is the same on both.
FIXES='fixes mapping'
HELPERS='helpers'
CORE='core'
TOPICS=$(sed -n 's|^\([a-z][a-z-]*\):.*|\1|p' "$ROOT/series/topics" | paste -sd' ')
BEYOND=
for topic in $TOPICS; do
	case " $FIXES $HELPERS $CORE " in *" $topic "*) ;; *) BEYOND="${BEYOND:+$BEYOND }$topic" ;; esac
done
ON_PRE="$FIXES $CORE $BEYOND"
ON_STOCK="$FIXES $HELPERS $BEYOND"
# The last of the helpers: white space and comments, by which stock differs from core. It is never mailed.
RESIDUE=white-space-and-comments

# die TEXT: one line on stderr, then out. What is wrong comes first, what to do second.
die()
{
	echo "error: $*" >&2
	exit 1
}

say()
{
	echo "$*" >&2
}

# usage: print the header comment of the calling script, from its purpose on.
usage()
{
	sed -n '3,/^[^#]/{/^#/!q;s/^# \{0,1\}//p;}' "$0"
}

# quiet LOG COMMAND...: the command's output goes to LOG; returns its status.
quiet()
{
	quiet_log=$1
	shift
	mkdir -p "$(dirname "$quiet_log")"
	"$@" > "$quiet_log" 2>&1
}

# run_past_int3 ERRORS COMMAND...: the command, whose errors come to the file ERRORS; once more if a guest ended by what
# is QEMU's fault and not the kernel's, if it is gone the second time: see scripts/guest.
run_past_int3()
{
	guest_errors=$1
	shift
	"$@"
	if grep -q 'Oops: int3' "$guest_errors"; then
		say "  once more after: $(tail -n 1 "$guest_errors")"
		"$@"
	fi
}

# why LOG: the line of a log that says best why it ended, and whether the disk is full.
why()
{
	why_line=$(grep -iE 'error|failed|cannot|unable|no space|fatal' "$1" 2>/dev/null | tail -n 1)
	[ -n "$why_line" ] || why_line=$(tail -n 1 "$1" 2>/dev/null)
	why_free=$(df -Pk "$1" 2>/dev/null | awk 'NR == 2 { print $4 }')
	if [ "${why_free:-999999}" -lt 10000 ]; then
		echo "the disk is full, free some space ($why_line)"
	else
		echo "$why_line (all of it: $1)"
	fi
}

# with_progress LABEL COUNT_COMMAND COMMAND...: run COMMAND; now and then say how far it is. On a
# terminal the line is rewritten in place, elsewhere there is one line every half minute.
with_progress()
{
	progress_label=$1
	progress_count=$2
	shift 2
	progress_start=$(date +%s)
	(
		trap - EXIT
		progress_step=30
		[ ! -t 2 ] || progress_step=2
		progress_n=0
		while sleep 1; do
			progress_n=$((progress_n + 1))
			[ $((progress_n % progress_step)) -eq 0 ] || continue
			progress_line="  $progress_label: $(eval "$progress_count")"
			progress_line="$progress_line, $(elapsed "$progress_start")"
			if [ -t 2 ]; then
				printf '\r%s\033[K' "$progress_line" >&2
			else
				echo "$progress_line" >&2
			fi
		done
	) &
	progress_pid=$!
	progress_rc=0
	"$@" || progress_rc=$?
	stop_progress
	return $progress_rc
}

stop_progress()
{
	[ -n "${progress_pid:-}" ] || return 0
	kill "$progress_pid" 2>/dev/null || true
	wait "$progress_pid" 2>/dev/null || true
	progress_pid=
	[ ! -t 2 ] || printf '\r\033[K' >&2
}

# elapsed START: the time since then, as 1m05s.
elapsed()
{
	elapsed_s=$(($(date +%s) - $1))
	printf '%dm%02ds' $((elapsed_s / 60)) $((elapsed_s % 60))
}

# at_exit COMMAND: run on every way out, Ctrl-C included; the shell alone would skip it then.
at_exit()
{
	AT_EXIT="$1; ${AT_EXIT:-}"
	# shellcheck disable=SC2064
	trap "stop_progress; $AT_EXIT" EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
}

# lock FD FILE: hold FILE until the script ends. A script that we call has it through us.
lock()
{
	case " ${HELD_LOCKS:-} " in
	*" $2 "*) return 0 ;;
	esac
	mkdir -p "$(dirname "$2")" || die "can't make $(dirname "$2"): check its permissions"
	eval "exec $1> \"\$2\"" || die "can't write $2: check its permissions"
	if ! flock -n "$1"; then
		say "waiting for another run to finish (it holds $2)"
		flock "$1"
	fi
	HELD_LOCKS="${HELD_LOCKS:-} $2"
	export HELD_LOCKS
}

bases()
{
	(cd "$ROOT/bases" && for d in */; do [ ! -e "$d/base.mk" ] || printf '%s ' "${d%/}"; done)
}

# base_var NAME: a variable of the base's base.mk, white space squeezed.
base_var()
{
	make -s -f "$ROOT/bases/$BASE/base.mk" --eval='base-var: ; @printf "%s\n" "$(strip $('"$1"'))"' \
		base-var
}

# failed_expectations LOG: what unit tests said that failed, by four blanks to the right, for scripts/check.
failed_expectations()
{
	grep -a -A 6 'FAILED at ' "$1" | head -n 60 | sed 's/^ */    /'
}

# unit_skips: the unit tests that must skip on ARCH as bases/selftests.mk lists them, as one regular expression.
unit_skips()
{
	base_var UNIT_SKIPS | sed 's/[.]/[.]/g; s/\*/.*/g; s/ /|/g'
}

# base_of PACKAGE: the base that covers its kernels.
base_of()
{
	for b in $(bases); do
		case " $(BASE=$b base_var PACKAGES) " in *" $1 "*) echo "$b"; return ;; esac
	done
	return 1
}

# configs: the variants of the guest's kernel that have a fragment of their own. Those with a line
# `# arch: name...` are for these processors only.
configs()
{
	(cd "$ROOT/config" && for f in *.config; do
		case " $ARCHS kernel " in *" ${f%.config} "*) continue ;; esac
		case "$f" in kunit*.config) continue ;; esac
		of=$(sed -n 's/^# arch: //p' "$f")
		case " ${of:-$ARCH} " in *" $ARCH "*) printf '%s ' "${f%.config}" ;; esac
	done)
}

# fault_configs: those of them that look for faults. The others measure.
fault_configs()
{
	configs | sed 's/bench //; s/gcov //'
}

# config_lines FIELD: what the fragment of CONFIG says in lines `# <field>: ...`.
config_lines()
{
	[ -z "$CONFIG" ] || sed -n "s/^# $1: //p" "$ROOT/config/$CONFIG.config"
}

# kernel_fragments: the fragments of the guest's kernel, the common one, what ARCH needs, and what the base
# changes of them.
kernel_fragments()
{
	echo "$ROOT/config/kernel.config"
	# It says what differs from the other.
	[ "$ARCH" != i386 ] || echo "$ROOT/config/x86_64.config"
	echo "$ROOT/config/$ARCH.config"
	for fragment in kernel "$ARCH"; do
		[ ! -e "$ROOT/bases/$BASE/$fragment.config" ] || echo "$ROOT/bases/$BASE/$fragment.config"
	done
}

# arch_packages: the packages by which what runs on ARCH is built and emulated, beyond those for x86_64.
arch_packages()
{
	case "$ARCH" in
	i386) echo gcc-i686-linux-gnu libc6-dev-i386-cross ;;
	arm64) echo gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-system-arm ;;
	arm) echo gcc-arm-linux-gnueabihf libc6-dev-armhf-cross qemu-system-arm ;;
	s390) echo gcc-s390x-linux-gnu libc6-dev-s390x-cross qemu-system-misc ;;
	esac
}

# install_for_arch [PACKAGE...]: the packages that ARCH needs beyond x86_64's, and these; most often none.
install_for_arch()
{
	# shellcheck disable=SC2046
	set -- $(arch_packages) "$@"
	[ $# -eq 0 ] || "$ROOT/scripts/install-packages" "$@"
}

# x86_64_only: of a script that knows no other processor.
x86_64_only()
{
	[ "$ARCH" = x86_64 ] || die "ARCH=$ARCH: scripts/${0##*/} is for x86_64 only"
}

# maintainer_files: what get_maintainer.pl needs of a kernel tree, beside the files that mails touch.
maintainer_files()
{
	printf '%s\n' MAINTAINERS scripts/get_maintainer.pl
}

# kernel_version DIR: VERSION.PATCHLEVEL of a kernel tree, empty if it isn't one.
kernel_version()
{
	sed -n 's/^VERSION = \([0-9]*\)$/\1/p; s/^PATCHLEVEL = \([0-9]*\)$/.\1/p' \
		"$1/Makefile" 2>/dev/null | head -n 2 | tr -d '\n'
}

# use_base: check BASE, TREE, KDIR, PACKAGE, ARCH and CONFIG and set what follows from them:
#   KEY   names the source: the base, or the base and the folder or version that KDIR or PACKAGE names
#   REPO  the git repository of its trees;  OUT  what is generated for it
#   TREE_WORK  what is generated for TREE;  WORK  the same, or for another ARCH, or for its variant CONFIG
#   SRCARCH, CROSS  the kernel's folder of ARCH, and the prefix of its compiler
use_base()
{
	case "$ROOT" in
	*[[:space:]:]*) die "kernels don't build in a path with blanks or colons: move $ROOT" ;;
	esac
	if [ -n "$PACKAGE" ]; then
		[ -z "$KDIR" ] || die "both KDIR and PACKAGE name a source: leave one out"
		[ -r "$PACKAGE" ] || die "PACKAGE=$PACKAGE can't be read: name a file linux-source-*.deb"
		PACKAGE=$(readlink -f "$PACKAGE")
		package_is=$(dpkg-deb -W --showformat '${Package} ${Version}' "$PACKAGE" 2> /dev/null |
			tr '~:' '__') || package_is=
		case "$package_is" in
		linux-source-?*' '?*) ;;
		*) die "PACKAGE=$PACKAGE is no package of kernel source: name a file linux-source-*.deb" ;;
		esac
		BASE=$(base_of "${package_is%% *}") ||
			die "PACKAGE=$PACKAGE is ${package_is%% *}: there are bases for:$(for b in $(bases); do
				BASE=$b base_var PACKAGES; done | sed 's/^/ /' | tr -d '\n')"
		KEY=$BASE-${package_is#* }
	elif [ -n "$KDIR" ]; then
		[ -d "$KDIR" ] || die "KDIR=$KDIR is not a folder: name a kernel tree"
		[ -r "$KDIR/Makefile" ] && [ -x "$KDIR" ] ||
			die "KDIR=$KDIR has no readable Makefile: name the top of a kernel tree"
		KDIR=$(cd "$KDIR" && pwd -P)
		[ -n "$(kernel_version "$KDIR")" ] ||
			die "KDIR=$KDIR is not a kernel tree: its Makefile names no VERSION"
		# What we call goes on with the same base.
		case "${KDIR_BASE:-}" in
		"$KDIR "*) BASE=${KDIR_BASE##* } ;;
		*) BASE=$("$ROOT/scripts/nearest") || exit 1 ;;
		esac
		KDIR_BASE="$KDIR $BASE"
		export KDIR_BASE
		KEY=$BASE-kdir-$(printf %s "$KDIR" | sha1sum | cut -c1-8)
	else
		case "$BASE" in
		*/* | .*) die "BASE=$BASE is not a base: there are: $(bases)" ;;
		esac
		[ -r "$ROOT/bases/$BASE/base.mk" ] || die "BASE=$BASE is not a base: there are: $(bases)"
		KEY=$BASE
	fi
	case "$TREE" in
	stock | needed | fixes | pre | core | post | helpers | onstock) ;;
	topic-?*)
		case " $ON_STOCK " in *" ${TREE#topic-} "*) ;; *)
			die "TREE=$TREE: the topics for stock are $ON_STOCK" ;;
		esac ;;
	upto-?* | onstock-?* | alone-?*)
		ls "$ROOT"/series/*/"${TREE#*-}.patch" "$ROOT"/bases/*/"${TREE#*-}.patch" 2> /dev/null |
			grep -q . || die "TREE=$TREE: series/order has no patch ${TREE#*-}" ;;
	broken-?*) [ -r "$ROOT/test/broken/${TREE#broken-}.patch" ] ||
		die "TREE=$TREE: there is no test/broken/${TREE#broken-}.patch" ;;
	*) die "TREE=$TREE is not a tree: there are stock needed fixes pre core post helpers onstock upto-PATCH" \
		"onstock-PATCH alone-PATCH topic-TOPIC broken-NAME" ;;
	esac
	REPO=$CACHE/$KEY/linux.git
	OUT=$ROOT/build/$KEY
	WORK=$OUT/$TREE
	# They differ by a few lines from each other: what one built is good for the next.
	case "$TREE" in
	broken-*) WORK=$OUT/broken ;;
	upto-* | onstock-* | alone-* | topic-*) WORK=$OUT/upto ;;
	esac
	TREE_WORK=$WORK
	case "$ARCH" in
	x86_64) SRCARCH=x86 CROSS='' ;;
	i386) SRCARCH=x86 CROSS=i686-linux-gnu- ;;
	arm64) SRCARCH=arm64 CROSS=aarch64-linux-gnu- ;;
	arm) SRCARCH=arm CROSS=arm-linux-gnueabihf- ;;
	s390) SRCARCH=s390 CROSS=s390x-linux-gnu- ;;
	*) die "ARCH=$ARCH is none of: $ARCHS" ;;
	esac
	[ "$ARCH" = x86_64 ] || WORK=$WORK/$ARCH
	if [ -n "$CONFIG" ]; then
		case " $(configs)" in
		*" $CONFIG "*) ;;
		*) die "CONFIG=$CONFIG is none of those for $ARCH: $(configs)" ;;
		esac
		WORK=$WORK/$CONFIG
	fi
	export BASE TREE KDIR PACKAGE ARCH CONFIG
}

# is_verified VERSION: whether the series was tested on this version of the base's package.
is_verified()
{
	case " $(base_var VERIFIED) " in *" $1 "*) ;; *) return 1 ;; esac
}

# is_made_on: whether the source is the version that the patches are made on, in whatever packaging of Debian's. On
# others some of the lines around a change may be different.
is_made_on()
{
	made_on=$(base_var MADE_ON)
	stock_is=$(repo_git log -1 --format=%s refs/heads/stock)
	case "${stock_is##* }" in "$made_on" | "$made_on~"*) ;; *) return 1 ;; esac
}

# source_name: the base's source: package and version, and whether this version is a verified one.
source_name()
{
	stock_is=$(repo_git log -1 --format=%s refs/heads/stock)
	if [ -n "$KDIR" ]; then
		echo "$stock_is"
	elif is_verified "${stock_is##* }"; then
		echo "$stock_is (verified)"
	else
		echo "$stock_is (not verified)"
	fi
}

# names_source: the line of it by which a command ends.
names_source()
{
	echo "base $BASE: $(source_name)"
}

# git without the user's settings, hooks and attributes: they must not change what we make.
plain_git()
{
	GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_ATTR_NOSYSTEM=1 git "$@"
}

repo_git()
{
	plain_git --git-dir="$REPO" "$@"
}

# unsaved EDIT: whether a folder of scripts/edit has what scripts/save hasn't written, or its commits can't be read.
unsaved()
{
	[ -e "$1/saved" ] && [ -d "$1/linux" ] || return 1
	[ "$(plain_git -C "$1/linux" rev-parse -q --verify HEAD 2> /dev/null)" != "$(cat "$1/saved")" ] ||
		[ -n "$(plain_git -C "$1/linux" status --porcelain --untracked-files=no)" ] ||
		[ -n "$(plain_git -C "$1/linux" ls-files -o)" ]
}

# refuse_unsaved EDIT...
refuse_unsaved()
{
	for edit; do
		! unsaved "$edit" ||
			die "$edit/linux has changes that weren't saved: save them (make save), or remove $edit"
	done
}

# refuse_unsaved_of REPO: for its work trees in whichever clone, as it has their commits.
refuse_unsaved_of()
{
	edits=$(plain_git --git-dir="$1" worktree list --porcelain | sed -n 's|^worktree \(.*\)/linux$|\1|p')
	while read -r edit; do
		refuse_unsaved "$edit"
	done <<-END
		$edits
	END
}

# commit_as_series: have git commit by one name and at one time, so that the same input makes the same commits.
commit_as_series()
{
	GIT_COMMITTER_NAME='perf overwrite series' GIT_COMMITTER_EMAIL='perf-overwrite@localhost'
	GIT_AUTHOR_NAME=$GIT_COMMITTER_NAME GIT_AUTHOR_EMAIL=$GIT_COMMITTER_EMAIL
	GIT_COMMITTER_DATE='2026-01-01T00:00:00Z' GIT_AUTHOR_DATE='2026-01-01T00:00:00Z'
	export GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_COMMITTER_DATE
	export GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE
}

# series_author: set and export $SERIES_NAME and $SERIES_EMAIL, the author of the series' commits: whom git knows here. What
# is called from here on has the same, whatever git knows there.
series_author()
{
	[ -n "${SERIES_NAME:-}" ] || SERIES_NAME=$(git config user.name) || SERIES_NAME='perf overwrite series'
	[ -n "${SERIES_EMAIL:-}" ] || SERIES_EMAIL=$(git config user.email) || SERIES_EMAIL='perf-overwrite@localhost'
	export SERIES_NAME SERIES_EMAIL
}

# edit_branch: the branch of scripts/edit, one for each copy of this repository.
edit_branch()
{
	echo "$(basename "$EDIT")-$(printf %s "$ROOT" | sha1sum | cut -c1-8)"
}

# original TOPIC NAME: the patch for all bases; of pre, which has no topic, that of the main base.
original()
{
	if [ "$2" = pre ]; then echo "bases/$MAIN_BASE/pre.patch"; else echo "series/$1/$2.patch"; fi
}

# own_patches: the files, below $ROOT, that the base's own patches are made of.
own_patches()
{
	(cd "$ROOT" && find "bases/$BASE" "bases/$MAIN_BASE/pre.patch" -name '*.patch' -o -name '*.diff' | sort -u)
}

# patch_sources TOPIC NAME: what this patch of the series is made from on this base: the patch for all bases, and
# bases/<v>/<name>.diff where that is another by a few lines; or the base's own, bases/<v>/<name>.patch.
patch_sources()
{
	if [ -e "$ROOT/bases/$BASE/$2.patch" ]; then
		echo "bases/$BASE/$2.patch"
	else
		original "$1" "$2"
		[ ! -e "$ROOT/bases/$BASE/$2.diff" ] || echo "bases/$BASE/$2.diff"
	fi
}

# patch_file TOPIC NAME: the file of this patch on this base, made from these.
patch_file()
{
	form=
	case " $HELPERS " in *" $1 "*) form=' FORM=onstock' ;; esac
	# shellcheck disable=SC2046
	set -- "$2" $(patch_sources "$1" "$2")
	if [ $# -eq 2 ]; then
		echo "$2"
		return
	fi
	need_tools patch
	made=build/$BASE/patches/$1.patch
	mkdir -p "$ROOT/${made%/*}"
	own_tmp=$(mktemp -d "$ROOT/$made.XXXXXX")
	if (tmp=$own_tmp && from_original "$ROOT/$2" "$ROOT/$3") > "$own_tmp/made"; then
		mv "$own_tmp/made" "$ROOT/$made"
		rm -rf "$own_tmp"
		echo "$made"
	else
		rm -rf "$own_tmp"
		[ "$1" != pre ] || die "$3 doesn't apply to $2 any more: have scripts/save-pre -p print the patch" \
			"before that change, edit it, and let scripts/save-pre keep it"
		die "$3 doesn't apply to $2 any more:" \
			"BASE=$BASE$form FROM=<the commit before the change> scripts/port, and save"
	fi
}

# shorter TOPIC NAME PATCH: whether the difference of this patch to the one for all bases, left in
# $tmp/difference, is shorter than the patch.
shorter()
{
	[ -e "$ROOT/$(original "$1" "$2")" ] &&
		difference "$ROOT/$(original "$1" "$2")" "$3" "$2.patch" > "$tmp/difference" &&
		[ "$(wc -l < "$tmp/difference")" -lt "$(wc -l < "$3")" ]
}

# use_form: check FORM, the form of the series that is edited, and set what follows from it:
#   FORM_TREE    the tree that its commits lead to;  FORM_START  the one that they start from
#   FORM_TOPICS  the topics of its commits;  SAVED_TOPICS  those that scripts/save writes
#   FORM_OPTION  scripts/read-series lists them by;  EDIT  where it is edited
# What follows the helpers is the same as in the other form, and is edited there.
use_form()
{
	case "$FORM" in
	pre)
		FORM_TREE=post FORM_START=pre FORM_TOPICS=$ON_PRE FORM_OPTION='' EDIT=$OUT/edit
		SAVED_TOPICS=$ON_PRE ;;
	onstock)
		FORM_TREE=helpers FORM_START=needed FORM_TOPICS="$FIXES $HELPERS" FORM_OPTION=-o
		SAVED_TOPICS=$HELPERS EDIT=$OUT/edit-onstock ;;
	*) die "FORM=$FORM is no form of the series: there are pre and onstock" ;;
	esac
}

# form_series: the patches of the form, as scripts/read-series prints them.
form_series()
{
	# shellcheck disable=SC2086
	"$ROOT/scripts/read-series" $FORM_OPTION > "$EDIT/read" || exit 1
	awk -v topics="$FORM_TOPICS" 'index(" " topics " ", " " $1 " ")' "$EDIT/read"
}

# edit_inputs: a hash of what scripts/edit makes commits from and scripts/save overwrites.
edit_inputs()
{
	form_series | while read -r topic name files; do
		# shellcheck disable=SC2046,SC2086
		(cd "$ROOT" && echo "$topic $name" && sha1sum $(patch_sources "$topic" "$name") $files) < /dev/null
	done | sha1sum | cut -d' ' -f1
}

# needs TOPIC: the topics that it needs on stock, those that these need included, in the order of ON_STOCK.
needs()
{
	awk -v topic="$1" -v order="$ON_STOCK" '
		function add(t,    i, n, f) {
			n = split(need[t], f, " ")
			for (i = 1; i <= n; i++)
				if (!(f[i] in all)) { all[f[i]]; add(f[i]) }
		}
		{ sub(/#.*/, "") }
		/:/ { split($0, part, ":"); gsub(/[ \t]/, "", part[1]); need[part[1]] = part[2] }
		END {
			add(topic)
			n = split(order, f, " ")
			for (i = 1; i <= n; i++)
				if (f[i] in all) printf "%s ", f[i]
		}' "${TOPICS_FILE:-$ROOT/series/topics}"
}

# merge_trees BASE OURS THEIRS: set $tree to the merge of these commits' trees; if they conflict, which is a
# failure, with the conflicts in it, and $tmp/merge says which.
merge_trees()
{
	root=$(echo base | repo_git commit-tree "$1^{tree}")
	ours=$(echo ours | repo_git commit-tree "$2^{tree}" -p "$root")
	theirs=$(echo theirs | repo_git commit-tree "$3^{tree}" -p "$root")
	merge_rc=0
	repo_git merge-tree --write-tree "$ours" "$theirs" > "$tmp/merge" || merge_rc=1
	tree=$(head -n 1 "$tmp/merge")
	return $merge_rc
}

# touched_paths: what the series touches or adds, on whatever base, and what else stands in the folders
# that it adds most to.
touched_paths()
{
	(cd "$ROOT" && {
		cat series/*/*.patch bases/*/*.patch bases/*/*.diff needs/*.patch | sed -n 's|^[ +]*diff --git a/.* b/||p'
		sed 's/#.*//; s/^[^ ]*//' series/order | tr ' ' '\n' | sed '/^$/d'
		printf '%s\n' Makefile kernel/events arch/x86/events tools/testing/selftests/perf_events
	}) | sort -u
}

# compose_inputs: a hash of all that trees of the base are made from, but for the kernel.
compose_inputs()
{
	# shellcheck disable=SC2046
	(cd "$ROOT" && {
		cat scripts/tree scripts/apply.sh $(own_patches) needs/*.patch series/*/*.patch series/order series/topics
		"$ROOT/scripts/read-series" | cut -d' ' -f3- | xargs cat
	}) | sha1sum | cut -c1-40
}

# composes REPO COMMIT: whether fixes, post and onstock can be made with this commit of this repository as
# stock, and post and onstock are the same; prints why not.
composes()
{
	post='' onstock=''
	for tree in fixes post onstock; do
		made=$(TREE=$tree "$ROOT/scripts/tree" -g "$1" -s "$2" 2>&1) || {
			refused=$(echo "$made" | sed -n 's/^error: //p' | tail -n 1 |
				sed -E "s/ doesn't apply to .*: error: (patch failed: )?/ fails at /; s/; give a kernel.*//")
			echo "${refused:-$tree can't be made: $(echo "$made" | tail -n 1)}"
			return 1
		}
		eval "$tree=\$made"
	done
	plain_git --git-dir="$1" diff --quiet "$post" "$onstock" || {
		echo "post and onstock differ"
		return 1
	}
}

# without_comments: the C on stdin.
without_comments()
{
	gcc -fpreprocessed -dD -E -P -w -x c - 2> /dev/null
}

# landing REPO FROM TO [-- PATH...]: which lines become which, in which function of which file.
landing()
{
	landing_in=$1
	shift
	plain_git --git-dir="$landing_in" diff -U0 --no-renames --no-ext-diff --diff-algorithm=histogram \
		--diff-filter=M "$@" | sed -E '/^index /d; s/^@@ [^@]* @@/@@/'
}

# landing_hash FILE: as bases/<v>/versions has it.
landing_hash()
{
	sha1sum < "$1" | cut -c1-16
}

need_tools()
{
	for tool; do
		command -v "$tool" > /dev/null || die "$tool is missing: run scripts/install-packages"
	done
}

# text_of OBJECT [PREFIX]: how many bytes of text it has, by the size of the binutils with that prefix.
text_of()
{
	"${2:-}size" "$1" 2> /dev/null | awk 'NR == 2 { print $1; found = 1 } END { exit !found }' ||
		die "${1##*/} is missing: remove ${1%/*/kernel/*}, it is built anew then"
}

# functions_of ROW OUTPUT ERRORS: what scripts/bench-functions prints of it. When the row begins is up to this machine, so
# that a tick may come between: up to five times.
functions_of()
{
	functions_tries=5
	until "$ROOT/scripts/bench-functions" "$1" > "$2" 2> "$3" < /dev/null; do
		functions_tries=$((functions_tries - 1))
		grep -q 'a tick came between' "$3" && [ $functions_tries -gt 0 ] || return 1
	done
}

# known_selftests FOLDER NAME...: fail, unless each is a program there, where scripts/selftests left them.
known_selftests()
{
	list=$1/kselftest-list.txt
	shift
	for name; do
		grep -qx "perf_events:$name" "$list" ||
			die "$name is none of the self-tests: $(cut -d: -f2 "$list" | tr '\n' ' ')"
	done
}

# result pass|fail TEXT
result()
{
	echo "$*"
}

# passes NAME COMMAND...: a result, by the command's exit status; what it said last shows if it is bad.
# The caller names the file for what the command says in $said.
passes()
{
	what=$1
	shift
	# shellcheck disable=SC2154
	if "$@" > "$said" 2>&1 < /dev/null; then
		result pass "$what"
	else
		result fail "$what: $(tail -n 1 "$said")"
		return 1
	fi
}

. "$ROOT/scripts/apply.sh"
