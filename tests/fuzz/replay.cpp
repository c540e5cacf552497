// SPDX-License-Identifier: Apache-2.0
// Runs a fuzzer over the files of a folder, once each: replay NAME FOLDER. Exit status 1 if there are none: a
// test must not pass because its corpus is missing.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

#include "fuzzers.h"

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const auto fuzzer = std::ranges::find(Fuzzers(), std::string_view(arguments[1]), &Fuzzer::name);
  if (fuzzer == Fuzzers().end()) return 2;
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(arguments[2])) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    fuzzer->run(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    ++files;
  }
  std::printf("%d files\n", files);
  return files > 0 ? 0 : 1;
}
