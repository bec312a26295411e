# SPDX-License-Identifier: GPL-2.0
#
# The self-tests that don't pass, as <program>:<case>; * stands for anything. `make check` holds each tree
# to its lists both ways: all cases that they match must end so, all others must pass, and each pattern
# must match something. What a base adds, its base.mk says: BASE_SKIPS on all trees, BASE_FAILS without the
# fixes, BASE_RACES without the topic mapping.

# The guest has no PMU, neither for hardware events nor for AUX areas: the same on all trees.
NO_PMU_FAILS = remove_on_exec:*
NO_PMU_SKIPS = mmap:perf_mmap.aux.*

# A pause that doesn't freeze has no function whose calls could be counted.
NO_CALLS_SKIPS = pause_cost:pause_cost.calls.*

# Trees without the topic trigger have none.
NO_TRIGGER_SKIPS = trigger:* \
	trigger_cpus:* \
	trigger_errors:* \
	trigger_life:*

# Allocations fail on a kernel that is made for it only.
NO_FAULTS_SKIPS = alloc_fails:*
ifeq ($(CONFIG),fail)
NO_FAULTS_SKIPS =
endif

# What the processor can't; these lists are for post, other trees weren't tried. On arm64, watchpoints on
# memory of the user don't report what the kernel accesses there. A signal for each hit comes before the
# access is stepped over, and returns to it: there is no end of hits. Breakpoints in the kernel are a CPU's, not a
# task's.
ifeq ($(ARCH),arm64)
ARCH_SKIPS = overwrite_nested:*
ARCH_FAILS = sigtrap_threads:sigtrap_threads.enable_event \
	sigtrap_threads:sigtrap_threads.modify_and_enable_event \
	sigtrap_threads:sigtrap_threads.signal_stress* \
	trigger:trigger_by.kernel_breakpoint.*
endif

# Unit tests, as <suite>.<case>: there breakpoints come before the access, again and again.
ifneq ($(filter arm64 arm,$(ARCH)),)
UNIT_SKIPS = perf_ring_buffer.test_nested_by_breakpoint* \
	perf_ring_buffer.test_nested_wakeup \
	perf_ring_buffer_pause.test_paused_after_nested \
	perf_ring_buffer_redirect.test_redirected_sample \
	perf_trigger.test_added_to_another \
	perf_trigger.test_depth_by_breakpoint* \
	perf_trigger.test_newest_by_breakpoint* \
	perf_trigger.test_redirected_by_breakpoint* \
	perf_trigger.test_refused_by_breakpoint
endif

# Those that need registers of user space are for x86 and arm64.
ifneq ($(filter arm s390,$(ARCH)),)
UNIT_SKIPS += perf_ring_buffer.test_sample_stack*
endif

ifeq ($(ARCH),arm)
# Programs are of Thumb code, in which the kernel has no uprobes and takes no breakpoint of four bytes. Nor does it take
# a watchpoint on stores alone with the default handler. By others of these it wouldn't get past the first hit: it steps
# over by a breakpoint on a mismatch, which QEMU lacks. A signal for each hit comes again and again, as on arm64. The
# other tests skip as on i386 and on arm64, or don't know the stack.
ARCH_SKIPS = endurance:* \
	overwrite_nested:* \
	sample_size:sample_chain.* \
	sample_stack_top:* \
	trigger:trigger_by.kernel_breakpoint.*
ARCH_FAILS = overflow_handler:overflow_handler.*_execute.* \
	overflow_handler:overflow_handler.*_watch.* \
	sample_fields:*_breakpoint.* \
	sigtrap_threads:sigtrap_threads.signal_stress* \
	trigger:trigger_by.uprobe.* \
	trigger:trigger_by.watchpoint.*
# Which threads see their first hit is a matter of chance.
POST_RACES = sigtrap_threads:sigtrap_threads.enable_event \
	sigtrap_threads:sigtrap_threads.modify_and_enable_event
endif

# Of 32 bits: the numbers of the longest test don't fit into its arguments, and the test of long callchains makes the
# stack's frames of 64 bits itself.
ifeq ($(ARCH),i386)
ARCH_SKIPS = endurance:* \
	sample_size:sample_chain.*
endif

# On s390 nothing refuses a probe in the midst of an instruction, which it changes. It has no breakpoints, and doesn't
# count function call interrupts. The tests of the stack's top and of long callchains don't know its stack.
ifeq ($(ARCH),s390)
ARCH_SKIPS = group_values:* \
	overflow_handler:*_execute.* \
	overflow_handler:*_watch.* \
	overwrite_nested:* \
	pause_cost:pause_cost.interrupts.* \
	pause_foreign:* \
	sample_fields:*_breakpoint.* \
	sample_size:sample_chain.* \
	sample_stack_top:* \
	trigger:trigger_by.watchpoint.* \
	trigger:trigger_by.kernel_breakpoint.*
ARCH_FAILS = sigtrap_threads:*
endif

# With pages of 64 KiB: a record is smaller than a page, whose tests have it fill one. The kernel's own test of
# mappings has pages of 4 KiB.
ifeq ($(CONFIG),64k)
ARCH_SKIPS += lost_starves:* \
	record_too_large:record_fits.*_readonly.* \
	record_too_large:record_too_large.*
ARCH_FAILS += mmap:perf_mmap.rb.*
UNIT_SKIPS += perf_ring_buffer_pause.test_nested_too_large \
	perf_ring_buffer_pause.test_record_too_large
endif

# As programs of 32 bits: the numbers of the longest test don't fit into its arguments, and the test of a BPF program's
# filter has the registers of 64 bits. The test of long callchains makes the stack's frames of 64 bits itself.
ifeq ($(CONFIG),compat)
ARCH_SKIPS += endurance:* \
	overflow_filter:* \
	sample_size:sample_chain.* \
	trigger_life:trigger_filtered.*
endif

# The kernel's own tests have 30 seconds for each case, which slow kernels may take longer for on a busy machine.
ifneq ($(filter debug fail kasan kcsan kmsan rt,$(CONFIG)),)
POST_RACES += sigtrap_threads:sigtrap_threads.signal_stress*
endif

POST_FAILS = $(NO_PMU_FAILS) $(ARCH_FAILS)
POST_SKIPS = $(NO_PMU_SKIPS) $(NO_FAULTS_SKIPS) $(ARCH_SKIPS) $(BASE_SKIPS)

# Holes of stock, and of pre, that the series closes. Backward ones fail on pre in any case.
UNFIXED_FAILS = group_values:*.forward_* \
	lost_starves:*forward_*alone.large_after_loss \
	lost_starves:*forward_*alone.no_room \
	lost_starves:*forward_largest.large_after_loss \
	lost_starves:*forward_largest.no_room \
	mapping_mode:*forward_readonly.mprotect \
	mapping_mode:*forward_readonly.second_writable \
	no_wakeups:*forward_readonly_max.* \
	record_too_large:record_fits.forward_*.after_loss \
	record_too_large:record_too_large.forward_readonly_* \
	sample_size:sample_chain.forward_too_large* \
	sample_size:sample_stack.forward_*_for_registers.* \
	sample_size:sample_stack.forward_left_out.* \
	sample_size:sample_stack.forward_too_large.* \
	sample_size:sample_too_large.forward_* \
	set_output_inherit:*forward*.none_of_32_bits

# As <program>:<text>, without blanks: the kernel complains of it, with the text in the line that says so.
UNFIXED_COMPLAINS = sample_stack_top:kernel/events/core.c

# The pause that doesn't freeze, and what else is beyond: on kernels with the support as it was.
UNFROZEN_FAILS = overwrite_nested:nested_tight.*_too_large.* \
	pause_freeze:* \
	pause_hotplug:*.nothing_changes \
	pause_races:*.task_exits \
	pause_state:*.context_is_locked \
	pause_state:*.fdinfo_* \
	pause_state:*backward_*.lost_comes_before \
	pause_state:*.stream_of_child
# A record that turns up after the pause, if one is in flight in just these tries: pass or fail.
UNFROZEN_RACES = endurance:* \
	lossless:* \
	pause_hotplug:*.buffer_outlives_cpu \
	pause_races:*.output_redirected \
	pause_unseen:* \
	set_output_inherit:set_output_shared.*.pause_freezes
# Two CPUs that write to a buffer at the same time, if they do.
UNOWNED_RACES = set_output_inherit:set_output_shared.forward.nobody_meets \
	set_output_inherit:set_output_shared.forward.one_cpu_at_a_time

STOCK_FAILS = $(NO_PMU_FAILS) \
	$(BASE_FAILS) \
	$(UNFIXED_FAILS) \
	$(subst forward,backward,$(UNFIXED_FAILS)) \
	$(UNFROZEN_FAILS) \
	sample_size:sample_stack.backward_none.* \
	software_samples:* \
	user_page:*.not_of_a_redirected_event
STOCK_SKIPS = $(NO_PMU_SKIPS) $(NO_FAULTS_SKIPS) $(NO_CALLS_SKIPS) $(NO_TRIGGER_SKIPS) $(BASE_SKIPS)
STOCK_RACES = $(BASE_RACES) \
	$(UNFROZEN_RACES) \
	$(UNOWNED_RACES) \
	$(subst forward,backward,$(UNOWNED_RACES))
STOCK_COMPLAINS = $(UNFIXED_COMPLAINS)

# The fixes are there, but for what takes the head that is published last: on stock with them alone, and
# on core.
FIXES_FAILS = $(NO_PMU_FAILS) \
	$(UNFROZEN_FAILS) \
	record_too_large:record_too_large.*_readonly_*
FIXES_SKIPS = $(NO_PMU_SKIPS) $(NO_FAULTS_SKIPS) $(NO_CALLS_SKIPS) $(NO_TRIGGER_SKIPS) $(BASE_SKIPS)
FIXES_RACES = $(UNFROZEN_RACES)

# Of what the topic pause brings, what it needs the topic time-order for. Those before it are as FIXES says, all others
# as POST.
TOPIC_pause_FAILS = pause_state:*backward_*.lost_comes_before \
	pause_state:*.stream_of_child

CORE_FAILS = $(FIXES_FAILS)
CORE_SKIPS = $(FIXES_SKIPS)
CORE_RACES = $(FIXES_RACES)

# Without the support, whatever writes backward or pauses.
PRE_FAILS = $(NO_PMU_FAILS) \
	$(BASE_FAILS) \
	$(UNFIXED_FAILS) \
	endurance:* \
	group_values:*backward* \
	lossless:* \
	lost_starves:*backward* \
	mapping_mode:*backward* \
	no_wakeups:*backward* \
	overflow_filter:*backward* \
	overflow_handler:*backward* \
	overwrite_errors:*backward* \
	overwrite_events:* \
	overwrite_nested:overwrite_nested.* \
	overwrite_nested:*backward* \
	overwrite_nested:*forward_too_large* \
	overwrite_read:*backward* \
	overwrite_running:* \
	overwrite_set:overwrite_set.* \
	overwrite_sideband:* \
	overwrite_sizes:* \
	overwrite_stress:* \
	overwrite_walk:overwrite_walk.* \
	overwrite_writable:*backward* \
	pause_cost:* \
	pause_foreign:* \
	pause_freeze:* \
	pause_hotplug:* \
	pause_output:* \
	pause_races:* \
	pause_state:* \
	pause_unseen:* \
	record_too_large:*backward* \
	recorder_input:*.bad_filter.* \
	recorder_input:*.no_such_command.* \
	recorder_names:* \
	recorder_output:recorder_ends.* \
	recorder_output:recorder_output.* \
	recorder_trigger:recorder_trigger.* \
	sample_fields:*backward* \
	sample_ids:* \
	sample_size:*backward* \
	set_output_inherit:*backward* \
	set_output_inherit:*.pause_freezes \
	software_samples:* \
	$(NO_TRIGGER_SKIPS) \
	user_page:*.not_of_a_redirected_event \
	write_direction:*backward*
PRE_SKIPS = $(NO_PMU_SKIPS) $(NO_FAULTS_SKIPS) $(BASE_SKIPS)
PRE_COMPLAINS = $(UNFIXED_COMPLAINS)
PRE_RACES = $(BASE_RACES) \
	$(UNOWNED_RACES)
