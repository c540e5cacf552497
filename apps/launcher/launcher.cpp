// SPDX-License-Identifier: Apache-2.0
// Starts a program of the package with the packaged loader and libraries (docs/package.md). PREFIX/bin/NAME,
// also if reached through a symbolic link, executes
//
//   PREFIX/libexec/loader/NAME --argv0 ARGV0 --library-path PREFIX/lib[:$LD_LIBRARY_PATH] PREFIX/libexec/NAME
//   …
//
// which is ld.so(8) under the program's name, so that the kernel shows that name for the process. The
// environment is unchanged, so programs started from here find their libraries as usual. The folders of
// LD_LIBRARY_PATH come after our own, for libraries that the program opens at run time, such as NVML.
#include <limits.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

[[noreturn]] void Die(const char* what, const char* path, const char* advice) {
  std::fprintf(stderr, "gpusonde: can't %s %s: %s; %s\n", what, path, std::strerror(errno), advice);
  std::exit(125);  // as env(1) does when it fails itself
}

// Concatenates up to three strings; exits if memory runs out.
char* Joined(const char* first, const char* second, const char* third) {
  char* text = nullptr;
  if (::asprintf(&text, "%s%s%s", first, second, third) < 0) Die("join", first, "free some memory");
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  char self[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self - 1);
  if (length < 0) Die("read", "/proc/self/exe", "mount /proc");
  self[length] = '\0';
  char* name = std::strrchr(self, '/');
  *name++ = '\0';
  char* bin = std::strrchr(self, '/');
  if (bin == nullptr) Die("find", "libexec", "leave the package's folders as they were unpacked");
  *bin = '\0';
  const char* prefix = self;
  // ld.so separates folders with these characters and has no way to escape them.
  if (std::strpbrk(prefix, ":;") != nullptr) {
    std::fprintf(stderr,
                 "gpusonde: the path %s has a ':' or ';', which the loader reads as the end of a folder; "
                 "unpack the package elsewhere\n",
                 prefix);
    return 125;
  }
  char* libraries = Joined(prefix, "/lib", "");
  const char* more = std::getenv("LD_LIBRARY_PATH");
  if (more != nullptr && *more != '\0') libraries = Joined(libraries, ":", more);
  char* loader = Joined(prefix, "/libexec/loader/", name);

  const auto count = static_cast<size_t>(argc > 0 ? argc : 1);
  char** arguments = static_cast<char**>(std::calloc(count + 6, sizeof(char*)));
  if (arguments == nullptr) Die("start", name, "free some memory");
  size_t at = 0;
  arguments[at++] = loader;
  arguments[at++] = Joined("--argv0", "", "");
  arguments[at++] = argc > 0 ? argv[0] : name;
  arguments[at++] = Joined("--library-path", "", "");
  arguments[at++] = libraries;
  arguments[at++] = Joined(prefix, "/libexec/", name);
  for (size_t i = 1; i < count; ++i) arguments[at++] = argv[i];
  ::execv(loader, arguments);
  Die("start", loader, "leave the package's folders as they were unpacked, on a file system without noexec");
}
