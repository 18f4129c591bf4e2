/* Breaks mailroom sendmail on purpose, as LD_PRELOAD: what it renames into the spool is not flushed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/stat.h>

int fsync(int fd) {
  struct stat status;
  if (fstat(fd, &status) == 0 && S_ISDIR(status.st_mode)) return 0;
  return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}
