/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The names of common system calls, by the numbers of the architecture that
 * this is compiled for: a convenience when reading, hence not complete.
 */
#ifndef _SAMPLES_SYSCALL_NAMES_H
#define _SAMPLES_SYSCALL_NAMES_H

#include <stdio.h>

#include <asm/unistd.h>

#include "trace_format.h"

static const struct {
	const char	*name;
	long		number;
} syscall_names[] = {
#ifdef __NR_accept
	{ "accept", __NR_accept },
#endif
#ifdef __NR_accept4
	{ "accept4", __NR_accept4 },
#endif
#ifdef __NR_access
	{ "access", __NR_access },
#endif
#ifdef __NR_arch_prctl
	{ "arch_prctl", __NR_arch_prctl },
#endif
#ifdef __NR_bind
	{ "bind", __NR_bind },
#endif
#ifdef __NR_bpf
	{ "bpf", __NR_bpf },
#endif
#ifdef __NR_brk
	{ "brk", __NR_brk },
#endif
#ifdef __NR_chdir
	{ "chdir", __NR_chdir },
#endif
#ifdef __NR_clock_gettime
	{ "clock_gettime", __NR_clock_gettime },
#endif
#ifdef __NR_clock_nanosleep
	{ "clock_nanosleep", __NR_clock_nanosleep },
#endif
#ifdef __NR_clone
	{ "clone", __NR_clone },
#endif
#ifdef __NR_clone3
	{ "clone3", __NR_clone3 },
#endif
#ifdef __NR_close
	{ "close", __NR_close },
#endif
#ifdef __NR_close_range
	{ "close_range", __NR_close_range },
#endif
#ifdef __NR_connect
	{ "connect", __NR_connect },
#endif
#ifdef __NR_dup
	{ "dup", __NR_dup },
#endif
#ifdef __NR_dup2
	{ "dup2", __NR_dup2 },
#endif
#ifdef __NR_dup3
	{ "dup3", __NR_dup3 },
#endif
#ifdef __NR_epoll_create1
	{ "epoll_create1", __NR_epoll_create1 },
#endif
#ifdef __NR_epoll_ctl
	{ "epoll_ctl", __NR_epoll_ctl },
#endif
#ifdef __NR_epoll_pwait
	{ "epoll_pwait", __NR_epoll_pwait },
#endif
#ifdef __NR_epoll_pwait2
	{ "epoll_pwait2", __NR_epoll_pwait2 },
#endif
#ifdef __NR_epoll_wait
	{ "epoll_wait", __NR_epoll_wait },
#endif
#ifdef __NR_eventfd2
	{ "eventfd2", __NR_eventfd2 },
#endif
#ifdef __NR_execve
	{ "execve", __NR_execve },
#endif
#ifdef __NR_execveat
	{ "execveat", __NR_execveat },
#endif
#ifdef __NR_exit
	{ "exit", __NR_exit },
#endif
#ifdef __NR_exit_group
	{ "exit_group", __NR_exit_group },
#endif
#ifdef __NR_faccessat
	{ "faccessat", __NR_faccessat },
#endif
#ifdef __NR_faccessat2
	{ "faccessat2", __NR_faccessat2 },
#endif
#ifdef __NR_fchdir
	{ "fchdir", __NR_fchdir },
#endif
#ifdef __NR_fchmodat
	{ "fchmodat", __NR_fchmodat },
#endif
#ifdef __NR_fcntl
	{ "fcntl", __NR_fcntl },
#endif
#ifdef __NR_fdatasync
	{ "fdatasync", __NR_fdatasync },
#endif
#ifdef __NR_fork
	{ "fork", __NR_fork },
#endif
#ifdef __NR_fstat
	{ "fstat", __NR_fstat },
#endif
#ifdef __NR_fsync
	{ "fsync", __NR_fsync },
#endif
#ifdef __NR_ftruncate
	{ "ftruncate", __NR_ftruncate },
#endif
#ifdef __NR_futex
	{ "futex", __NR_futex },
#endif
#ifdef __NR_getcpu
	{ "getcpu", __NR_getcpu },
#endif
#ifdef __NR_getcwd
	{ "getcwd", __NR_getcwd },
#endif
#ifdef __NR_getdents64
	{ "getdents64", __NR_getdents64 },
#endif
#ifdef __NR_getegid
	{ "getegid", __NR_getegid },
#endif
#ifdef __NR_geteuid
	{ "geteuid", __NR_geteuid },
#endif
#ifdef __NR_getgid
	{ "getgid", __NR_getgid },
#endif
#ifdef __NR_getpeername
	{ "getpeername", __NR_getpeername },
#endif
#ifdef __NR_getpgid
	{ "getpgid", __NR_getpgid },
#endif
#ifdef __NR_getpgrp
	{ "getpgrp", __NR_getpgrp },
#endif
#ifdef __NR_getpid
	{ "getpid", __NR_getpid },
#endif
#ifdef __NR_getppid
	{ "getppid", __NR_getppid },
#endif
#ifdef __NR_getrandom
	{ "getrandom", __NR_getrandom },
#endif
#ifdef __NR_getrusage
	{ "getrusage", __NR_getrusage },
#endif
#ifdef __NR_getsockname
	{ "getsockname", __NR_getsockname },
#endif
#ifdef __NR_getsockopt
	{ "getsockopt", __NR_getsockopt },
#endif
#ifdef __NR_gettid
	{ "gettid", __NR_gettid },
#endif
#ifdef __NR_gettimeofday
	{ "gettimeofday", __NR_gettimeofday },
#endif
#ifdef __NR_getuid
	{ "getuid", __NR_getuid },
#endif
#ifdef __NR_io_uring_enter
	{ "io_uring_enter", __NR_io_uring_enter },
#endif
#ifdef __NR_io_uring_setup
	{ "io_uring_setup", __NR_io_uring_setup },
#endif
#ifdef __NR_ioctl
	{ "ioctl", __NR_ioctl },
#endif
#ifdef __NR_kill
	{ "kill", __NR_kill },
#endif
#ifdef __NR_linkat
	{ "linkat", __NR_linkat },
#endif
#ifdef __NR_listen
	{ "listen", __NR_listen },
#endif
#ifdef __NR_lseek
	{ "lseek", __NR_lseek },
#endif
#ifdef __NR_madvise
	{ "madvise", __NR_madvise },
#endif
#ifdef __NR_membarrier
	{ "membarrier", __NR_membarrier },
#endif
#ifdef __NR_memfd_create
	{ "memfd_create", __NR_memfd_create },
#endif
#ifdef __NR_mkdir
	{ "mkdir", __NR_mkdir },
#endif
#ifdef __NR_mkdirat
	{ "mkdirat", __NR_mkdirat },
#endif
#ifdef __NR_mmap
	{ "mmap", __NR_mmap },
#endif
#ifdef __NR_mprotect
	{ "mprotect", __NR_mprotect },
#endif
#ifdef __NR_mremap
	{ "mremap", __NR_mremap },
#endif
#ifdef __NR_munmap
	{ "munmap", __NR_munmap },
#endif
#ifdef __NR_nanosleep
	{ "nanosleep", __NR_nanosleep },
#endif
#ifdef __NR_newfstatat
	{ "newfstatat", __NR_newfstatat },
#endif
#ifdef __NR_open
	{ "open", __NR_open },
#endif
#ifdef __NR_openat
	{ "openat", __NR_openat },
#endif
#ifdef __NR_openat2
	{ "openat2", __NR_openat2 },
#endif
#ifdef __NR_perf_event_open
	{ "perf_event_open", __NR_perf_event_open },
#endif
#ifdef __NR_pidfd_open
	{ "pidfd_open", __NR_pidfd_open },
#endif
#ifdef __NR_pidfd_send_signal
	{ "pidfd_send_signal", __NR_pidfd_send_signal },
#endif
#ifdef __NR_pipe
	{ "pipe", __NR_pipe },
#endif
#ifdef __NR_pipe2
	{ "pipe2", __NR_pipe2 },
#endif
#ifdef __NR_poll
	{ "poll", __NR_poll },
#endif
#ifdef __NR_ppoll
	{ "ppoll", __NR_ppoll },
#endif
#ifdef __NR_prctl
	{ "prctl", __NR_prctl },
#endif
#ifdef __NR_pread64
	{ "pread64", __NR_pread64 },
#endif
#ifdef __NR_prlimit64
	{ "prlimit64", __NR_prlimit64 },
#endif
#ifdef __NR_pselect6
	{ "pselect6", __NR_pselect6 },
#endif
#ifdef __NR_ptrace
	{ "ptrace", __NR_ptrace },
#endif
#ifdef __NR_pwrite64
	{ "pwrite64", __NR_pwrite64 },
#endif
#ifdef __NR_read
	{ "read", __NR_read },
#endif
#ifdef __NR_readlink
	{ "readlink", __NR_readlink },
#endif
#ifdef __NR_readlinkat
	{ "readlinkat", __NR_readlinkat },
#endif
#ifdef __NR_readv
	{ "readv", __NR_readv },
#endif
#ifdef __NR_recvfrom
	{ "recvfrom", __NR_recvfrom },
#endif
#ifdef __NR_recvmsg
	{ "recvmsg", __NR_recvmsg },
#endif
#ifdef __NR_rename
	{ "rename", __NR_rename },
#endif
#ifdef __NR_renameat2
	{ "renameat2", __NR_renameat2 },
#endif
#ifdef __NR_rmdir
	{ "rmdir", __NR_rmdir },
#endif
#ifdef __NR_rseq
	{ "rseq", __NR_rseq },
#endif
#ifdef __NR_rt_sigaction
	{ "rt_sigaction", __NR_rt_sigaction },
#endif
#ifdef __NR_rt_sigprocmask
	{ "rt_sigprocmask", __NR_rt_sigprocmask },
#endif
#ifdef __NR_rt_sigreturn
	{ "rt_sigreturn", __NR_rt_sigreturn },
#endif
#ifdef __NR_rt_sigtimedwait
	{ "rt_sigtimedwait", __NR_rt_sigtimedwait },
#endif
#ifdef __NR_sched_getaffinity
	{ "sched_getaffinity", __NR_sched_getaffinity },
#endif
#ifdef __NR_sched_yield
	{ "sched_yield", __NR_sched_yield },
#endif
#ifdef __NR_select
	{ "select", __NR_select },
#endif
#ifdef __NR_sendfile
	{ "sendfile", __NR_sendfile },
#endif
#ifdef __NR_sendmsg
	{ "sendmsg", __NR_sendmsg },
#endif
#ifdef __NR_sendto
	{ "sendto", __NR_sendto },
#endif
#ifdef __NR_set_robust_list
	{ "set_robust_list", __NR_set_robust_list },
#endif
#ifdef __NR_set_tid_address
	{ "set_tid_address", __NR_set_tid_address },
#endif
#ifdef __NR_setpgid
	{ "setpgid", __NR_setpgid },
#endif
#ifdef __NR_setsockopt
	{ "setsockopt", __NR_setsockopt },
#endif
#ifdef __NR_shutdown
	{ "shutdown", __NR_shutdown },
#endif
#ifdef __NR_signalfd4
	{ "signalfd4", __NR_signalfd4 },
#endif
#ifdef __NR_socket
	{ "socket", __NR_socket },
#endif
#ifdef __NR_socketpair
	{ "socketpair", __NR_socketpair },
#endif
#ifdef __NR_stat
	{ "stat", __NR_stat },
#endif
#ifdef __NR_statx
	{ "statx", __NR_statx },
#endif
#ifdef __NR_symlink
	{ "symlink", __NR_symlink },
#endif
#ifdef __NR_symlinkat
	{ "symlinkat", __NR_symlinkat },
#endif
#ifdef __NR_sysinfo
	{ "sysinfo", __NR_sysinfo },
#endif
#ifdef __NR_tgkill
	{ "tgkill", __NR_tgkill },
#endif
#ifdef __NR_timerfd_create
	{ "timerfd_create", __NR_timerfd_create },
#endif
#ifdef __NR_timerfd_settime
	{ "timerfd_settime", __NR_timerfd_settime },
#endif
#ifdef __NR_tkill
	{ "tkill", __NR_tkill },
#endif
#ifdef __NR_umask
	{ "umask", __NR_umask },
#endif
#ifdef __NR_uname
	{ "uname", __NR_uname },
#endif
#ifdef __NR_unlink
	{ "unlink", __NR_unlink },
#endif
#ifdef __NR_unlinkat
	{ "unlinkat", __NR_unlinkat },
#endif
#ifdef __NR_utimensat
	{ "utimensat", __NR_utimensat },
#endif
#ifdef __NR_wait4
	{ "wait4", __NR_wait4 },
#endif
#ifdef __NR_waitid
	{ "waitid", __NR_waitid },
#endif
#ifdef __NR_write
	{ "write", __NR_write },
#endif
#ifdef __NR_writev
	{ "writev", __NR_writev },
#endif
};

/* NULL if the number isn't known. */
static inline const char *syscall_name(long number)
{
	for (size_t i = 0; i < ARRAY_SIZE(syscall_names); i++)
		if (syscall_names[i].number == number)
			return syscall_names[i].name;
	return NULL;
}

#endif /* _SAMPLES_SYSCALL_NAMES_H */
