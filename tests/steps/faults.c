/* Preloaded: the n-th call of one function on a path fails with an error of the system.
 *
 * FAULT_PATH: part of the path of the files that count; FAULT_CALL: open, write, fsync, truncate, rename or
 * short (a write of half the bytes); FAULT_NTH: which one, 0 none; FAULT_ERRNO; FAULT_STICKY: all later ones
 * too, as on a full disk; FAULT_LOG: a file that gets the number of such calls.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int calls;
static int counts(const char *path) {
    const char *part = getenv("FAULT_PATH");
    return part && path && strstr(path, part);
}
static int counts_fd(int fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return counts(path);
}
/* at each call: a process may end without its destructors */
static void tell(int number) {
    const char *log = getenv("FAULT_LOG");
    char text[16];
    int file = log ? (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT, 0600) : -1;
    if (file < 0) return;
    syscall(SYS_write, file, text, (size_t)snprintf(text, sizeof text, "%d\n", number));
    close(file);
}
/* 1 if this call is to fail; errno is set */
static int fails(const char *call, int matters) {
    const char *chosen = getenv("FAULT_CALL"), *nth = getenv("FAULT_NTH");
    if (!matters || !chosen || !nth || strcmp(chosen, call)) return 0;
    int number = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST), wanted = atoi(nth);
    tell(number);
    if (!wanted || number < wanted || (number > wanted && !getenv("FAULT_STICKY"))) return 0;
    const char *error = getenv("FAULT_ERRNO");
    errno = error ? atoi(error) : EIO;
    return 1;
}
#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
int open(const char *path, int flags, ...) {
    va_list rest; va_start(rest, flags); int mode = va_arg(rest, int); va_end(rest);
    REAL(open);
    return fails("open", counts(path)) ? -1 : real(path, flags, mode);
}
int open64(const char *path, int flags, ...) {
    va_list rest; va_start(rest, flags); int mode = va_arg(rest, int); va_end(rest);
    REAL(open64);
    return fails("open", counts(path)) ? -1 : real(path, flags, mode);
}
int openat(int fd, const char *path, int flags, ...) {
    va_list rest; va_start(rest, flags); int mode = va_arg(rest, int); va_end(rest);
    REAL(openat);
    return fails("open", counts(path)) ? -1 : real(fd, path, flags, mode);
}
#define WRITE(name, parameters, arguments, halved) \
    ssize_t name parameters { \
        REAL(name); \
        int matters = counts_fd(fd); \
        if (fails("write", matters)) return -1; \
        if (size > 1 && fails("short", matters)) return real halved; \
        return real arguments; \
    }
WRITE(write, (int fd, const void *bytes, size_t size), (fd, bytes, size), (fd, bytes, size / 2))
WRITE(pwrite, (int fd, const void *bytes, size_t size, off_t at), (fd, bytes, size, at), (fd, bytes, size / 2, at))
WRITE(pwrite64, (int fd, const void *bytes, size_t size, off64_t at), (fd, bytes, size, at), (fd, bytes, size / 2, at))
int fsync(int fd) { REAL(fsync); return fails("fsync", counts_fd(fd)) ? -1 : real(fd); }
int fdatasync(int fd) { REAL(fdatasync); return fails("fsync", counts_fd(fd)) ? -1 : real(fd); }
int ftruncate(int fd, off_t size) { REAL(ftruncate); return fails("truncate", counts_fd(fd)) ? -1 : real(fd, size); }
int ftruncate64(int fd, off64_t size) { REAL(ftruncate64); return fails("truncate", counts_fd(fd)) ? -1 : real(fd, size); }
int rename(const char *from, const char *to) {
    REAL(rename);
    return fails("rename", counts(from) || counts(to)) ? -1 : real(from, to);
}
int renameat(int from_fd, const char *from, int to_fd, const char *to) {
    REAL(renameat);
    return fails("rename", counts(from) || counts(to)) ? -1 : real(from_fd, from, to_fd, to);
}
