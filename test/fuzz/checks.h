/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What must hold of a buffer, whatever else happens. All of it is asked with the slot taken.
 */
#ifndef FUZZ_CHECKS_H
#define FUZZ_CHECKS_H

#include "fuzz.h"

/* More than is written in any run. */
#define TOO_MUCH	(1ULL << 44)

/* The number in a line of the event's fdinfo, or -1. */
static long fdinfo(int fd, const char *name)
{
	char path[64], text[2048], *line;
	ssize_t length;
	int info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = open(path, O_RDONLY | O_CLOEXEC);
	if (info < 0)
		return -1;
	length = read(info, text, sizeof(text) - 1);
	close(info);
	if (length <= 0)
		return -1;
	text[length] = 0;
	line = strstr(text, name);
	return line ? strtol(line + strlen(name), NULL, 10) : -1;
}

/* Pauses and resumes of this worker's processes. */
static int pause_output(int fd, unsigned long argument)
{
	bool *resuming = &shared->resuming[worker_nr][thread_nr][in_child];
	int ret;

	if (argument & 0xffffffff)
		return ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, argument);
	__atomic_store_n(resuming, true, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&shared->resumes_begun[worker_nr], 1, __ATOMIC_SEQ_CST);
	ret = ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, argument);
	__atomic_store_n(resuming, false, __ATOMIC_SEQ_CST);
	return ret;
}

/* Whether nobody resumes at the moment; @number tells later whether anybody has. */
static bool nobody_resumes(unsigned long *number)
{
	*number = __atomic_load_n(&shared->resumes_begun[worker_nr], __ATOMIC_SEQ_CST);
	for (int t = 0; t < THREADS; t++)
		for (int child = 0; child < 2; child++)
			if (__atomic_load_n(&shared->resuming[worker_nr][t][child], __ATOMIC_SEQ_CST))
				return false;
	return true;
}

static bool nobody_resumed(unsigned long number)
{
	return __atomic_load_n(&shared->resumes_begun[worker_nr], __ATOMIC_SEQ_CST) == number;
}

/*
 * Whether somebody writes at random to the buffer's user page: by this mapping, or by that of another event with the
 * same buffer. Before step_walk() does so it sets a byte of the page that the kernel never writes. So read what is to
 * be checked first, then ask.
 */
static bool scribbled(const struct slot *s)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return *(volatile __u8 *)&s->ow.meta->__reserved[0];
}

/* A violation, unless what was read may be somebody's random numbers. */
#define slot_violation(_s, ...)							\
	do {									\
		if (!scribbled(_s))						\
			violation(__VA_ARGS__);					\
	} while (0)

/* The head goes one way. */
static void check_head(struct slot *s)
{
	uint64_t head = perf_overwrite_head(&s->ow);
	uint64_t written = s->attr.write_backward ? s->head - head : head - s->head;

	if (scribbled(s))
		return;
	if (written > TOO_MUCH)
		violation("the head of a %s buffer went from %#llx to %#llx",
			  s->attr.write_backward ? "backward" : "forward",
			  (unsigned long long)s->head, (unsigned long long)head);
	s->head = head;
}

/* How many words a read() of an event or a group returns, a sample of it has; 0 if it can't be known. */
static size_t words_of_values(uint64_t format, const __u64 *values, size_t words)
{
	size_t times = !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
		       !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
	size_t each = 1 + !!(format & PERF_FORMAT_ID) + !!(format & FORMAT_LOST);

	if (!words)
		return 0;
	if (!(format & PERF_FORMAT_GROUP))
		return times + each;
	return values[0] > words ? 0 : 1 + times + values[0] * each;
}

/* How many words the body of a sample has, by its own contents; more than @words if these make no sense. */
static size_t words_of_sample(const struct perf_event_attr *attr, const __u64 *body, size_t words)
{
	static const uint64_t leading = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
		PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |
		PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD;
	static const uint64_t single = PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_CGROUP |
		PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE;
	uint64_t type = attr->sample_type;
	size_t at = __builtin_popcountll(type & leading), more;

	if (type & PERF_SAMPLE_READ) {
		if (at >= words)
			return ~0UL;
		more = words_of_values(attr->read_format, body + at, words - at);
		if (!more)
			return ~0UL;
		at += more;
	}
	if (type & PERF_SAMPLE_CALLCHAIN) {
		if (at >= words || body[at] > words)
			return ~0UL;
		at += 1 + body[at];
	}
	if (type & PERF_SAMPLE_RAW) {
		if (at >= words || (*(__u32 *)&body[at] + sizeof(__u32)) % sizeof(__u64))
			return ~0UL;
		at += (*(__u32 *)&body[at] + sizeof(__u32)) / sizeof(__u64);
	}
	if (type & PERF_SAMPLE_REGS_USER) {
		if (at >= words)
			return ~0UL;
		at += 1 + (body[at] ? __builtin_popcountll(attr->sample_regs_user) : 0);
	}
	if (type & PERF_SAMPLE_STACK_USER) {
		if (at >= words || body[at] % sizeof(__u64) || body[at] > 65528)
			return ~0UL;
		/* What was dumped is never more than the room for it. */
		more = body[at] / sizeof(__u64);
		at += 1 + more;
		if (more && (at >= words || body[at] > more * sizeof(__u64)))
			return ~0UL;
		at += !!more;
	}
	at += !!(type & PERF_SAMPLE_WEIGHT_TYPE) + !!(type & PERF_SAMPLE_DATA_SRC) +
	      !!(type & PERF_SAMPLE_TRANSACTION);
	if (type & PERF_SAMPLE_REGS_INTR) {
		if (at >= words)
			return ~0UL;
		at += 1 + (body[at] ? __builtin_popcountll(attr->sample_regs_intr) : 0);
	}
	return at + __builtin_popcountll(type & single);
}

/* Samples begin with the ids of their events in every other epoch: the others may be of any event. */
static bool check_sample(struct slot *s, const struct perf_event_header *record, uint64_t position)
{
	const __u64 *body = (const __u64 *)(record + 1);
	size_t words = record->size / sizeof(__u64) - 1, found;
	const struct perf_event_attr *attr;

	if (!identified)
		return true;
	attr = words ? attr_of(body[0]) : NULL;
	if (!attr)
		return true;
	count(COUNT_SAMPLES, 1);
	found = words_of_sample(attr, body, words);
	if (found == words)
		return true;
	slot_violation(s, "a sample of %zu words has %zd by its contents, at %#llx: type %#llx, read_format %#llx",
		       words, found, (unsigned long long)position,
		       (unsigned long long)attr->sample_type, (unsigned long long)attr->read_format);
	return false;
}

static bool check_record(struct slot *s, const struct perf_event_header *record, uint64_t position)
{
	/* Types are numbered from 1; 32 leaves room for those to come. */
	if (!record->type || record->type > 32) {
		slot_violation(s, "a record of type %u and size %u at %#llx, head %#llx of %zu bytes",
			       record->type, record->size, (unsigned long long)position,
			       (unsigned long long)s->head, s->ow.size);
		return false;
	}
	if (record->type == PERF_RECORD_LOST && record->size >= 24 && !((__u64 *)record)[2]) {
		slot_violation(s, "a PERF_RECORD_LOST of nothing at %#llx", (unsigned long long)position);
		return false;
	}
	return record->type != PERF_RECORD_SAMPLE || check_sample(s, record, position);
}

/* A frozen backward buffer: from the newest to the oldest, and all that was written is found. */
static void walk_backward(struct slot *s, void *space)
{
	struct perf_overwrite_walk walk;
	struct perf_event_header *record, header;
	uint64_t written = -s->head;
	unsigned long records = 0;

	perf_overwrite_begin_at(&walk, &s->ow, s->head, written < s->ow.size ? written : s->ow.size);
	while ((record = perf_overwrite_next(&walk, space))) {
		if (!check_record(s, record, s->head + walk.covered - record->size))
			return;
		records++;
	}
	count(COUNT_WALKS, 1);
	count(COUNT_RECORDS, records);
	if (written <= s->ow.size) {
		if (walk.left)
			slot_violation(s, "%zu of %llu bytes written are not found in a buffer of %zu, after %lu records",
				       walk.left, (unsigned long long)written, s->ow.size, records);
		return;
	}
	if (!walk.left)
		return;
	count(COUNT_LAPPED, 1);
	memcpy(&header, s->ow.data + walk.offset, sizeof(header));
	if (header.size % 8 || header.size <= walk.left || !header.type || header.type > 32)
		slot_violation(s, "a walk ends after %lu records with %zu bytes left, at a header of type %u and size %u; head %#llx of %zu bytes",
			       records, walk.left, header.type, header.size,
			       (unsigned long long)s->head, s->ow.size);
}

/* A frozen forward buffer whose records can be told from each other: from @tail to the head. */
static void walk_forward(struct slot *s, uint64_t tail, void *space)
{
	uint64_t left = s->head - tail;
	struct perf_event_header header;
	unsigned long records = 0;

	if (left > s->ow.size) {
		slot_violation(s, "%llu bytes unread in a buffer of %zu", (unsigned long long)left, s->ow.size);
		return;
	}
	for (; left; left -= header.size, records++) {
		size_t offset = (s->head - left) & (s->ow.size - 1);

		memcpy(&header, s->ow.data + offset, sizeof(header));
		if (header.size < sizeof(header) || header.size % 8 || header.size > left) {
			slot_violation(s, "a size of %u, %llu bytes before the head %#llx of %zu bytes, after %lu records",
				       header.size, (unsigned long long)left,
				       (unsigned long long)s->head, s->ow.size, records);
			return;
		}
		perf_overwrite_copy(space, s->ow.data, s->ow.size, offset, header.size);
		if (!check_record(s, space, s->head - left))
			return;
	}
	count(COUNT_WALKS, 1);
	count(COUNT_RECORDS, records);
}

/* @frozen: nobody writes. Walks, and hands what was read back where the buffer is the reader's own. */
static void check_contents(struct slot *s, void *space)
{
	uint64_t tail = s->ow.meta->data_tail;

	if (scribbled(s))
		return;
	if (s->attr.write_backward)
		walk_backward(s, space);
	else if (s->writable && !s->foreign)
		walk_forward(s, tail, space);
	else if (s->head <= s->ow.size && !tail)
		walk_forward(s, 0, space);
}

/* Pauses the buffer and looks at it twice. */
static void check_frozen(struct slot *s, struct random *r)
{
	static __thread __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];
	static __thread unsigned char *copy;
	bool resume = !one_in(r, 4), consume = one_in(r, 2), start = one_in(r, 3);
	unsigned int wait = one_in(r, 2) ? below(r, 3000) : 0;
	unsigned long resumes;
	uint64_t head;
	long paused;

	if (!s->mapped || !s->ow.size)
		return;
	if (!copy)
		copy = malloc(MAX_PAGES * sysconf(_SC_PAGESIZE));
	if (s->fd < 0) {
		check_head(s);
		return;
	}
	if (!nobody_resumes(&resumes))
		return;
	if (start)
		perf_overwrite_pause_start(s->fd);
	if (perf_overwrite_pause(s->fd)) {
		violation("a pause of a mapped buffer: %s", strerror(errno));
		return;
	}
	check_head(s);
	head = s->head;
	if (scribbled(s))
		goto out;
	memcpy(copy, s->ow.data, s->ow.size);
	if (wait)
		usleep(wait);
	paused = fdinfo(s->fd, "output-paused:");
	if (perf_overwrite_head(&s->ow) != head) {
		uint64_t later = perf_overwrite_head(&s->ow);

		if (nobody_resumed(resumes))
			slot_violation(s, "the head of a paused buffer went from %#llx to %#llx",
				       (unsigned long long)head, (unsigned long long)later);
	} else if (memcmp(copy, s->ow.data, s->ow.size)) {
		size_t at = 0;

		while (at < s->ow.size && copy[at] == s->ow.data[at])
			at++;
		if (nobody_resumed(resumes))
			slot_violation(s, "a paused buffer of %zu bytes with head %#llx changed at %zu",
				       s->ow.size, (unsigned long long)head, at);
	} else {
		struct perf_overwrite ow = s->ow;

		if (!nobody_resumed(resumes))
			goto out;
		count(COUNT_FROZEN, 1);
		if (!paused)
			violation("fdinfo doesn't say that a paused buffer is");
		/* The copy: nobody can change it. */
		s->ow.data = copy;
		check_contents(s, space);
		s->ow = ow;
		if (consume && s->writable && !s->foreign)
			perf_overwrite_set_tail(&s->ow, head);
	}
out:
	if (resume)
		pause_output(s->fd, 0);
}

/* How many bytes a read() of the event's value or values returns. */
static void check_values(struct slot *s, const __u64 *values, ssize_t length)
{
	uint64_t format = s->attr.read_format;
	size_t words = words_of_values(format, values, length / sizeof(__u64));

	/* An event in the error state has none. */
	if (!length)
		return;
	if (words * sizeof(__u64) != (uint64_t)length)
		violation("a read of format %#llx returned %zd bytes, not %llu",
			  (unsigned long long)format, length,
			  (unsigned long long)(words * sizeof(__u64)));
	count(COUNT_READS, 1);
}

/*
 * What a set says of a buffer holds as long as the set stays frozen, in one generation. The descriptor
 * doesn't block. A buffer may have joined by an event that has one of its own now, so ids don't tell.
 */
static void check_report(int set)
{
	static __thread struct perf_trigger_buffer buffers[64];
	struct { uint64_t head, id; } seen[SLOTS];
	struct perf_trigger_report report, again;
	unsigned int nr_seen = 0, i;
	long set_id = fdinfo(set, "trigger-set:");

	if (perf_trigger_read(set, &report, buffers, ARRAY_SIZE(buffers)))
		return;
	for (struct slot *s = slots; s < slots + SLOTS; s++) {
		if (!slot_take(s))
			continue;
		if (s->fd >= 0 && s->mapped && s->ow.size && fdinfo(s->fd, "trigger-set:") == set_id) {
			seen[nr_seen].head = perf_overwrite_head(&s->ow);
			seen[nr_seen].id = s->id;
			nr_seen += !scribbled(s);
		}
		slot_give(s);
	}
	if (perf_trigger_read(set, &again, buffers, ARRAY_SIZE(buffers)) ||
	    again.generation != report.generation || again.nr > ARRAY_SIZE(buffers) ||
	    fdinfo(set, "trigger-set:") != set_id)
		return;
	if (again.nr != report.nr || again.id != report.id || again.time != report.time)
		violation("a frozen set's report changed: %u to %u buffers, time %llu to %llu",
			  report.nr, again.nr, (unsigned long long)report.time,
			  (unsigned long long)again.time);
	while (nr_seen--) {
		count(COUNT_REPORTS, 1);
		for (i = 0; i < again.nr; i++)
			if (buffers[i].head == seen[nr_seen].head)
				break;
		if (i == again.nr)
			violation("the buffer of event %llu is at head %#llx, and the set that has frozen it knows no such",
				  (unsigned long long)seen[nr_seen].id,
				  (unsigned long long)seen[nr_seen].head);
	}
}

#endif /* FUZZ_CHECKS_H */
