// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD that makes calls on files fail like on a failing disk.
//
//   DISK_FAULT=CALL:ERRNO:FROM:COUNT:PART      e.g. fsync:5:3:1:run.sonde.spool
//
// The calls FROM to FROM + COUNT - 1, counted from 1 in this process, of CALL (fsync, which includes
// fdatasync; write, which includes pwrite; rename) on files whose path contains PART, or ends with it if
// written as PART$, fail with ERRNO.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_int calls;

// Cuts the $ off the part.
static int Matches(const char* path, char* part) {
  const size_t length = strlen(part), path_length = strlen(path);
  if (length == 0 || part[length - 1] != '$') return strstr(path, part) != NULL;
  part[length - 1] = 0;
  return path_length + 1 >= length && strcmp(path + path_length + 1 - length, part) == 0;
}

static int Fails(const char* call, const char* path) {
  char name[16], part[256];
  int error = 0, from = 0, count = 0;
  const char* fault = getenv("DISK_FAULT");
  if (fault == NULL || sscanf(fault, "%15[^:]:%d:%d:%d:%255s", name, &error, &from, &count, part) != 5)
    return 0;
  if (strcmp(name, call) != 0 || !Matches(path, part)) return 0;
  const int number = atomic_fetch_add(&calls, 1) + 1;
  if (number < from || number >= from + count) return 0;
  errno = error;
  return 1;
}

static int FailsOnFile(const char* call, int fd) {
  char link[64], path[4096];
  const int before = errno;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  errno = before;
  if (length < 0) return 0;
  path[length] = 0;
  return Fails(call, path);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int fsync(int fd) { return FailsOnFile("fsync", fd) ? -1 : NEXT(fsync)(fd); }
int fdatasync(int fd) { return FailsOnFile("fsync", fd) ? -1 : NEXT(fdatasync)(fd); }
ssize_t write(int fd, const void* data, size_t size) {
  return FailsOnFile("write", fd) ? -1 : NEXT(write)(fd, data, size);
}
ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  return FailsOnFile("write", fd) ? -1 : NEXT(pwrite)(fd, data, size, offset);
}
ssize_t pwrite64(int fd, const void* data, size_t size, off64_t offset) {
  return FailsOnFile("write", fd) ? -1 : NEXT(pwrite64)(fd, data, size, offset);
}
int rename(const char* from, const char* to) { return Fails("rename", to) ? -1 : NEXT(rename)(from, to); }
