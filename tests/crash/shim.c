/* Makes the disk fail, and ends a process in the middle of writing. Loaded by LD_PRELOAD (see shim.py).

   Calls that change a file below the marked folder are counted. Armed, the call with the wanted number
     1  never happens: the process is killed with -9,
     2  and every later one fails: a sync with EIO,
     3  and every later one fails: a write with ENOSPC.
   In a server, which nobody arms, the same is switched on by files: FOLDER/fsync-fails and FOLDER/disk-full, where
   FOLDER is $GOEX_SHIM_FOLDER. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE = 1, SYNC = 2, OTHER = 4 };

static char marked[PATH_MAX];
static long counted[3], wanted;
static int how, kinds;

void goex_arm(const char *folder, long number, int what, int of) {
    snprintf(marked, sizeof marked, "%s", folder);
    counted[0] = counted[1] = counted[2] = 0;
    wanted = number, how = what, kinds = of;
}

long goex_counted(int kind) { return counted[kind == WRITE ? 0 : kind == SYNC ? 1 : 2]; }

static int is_marked(const char *path) { return marked[0] && strncmp(path, marked, strlen(marked)) == 0; }

static int fd_is_marked(int fd) {
    char link[64], path[PATH_MAX];
    if (!marked[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return is_marked(path);
}

static int servers_only;

void goex_servers_only(void) { servers_only = 1; }

static int switched(const char *name) {
    static const char *folder;
    char path[PATH_MAX];
    if (servers_only) return 0;
    if (!folder) folder = getenv("GOEX_SHIM_FOLDER");
    if (!folder || !*folder) return 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

/* Whether this call fails; it doesn't come back from 1. */
static int due(int kind) {
    counted[kind == WRITE ? 0 : kind == SYNC ? 1 : 2]++;
    if (!wanted || !(kinds & kind)) return 0;
    long seen = (kinds & WRITE ? counted[0] : 0) + (kinds & SYNC ? counted[1] : 0) + (kinds & OTHER ? counted[2] : 0);
    if (how == 1 && seen == wanted) kill(getpid(), SIGKILL);
    if (how == 2 && kind == SYNC && seen >= wanted) { errno = EIO; return 1; }
    if (how == 3 && kind == WRITE && seen >= wanted) { errno = ENOSPC; return 1; }
    return 0;
}

static int regular(int fd) { return (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY && lseek(fd, 0, SEEK_CUR) >= 0; }

static int write_fails(int fd) {
    int saved = errno;
    if (fd_is_marked(fd) && due(WRITE)) return 1;
    if (regular(fd) && switched("disk-full")) { errno = ENOSPC; return 1; }
    errno = saved;
    return 0;
}

static int sync_fails(int fd) {
    if (fd_is_marked(fd) && due(SYNC)) return 1;
    if (switched("fsync-fails")) { errno = EIO; return 1; }
    return 0;
}

#define REAL(name) \
    static __typeof__(name) *real; \
    if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void *data, size_t size) {
    REAL(write);
    return fd > 2 && write_fails(fd) ? -1 : real(fd, data, size);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    REAL(pwrite);
    return write_fails(fd) ? -1 : real(fd, data, size, at);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    REAL(pwrite64);
    return write_fails(fd) ? -1 : real(fd, data, size, at);
}
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) {
    REAL(pwritev);
    return write_fails(fd) ? -1 : real(fd, parts, count, at);
}
int fsync(int fd) {
    REAL(fsync);
    return sync_fails(fd) ? -1 : real(fd);
}
int fdatasync(int fd) {
    REAL(fdatasync);
    return sync_fails(fd) ? -1 : real(fd);
}
int posix_fallocate(int fd, off_t at, off_t size) {
    REAL(posix_fallocate);
    return write_fails(fd) ? ENOSPC : real(fd, at, size);
}
int ftruncate(int fd, off_t size) {
    REAL(ftruncate);
    if (fd_is_marked(fd)) due(OTHER);
    return real(fd, size);
}
int ftruncate64(int fd, off64_t size) {
    REAL(ftruncate64);
    if (fd_is_marked(fd)) due(OTHER);
    return real(fd, size);
}
int unlink(const char *path) {
    REAL(unlink);
    if (is_marked(path)) due(OTHER);
    return real(path);
}
int rename(const char *from, const char *to) {
    REAL(rename);
    if (is_marked(from)) due(OTHER);
    return real(from, to);
}
