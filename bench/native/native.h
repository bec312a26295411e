/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What bench/native/kernel.c, compiled as a part of each kernel, and bench/native/native.c, an ordinary
 * program, know of each other. No type of either side's headers.
 */
#ifndef NATIVE_H
#define NATIVE_H

enum native_kind { NATIVE_SAMPLE, NATIVE_COMM };

/* One kind of record, and the buffer that it goes to. */
struct native_row {
	const char *name;
	enum native_kind kind;
	unsigned long sample_type;
	/* PERF_SAMPLE_RAW of a sample, its size included: a multiple of 8. */
	unsigned int raw;
	unsigned int callchain;
	unsigned int stack;
	int sample_id_all;
	int backward;
	int writable;
	int paused;
	unsigned long buffer;
	/* Of the whole record. */
	unsigned int bytes;
};

/* Memory that a tree may take: what the kernel would have from kmalloc(), and pages. */
struct native_memory {
	char *objects;
	char *objects_end;
	char *pages;
	char *pages_end;
	/* Of zeros, as large as a struct page for each page. */
	char *page_structs;
	/* Of the task that writes, the same in all trees. */
	char *user_stack;
};

struct native_event;

struct native_ops {
	/* Once, before the program patches the code. */
	void (*boot)(struct native_memory *memory);
	/* NULL if the kernel can't do it. Takes the place of what was opened before. */
	struct native_event *(*open)(const struct native_row *row, const struct native_memory *memory);
	void (*write)(struct native_event *e, unsigned int n);
	/* The reader of a writable buffer is up to date. */
	void (*consume)(struct native_event *e);
	unsigned long (*head)(struct native_event *e);
	unsigned long (*lost)(struct native_event *e);
	const char *(*page)(struct native_event *e, unsigned long n);
	void *(*memcpy)(void *to, const void *from, unsigned long n);
};

#endif /* NATIVE_H */
