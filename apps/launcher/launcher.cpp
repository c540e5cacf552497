// SPDX-License-Identifier: Apache-2.0
// Starts a program of the package with the loader and the libraries that came with it
// (docs/decisions/0013-a-package-with-its-own-loader.md). As PREFIX/bin/NAME, however it was reached, it
// becomes
//
//   PREFIX/libexec/loader/NAME --argv0 ARGV0 --library-path PREFIX/lib[:$LD_LIBRARY_PATH] PREFIX/libexec/NAME
//   …
//
// which is ld.so(8) under the program's name, so that the kernel calls the process by it. The environment
// stays as it is: programs that the program starts find their libraries as ever. What LD_LIBRARY_PATH names
// comes after our own, for libraries that the program opens at run time, as NVML.
#include <limits.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

[[noreturn]] void Give(const char* what, const char* path, const char* advice) {
  std::fprintf(stderr, "gpusonde: can't %s %s: %s; %s\n", what, path, std::strerror(errno), advice);
  std::exit(125);  // as env(1), when it fails itself
}

// Joins up to three texts; the process ends when memory does.
char* Joined(const char* first, const char* second, const char* third) {
  char* text = nullptr;
  if (::asprintf(&text, "%s%s%s", first, second, third) < 0) Give("join", first, "free some memory");
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  char self[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self - 1);
  if (length < 0) Give("read", "/proc/self/exe", "mount /proc");
  self[length] = '\0';
  char* name = std::strrchr(self, '/');
  *name++ = '\0';
  char* bin = std::strrchr(self, '/');
  if (bin == nullptr) Give("find", "libexec", "leave the package's folders as they were unpacked");
  *bin = '\0';
  const char* prefix = self;
  // ld.so separates folders by these, and knows no way to quote them.
  if (std::strpbrk(prefix, ":;") != nullptr) {
    std::fprintf(stderr,
                 "gpusonde: the path %s has a ':' or ';', which the loader takes for the end of a folder; "
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
  if (arguments == nullptr) Give("start", name, "free some memory");
  size_t at = 0;
  arguments[at++] = loader;
  arguments[at++] = Joined("--argv0", "", "");
  arguments[at++] = argc > 0 ? argv[0] : name;
  arguments[at++] = Joined("--library-path", "", "");
  arguments[at++] = libraries;
  arguments[at++] = Joined(prefix, "/libexec/", name);
  for (size_t i = 1; i < count; ++i) arguments[at++] = argv[i];
  ::execv(loader, arguments);
  Give("start", loader, "leave the package's folders as they were unpacked, on a file system without noexec");
}
