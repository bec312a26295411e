// SPDX-License-Identifier: GPL-2.0
/*
 * The flight recorder answers wrong arguments with one line, which says what to do.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"
#include "recorder_test.h"

FIXTURE(recorder_input)
{
};

FIXTURE_SETUP(recorder_input)
{
}

FIXTURE_TEARDOWN(recorder_input)
{
}

FIXTURE_VARIANT(recorder_input)
{
	const char	*arguments[4];
	const char	*said;
	bool		needs_root;
};

FIXTURE_VARIANT_ADD(recorder_input, bytes_alone)
{
	.arguments = { "--trigger", "page-faults", "--after-trigger", "64K" },
	.said = "give a time",
};

FIXTURE_VARIANT_ADD(recorder_input, no_unit)
{
	.arguments = { "--trigger", "page-faults", "--after-trigger", "5" },
	.said = "as 5ms",
};

FIXTURE_VARIANT_ADD(recorder_input, two_times)
{
	.arguments = { "--trigger", "page-faults", "--after-trigger", "5ms,5s" },
	.said = "as 5ms",
};

FIXTURE_VARIANT_ADD(recorder_input, negative)
{
	.arguments = { "--trigger", "page-faults", "--hold-off", "-5ms" },
	.said = "as 5ms",
};

FIXTURE_VARIANT_ADD(recorder_input, deeper_than_buffer)
{
	.arguments = { "--trigger", "page-faults", "--after-trigger", "64M,5ms" },
	.said = "larger -m",
};

FIXTURE_VARIANT_ADD(recorder_input, longer_than_an_hour)
{
	.arguments = { "--trigger", "page-faults", "--after-trigger", "3601s" },
	.said = "an hour at most",
};

FIXTURE_VARIANT_ADD(recorder_input, held_off_for_more_than_buffer)
{
	.arguments = { "--trigger", "page-faults", "--hold-off", "64M" },
	.said = "larger -m",
};

FIXTURE_VARIANT_ADD(recorder_input, unknown_in_a_word)
{
	.arguments = { "page-faults", "-xj" },
	.said = "'-x'",
};

FIXTURE_VARIANT_ADD(recorder_input, no_trigger)
{
	.arguments = { "--rearm" },
	.said = "give a --trigger",
};

FIXTURE_VARIANT_ADD(recorder_input, lossless)
{
	.arguments = { "--lossless", "--trigger", "page-faults" },
	.said = "leave out",
};

FIXTURE_VARIANT_ADD(recorder_input, unknown)
{
	.arguments = { "page-faults", "--trigger", "nosuch" },
	.said = "--help",
};

FIXTURE_VARIANT_ADD(recorder_input, filter_of_software)
{
	.arguments = { "page-faults", "--trigger", "page-faults if ip == 1" },
	.said = "group:name",
};

FIXTURE_VARIANT_ADD(recorder_input, no_filter)
{
	.arguments = { "page-faults", "--trigger", "page-faults if " },
	.said = "leave that out",
};

FIXTURE_VARIANT_ADD(recorder_input, no_time)
{
	.arguments = { "--after", "5K" },
	.said = "as 500ms",
};

FIXTURE_VARIANT_ADD(recorder_input, no_unit_of_time)
{
	.arguments = { "--after", "5parsecs" },
	.said = "as 500ms",
};

FIXTURE_VARIANT_ADD(recorder_input, no_value)
{
	.arguments = { "--after" },
	.said = "needs a value",
};

FIXTURE_VARIANT_ADD(recorder_input, no_power_of_two)
{
	.arguments = { "--pages", "12K" },
	.said = "give a power of two",
};

FIXTURE_VARIANT_ADD(recorder_input, too_many_pages)
{
	.arguments = { "--pages", "2G" },
	.said = "up to 1G",
};

FIXTURE_VARIANT_ADD(recorder_input, pages_in_time)
{
	.arguments = { "--pages", "4ms" },
	.said = "give a power of two",
};

FIXTURE_VARIANT_ADD(recorder_input, no_count)
{
	.arguments = { "--last", "1K" },
	.said = "give a plain number",
};

FIXTURE_VARIANT_ADD(recorder_input, no_pid)
{
	.arguments = { "--pid", "1,x" },
	.said = "give its number",
};

FIXTURE_VARIANT_ADD(recorder_input, no_process)
{
	.arguments = { "--pid", "2147483647", "page-faults" },
	.said = "no process 2147483647",
};

FIXTURE_VARIANT_ADD(recorder_input, some_and_all)
{
	.arguments = { "--pid", "1", "--all-cpus" },
	.said = "leave one out",
};

FIXTURE_VARIANT_ADD(recorder_input, no_command)
{
	.arguments = { "page-faults", "--" },
	.said = "no command",
};

FIXTURE_VARIANT_ADD(recorder_input, no_such_option)
{
	.arguments = { "--nosuch" },
	.said = "--help",
};

FIXTURE_VARIANT_ADD(recorder_input, no_such_command)
{
	.arguments = { "page-faults", "--", "./nosuch" },
	.said = "can't run './nosuch'",
	.needs_root = true,
};

FIXTURE_VARIANT_ADD(recorder_input, bad_filter)
{
	.arguments = { "page-faults", "--trigger", "raw_syscalls:sys_enter if nosuch == 1" },
	.said = "see its fields",
	.needs_root = true,
};

TEST_F(recorder_input, says_what_to_do)
{
	const char * const arguments[] = {
		RECORDER, variant->arguments[0], variant->arguments[1], variant->arguments[2],
		variant->arguments[3], NULL,
	};
	int output, errors;
	char said[1024];
	ssize_t length;
	pid_t pid;

	if (variant->needs_root &&
	    (!may_watch_all() || tracepoint_id("raw_syscalls", "sys_enter") < 0))
		SKIP(return, "no permission to watch all tasks, or no tracepoints of system calls");
	pid = run_recorder(_metadata, arguments, &output, &errors);
	check_exit(_metadata, pid, 1);
	EXPECT_EQ(0, read(output, said, sizeof(said)));
	length = read(errors, said, sizeof(said) - 1);
	ASSERT_LT(0, length);
	said[length] = 0;
	/* One line, which is all there is. */
	EXPECT_EQ(said + length - 1, strchr(said, '\n'));
	EXPECT_NE(NULL, strstr(said, variant->said)) {
		TH_LOG("%s", said);
	}
	close(output);
	close(errors);
}

TEST_HARNESS_MAIN
