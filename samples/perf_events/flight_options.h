/* SPDX-License-Identifier: GPL-2.0 */
/* What the flight recorder is asked to do. */
#ifndef _SAMPLES_FLIGHT_OPTIONS_H
#define _SAMPLES_FLIGHT_OPTIONS_H

#include <getopt.h>

#include "flight_recorder.h"
#include "flight_units.h"

#define DEFAULT_PAGES		64
#define DEFAULT_LAST		30
/* The kernel's limit, too. */
#define MOST_DEPTH_NS		(3600 * 1000000000ULL)

static const char usage[] =
	"Usage: flight_recorder [options] [event...] [-- command [argument...]]\n"
	"\n"
	"Records events in a buffer of each CPU, and always overwrites the oldest records.\n"
	"A snapshot prints the latest ones. The recorder takes it on SIGUSR2, after a time,\n"
	"on a trigger, when the command or the recorded processes have ended, and at the\n"
	"end (SIGINT, SIGTERM, SIGHUP).\n"
	"\n"
	"  event                 a tracepoint as group:name, or one of cpu-clock,\n"
	"                        task-clock, page-faults, minor-faults, major-faults,\n"
	"                        context-switches, cpu-migrations; by default\n"
	"                        raw_syscalls:sys_enter and raw_syscalls:sys_exit\n"
	"  command               run it, record its events and those of all that it\n"
	"                        starts, and end it with the recorder\n"
	"\n"
	"Without a command and without --pid, the events of every CPU are recorded.\n"
	"\n"
	"  -A, --all-cpus        record every CPU, also with a command\n"
	"  -p, --pid PID[,PID...]\n"
	"                        record these processes, their threads, and all that these\n"
	"                        start, until all have ended\n"
	"  -a, --after TIME      take a snapshot after this time, as 500ms or 2s; a plain\n"
	"                        number is in seconds\n"
	"  -r, --repeat N        take N snapshots (0: no end), each of what is new\n"
	"  -m, --pages SIZE      each CPU's buffer: a power of two up to 1G, as 256K or\n"
	"                        1M; a plain number counts pages (64)\n"
	"  -n, --last N          print the last N records of a snapshot (30)\n"
	"  -j, --json            print JSON: an object in each line for a record, the\n"
	"                        snapshot, the trigger\n"
	"  -l, --lossless        lose nothing during a snapshot: this needs a second buffer\n"
	"                        for each CPU\n"
	"  -h, --help            print this\n"
	"\n"
	"  -t, --trigger EVENT   stop all buffers on this event, and take a snapshot; a\n"
	"                        tracepoint may have a filter of its fields, as in\n"
	"                        'sched:sched_switch if prev_state == 2'; may be repeated\n"
	"  -d, --after-trigger DEPTH\n"
	"                        stop each buffer after this time, as 5ms, or when it has\n"
	"                        taken so many bytes if that is earlier, as 64K,5ms (0)\n"
	"  -o, --hold-off DEPTH  ignore triggers for this time after the start, as 2s,\n"
	"                        until their CPU's buffer has taken so many bytes, as 64K,\n"
	"                        or until both\n"
	"  -R, --rearm           record on after a trigger, and wait for the next one (no\n"
	"                        end without --repeat)\n"
	"\n"
	"A kernel with perf's triggers stops the buffers itself. On other kernels the event\n"
	"wakes the recorder, which pauses the buffers, and prints how late that was.\n"
	"\n"
	"The exit status is 0 if something was recorded, whatever that of the command is,\n"
	"and else 1, after a line that says what to do.\n";

static const struct option option_names[] = {
	{ "after",		required_argument,	NULL, 'a' },
	{ "after-trigger",	required_argument,	NULL, 'd' },
	{ "all-cpus",		no_argument,		NULL, 'A' },
	{ "help",		no_argument,		NULL, 'h' },
	{ "hold-off",		required_argument,	NULL, 'o' },
	{ "json",		no_argument,		NULL, 'j' },
	{ "last",		required_argument,	NULL, 'n' },
	{ "lossless",		no_argument,		NULL, 'l' },
	{ "pages",		required_argument,	NULL, 'm' },
	{ "pid",		required_argument,	NULL, 'p' },
	{ "rearm",		no_argument,		NULL, 'R' },
	{ "repeat",		required_argument,	NULL, 'r' },
	{ "trigger",		required_argument,	NULL, 't' },
	{ }
};

/* What follows -- is the command's, options included. Returns where that begins. */
static inline int find_command(struct options *options, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--"))
			continue;
		if (!argv[i + 1])
			die("no command after --");
		options->command = argv + i + 1;
		return i;
	}
	return argc;
}

static inline void add_trigger(struct options *options, const char *event)
{
	options->triggers = resize(options->triggers, (options->nr_triggers + 1) *
				   sizeof(*options->triggers));
	options->triggers[options->nr_triggers++] = event;
}

/* Numbers with commas between them. */
static inline void add_pids(struct options *options, const char *text)
{
	const char *at = text;
	char *end;

	do {
		long pid = strtol(at, &end, 10);

		if (*at < '0' || *at > '9' || pid <= 0 || pid > INT_MAX ||
		    (*end && *end != ','))
			die("--pid: '%s' is no process: give its number, or several as 12,34",
			    text);
		options->pids = resize(options->pids,
				       (options->nr_pids + 1) * sizeof(*options->pids));
		options->pids[options->nr_pids++] = pid;
		at = end + 1;
	} while (*end);
}

static inline void parse_option(struct options *options, int option, const char *unknown)
{
	switch (option) {
	case 'A':
		options->all_cpus = true;
		break;
	case 'a':
		options->after = parse_time(optarg, "--after");
		break;
	case 'd':
		options->depth = parse_depth(optarg, "--after-trigger");
		options->of_triggers = "--after-trigger";
		break;
	case 'h':
		if (fputs(usage, stdout) < 0 || fflush(stdout))
			die("can't write what is printed: %s", strerror(errno));
		exit(0);
	case 'j':
		options->json = true;
		break;
	case 'l':
		options->lossless = true;
		break;
	case 'm':
		options->pages = parse_pages(optarg, "--pages");
		break;
	case 'n':
		options->last = parse_number(optarg, "--last");
		break;
	case 'o':
		options->holdoff = parse_depth(optarg, "--hold-off");
		options->of_triggers = "--hold-off";
		break;
	case 'p':
		add_pids(options, optarg);
		break;
	case 'R':
		options->of_triggers = "--rearm";
		options->rearm = true;
		break;
	case 'r':
		options->repeat = parse_number(optarg, "--repeat");
		options->repeats = true;
		break;
	case 't':
		add_trigger(options, optarg);
		break;
	case ':':
		die("%s needs a value: see --help", unknown);
	default:
		die("don't understand '%s': see --help", unknown);
	}
}

/* What is wrong with all of them together. */
static inline void check_triggers(struct options *options)
{
	size_t size = options->pages * sysconf(_SC_PAGESIZE);

	if (options->of_triggers && !options->nr_triggers)
		die("%s is about triggers: give a --trigger, too", options->of_triggers);
	if (options->nr_triggers && options->lossless)
		die("a trigger stops the buffers: leave out --lossless or --trigger");
	if (options->depth.bytes && !options->depth.ns)
		die("--after-trigger: CPUs may write less: give a time, too, as in 64K,5ms");
	if (options->depth.bytes > size)
		die("--after-trigger: %llu bytes are more than a buffer has: use a larger -m",
		    (unsigned long long)options->depth.bytes);
	if (options->depth.ns > MOST_DEPTH_NS || options->holdoff.ns > MOST_DEPTH_NS)
		die("--after-trigger, --hold-off: give an hour at most");
	if (options->holdoff.bytes > size)
		die("--hold-off: %llu bytes are more than a buffer has: use a larger -m",
		    (unsigned long long)options->holdoff.bytes);
	if (options->rearm && !options->repeats)
		options->repeat = 0;
}

static inline void parse_options(struct options *options, int argc, char **argv)
{
	static const char * const defaults[] = {
		"raw_syscalls:sys_enter", "raw_syscalls:sys_exit",
	};
	int events_end = find_command(options, argc, argv), option;

	opterr = 0;
	while ((option = getopt_long(events_end, argv, ":Aa:d:hjlm:n:o:p:Rr:t:", option_names,
				     NULL)) != -1) {
		const char letter[] = { '-', optopt, '\0' }, *word = argv[optind - 1];

		/* In the midst of a word as -jx this isn't the one. */
		parse_option(options, option, optopt && strncmp(word, "--", 2) ? letter : word);
	}
	check_triggers(options);
	if (options->all_cpus && options->nr_pids)
		die("--pid records some tasks, --all-cpus all of them: leave one out");

	options->events = (const char * const *)argv + optind;
	options->nr_events = events_end - optind;
	if (!options->nr_events) {
		options->events = defaults;
		options->nr_events = ARRAY_SIZE(defaults);
	}
}

#endif /* _SAMPLES_FLIGHT_OPTIONS_H */
