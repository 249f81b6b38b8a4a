/* Starts a program for arm64 by qemu-user, for scripts/lib/arm64. Two things are made of this file: the program that the
 * kernel calls, and with SHIM a library that is loaded into qemu.
 *
 * qemu keeps what it shows as /proc/self/maps and the like in temporary files of its own. A process whose limit of written
 * files is zero, such as lakemill-sql, would be ended for them: so that limit isn't set here. (Those of memory qemu doesn't set
 * either.)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef SHIM

/* qemu makes the calls of the program by this function. */
long syscall(long number, ...) {
    va_list rest;
    va_start(rest, number);
    long given[6];
    for (int at = 0; at < 6; at++) given[at] = va_arg(rest, long);
    va_end(rest);
    // Without a new limit the call only tells the present one.
    if (number == SYS_prlimit64 && given[1] == RLIMIT_FSIZE) given[2] = 0;
    register long d __asm__("r10") = given[3];
    register long e __asm__("r8") = given[4];
    register long f __asm__("r9") = given[5];
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(given[0]), "S"(given[1]), "d"(given[2]), "r"(d), "r"(e), "r"(f)
                     : "rcx", "r11", "memory");
    if (result < 0 && result > -4096) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

#else

/* The kernel's arguments are this program, the path of the other one, the name that it was called by, and its own. */
int main(int argc, char **argv) {
    if (argc < 3) return 126;
    char **args = calloc((size_t)argc + 8, sizeof *args);
    if (!args) return 126;
    int n = 0;
    args[n++] = LOADER;
    args[n++] = "--preload";
    args[n++] = LIBRARY;
    args[n++] = QEMU;
    args[n++] = "-L";
    args[n++] = LIBRARIES;
    args[n++] = "-0";
    args[n++] = argv[2];
    args[n++] = argv[1];
    for (int at = 3; at < argc; at++) args[n++] = argv[at];
    execv(LOADER, args);
    perror(LOADER);
    return 126;
}

#endif
