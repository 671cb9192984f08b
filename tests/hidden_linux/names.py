"""List what Python's modules have on Linux and not on macOS, as far as a product could use it.

From the conditions of typeshed and of Python's documentation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

LINUX_NAMES: Mapping[str, Sequence[str]] = {
    "os": (
        *("memfd_create", "eventfd", "eventfd_read", "eventfd_write", "timerfd_create"),
        *("pidfd_open", "setns", "unshare", "splice", "copy_file_range", "getrandom", "pipe2"),
        *("sched_getaffinity", "sched_setaffinity", "sched_yield", "sched_setscheduler"),
        *("posix_fadvise", "posix_fallocate", "fdatasync", "getxattr", "setxattr", "listxattr"),
        *("removexattr", "O_DIRECT", "O_TMPFILE", "O_PATH", "O_NOATIME", "waitid", "getresuid"),
    ),
    "signal": ("sigwaitinfo", "sigtimedwait", "SIGRTMIN", "SIGRTMAX", "SIGPWR", "SIGPOLL"),
    "socket": (
        *("SOCK_CLOEXEC", "SOCK_NONBLOCK", "TCP_USER_TIMEOUT", "TCP_QUICKACK", "TCP_CORK"),
        *("TCP_DEFER_ACCEPT", "AF_NETLINK", "AF_PACKET", "SO_PEERCRED", "SO_BINDTODEVICE"),
    ),
    "select": ("epoll",),
    "resource": ("RUSAGE_THREAD", "prlimit"),
    "time": ("CLOCK_BOOTTIME", "CLOCK_TAI", "pthread_getcpuclockid"),
    "fcntl": ("F_SETPIPE_SZ", "F_ADD_SEALS", "F_OFD_SETLK", "F_OFD_SETLKW", "F_NOTIFY"),
}
LINUX_DIRECTORIES = ("/proc", "/sys/", "/dev/shm")
