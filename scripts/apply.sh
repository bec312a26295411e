# SPDX-License-Identifier: GPL-2.0
#
# How patches are applied to the index. A part of lib.sh, by itself as trees are made anew when it changes.

# stock_needs COMMIT: the patches in needs/ that this stock calls for: each is of some bases, as its line `Bases:`
# says, and is left out where the file of its line `Unless:` has the string that follows.
stock_needs()
{
	for need in "$ROOT"/needs/*.patch; do
		[ -e "$need" ] || continue
		sed -n '/^---$/q; s/^Bases: //p' "$need" | tr ' ' '\n' | grep -qxF -e "$BASE" || continue
		unless=$(sed -n '/^---$/q; s/^Unless: //p' "$need")
		repo_git show "$1:${unless%% *}" 2> /dev/null | grep -qF -e "${unless#* }" || echo "needs/${need##*/}"
	done
}

# read_paths COMMIT FILE: have the index hold what COMMIT has of the paths listed in FILE, and nothing else. An index of
# all of a kernel takes longer to read and write than all the rest that is done with a patch.
read_paths()
{
	rm -f "$GIT_INDEX_FILE"
	# shellcheck disable=SC2046
	repo_git ls-tree -r "$1" -- $(cat "$2") | repo_git update-index --add --index-info
}

# diff_paths DIFF: the files that it changes.
diff_paths()
{
	sed -n 's|^diff --git a/.* b/||p' "$1"
}

# hunks DIFF: its changes one by one, as diffs $tmp/hunk.NNNN.both, with a line of context before and one
# after the change; .before, with three before and none after; .after, the other way round.
hunks()
{
	rm -f "$tmp"/hunk.*
	awk -v prefix="$tmp/hunk" '
		function emit(form, first, last,	j, was, is, old, new, file) {
			for (j = 1; j <= last; j++) {
				if (line[j] !~ /^\+/) { if (j < first) old++; else was++ }
				if (line[j] !~ /^-/) { if (j < first) new++; else is++ }
			}
			file = sprintf("%s.%04d.%s", prefix, count, form)
			printf "%s@@ -%d,%d +%d,%d @@\n", head, at_old + old, was, at_new + new, is > file
			for (j = first; j <= last; j++) print line[j] > file
			close(file)
		}
		function flush(	i, from, to, first, last) {
			for (i = 1; i <= n; i = to + 1) {
				while (i <= n && line[i] ~ /^ /) i++
				if (i > n) break
				for (from = to = i; to < n && line[to + 1] !~ /^ /; to++);
				count++
				emit("both", from > 1 ? from - 1 : from, to < n ? to + 1 : to)
				# What was changed above in the same hunk is there, as changed.
				for (first = from; first > 1 && from - first < 3 && line[first - 1] ~ /^ /; first--);
				if (first < from) emit("before", first, to)
				for (last = to; last < n && last - to < 3 && line[last + 1] ~ /^ /; last++);
				if (last > to) emit("after", from, last)
			}
			n = 0
		}
		/^diff --git / { flush(); head = ""; left_old = left_new = 0 }
		/^@@ / {
			flush()
			split($2, a, ","); split($3, b, ",")
			at_old = -a[1]; at_new = b[1] + 0
			left_old = a[2] == "" ? 1 : a[2] + 0; left_new = b[2] == "" ? 1 : b[2] + 0
			next
		}
		left_old > 0 || left_new > 0 {
			if ($0 == "") $0 = " "
			line[++n] = $0
			if ($0 !~ /^\+/) left_old--
			if ($0 !~ /^-/) left_new--
			next
		}
		/^(diff|---|\+\+\+) / { head = head $0 "\n" }
		END { flush() }' "$1"
}

# apply_as_is DIFF: to the index, where one line of context is there.
apply_as_is()
{
	repo_git apply --cached -C1 --allow-empty --whitespace=nowarn "$1" 2> "$tmp/err"
}

# apply_diff DIFF: to the index. Where it doesn't apply, because a line next to a change of the series is
# another in this kernel, each change by itself, with as little context as there has to be. That it has
# gone to the right place then, scripts/drift finds out. The caller's $tmp has the diffs, and what git said.
apply_diff()
{
	apply_as_is "$1" && return
	! grep -qE '^(new file|deleted file|old mode|rename|copy) ' "$1" || return 1
	hunks "$1"
	for both in "$tmp"/hunk.*.both; do
		for form in both before after; do
			[ -e "${both%.both}.$form" ] || continue
			! repo_git apply --cached -C1 --unidiff-zero --whitespace=nowarn "${both%.both}.$form" \
				2> "$tmp/err.hunk" || continue 2
		done
		return 1
	done
}

# bare PATCH: it without what git knows by itself, and what other changes move: numbers and functions of hunks, blobs.
bare()
{
	sed -e '/^index [0-9a-f]*\.\./d' -e 's/^@@ .*/@@/' "$1"
}

# recounted PATCH LINES: the bare patch with its hunks' lines counted, and where LINES has them in this base:
# `<file> <line of the first hunk> ...`. Fails if it doesn't have as many.
recounted()
{
	awk '
		function flush(	i, old, new) {
			if (!open) return
			for (i = 1; i <= n; i++) {
				if (line[i] !~ /^[+\\]/) old++
				if (line[i] !~ /^[-\\]/) new++
			}
			printf "@@ -%d,%d +%d,%d @@\n", at, old, at + shift, new
			for (i = 1; i <= n; i++) print line[i]
			shift += new - old
			open = n = 0
		}
		function end_file() {
			flush()
			if (file != "" && k != numbers[file]) bad = 1
			shift = k = 0
		}
		FNR == 1 { pass++ }
		pass == 1 { numbers[$1] = NF - 1; for (i = 2; i <= NF; i++) number[$1, i - 1] = $i; next }
		/^diff --git / { end_file(); file = substr($3, 3) }
		file != "" && /^@@$/ {
			flush()
			open = 1
			at = number[file, ++k]
			next
		}
		open { line[++n] = $0; next }
		{ print }
		END { end_file(); exit bad }' "$2" "$1"
}

# from_original ORIGINAL DIFF: the patch that DIFF makes of the original; fails if there is none. Each line that
# it takes out, and one next to it, must be there.
from_original()
{
	bare "$1" > "$tmp/bare"
	patch -s -f -F 0 -r - -o "$tmp/whole" "$tmp/bare" "$2" > /dev/null 2>&1 || return 1
	{ echo; sed -n '/^--- /q; s/^Lines: //p' "$2"; } > "$tmp/lines"
	recounted "$tmp/whole" "$tmp/lines"
}

# difference ORIGINAL PATCH NAME: the other way round, with this name for both. Its lines `Lines:` say where the hunks
# are in this base: a kernel of another version may have the lines around them twice.
difference()
{
	awk '
		/^diff --git / { if (file) print ""; file = substr($3, 3); printf "Lines: %s", file }
		file && /^@@ / { sub(/,.*/, "", $2); printf " %d", -$2 }
		END { if (file) print "" }' "$2"
	bare "$1" > "$tmp/bare"
	bare "$2" > "$tmp/bare.own"
	diff -U 1 --label "a/$3" --label "b/$3" "$tmp/bare" "$tmp/bare.own" || [ $? -eq 1 ]
}
