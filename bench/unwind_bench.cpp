// SPDX-License-Identifier: Apache-2.0
// How long the unwind tables of large files take to compile, and how large they are, as a result for
// bench/run.py: bench_unwind FILE.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/json_writer.h"
#include "base/time.h"
#include "unwind/compile.h"

namespace gpusonde {
namespace {

constexpr int kRepetitions = 5;

struct Subject {
  const char* name;
  std::vector<std::string> paths;  // the first that exists
};

void Measure(const Subject& subject, JsonWriter& json) {
  const auto path = std::ranges::find_if(subject.paths, [](const std::string& candidate) {
    std::error_code ignored;
    return std::filesystem::is_regular_file(candidate, ignored);
  });
  if (path == subject.paths.end()) {
    json.BeginObject().Field("name", fmt::format("unwind table of {}", subject.name));
    json.Field("value", std::optional<double>());
    json.Field("unit", "ms").Field("note", fmt::format("{} is not installed", subject.name)).EndObject();
    return;
  }
  std::array<double, kRepetitions> times_ms{};
  size_t bytes = 0;
  int64_t functions = 0;
  for (double& time_ms : times_ms) {
    const Result<Fd> fd = Open(*path, O_RDONLY);
    unwind::RuleSet rules;
    const int64_t start_ns = MonotonicNow();
    const auto table = fd.has_value() ? unwind::CompileFile(fd->get(), *path, rules)
                                      : Result<unwind::Table>(std::unexpected(fd.error()));
    time_ms = static_cast<double>(MonotonicNow() - start_ns) / 1e6;
    if (!table.has_value()) {
      fmt::print(stderr, "bench_unwind: {}\n", table.error().message);
      std::exit(1);
    }
    bytes = (table->rows.size() + 2 * table->pages.size()) * sizeof(uint32_t);
    functions = table->functions;
  }
  std::ranges::sort(times_ms);
  json.BeginObject().Field("name",
                           fmt::format("unwind table of {} made ({} functions)", subject.name, functions));
  json.Field("value", times_ms[kRepetitions / 2]).Field("unit", "ms");
  json.Field("spread", fmt::format("{:.3g}-{:.3g}", times_ms.front(), times_ms.back())).EndObject();
  json.BeginObject().Field("name", "its size").Field("value", static_cast<double>(bytes) / (1 << 20));
  json.Field("unit", "MiB")
      .Field("note", fmt::format("{} has {:.0f} MiB", *path,
                                 static_cast<double>(std::filesystem::file_size(*path)) / (1 << 20)));
  json.EndObject();
}

}  // namespace
}  // namespace gpusonde

int main(int count, char** arguments) {
  using namespace gpusonde;  // NOLINT(google-build-using-namespace): a program of its own
  if (count != 2) {
    fmt::print(stderr, "usage: bench_unwind FILE\n");
    return 2;
  }
  JsonWriter json;
  json.BeginObject().Key("rows").BeginArray();
  Measure({"libc", {"/lib/x86_64-linux-gnu/libc.so.6"}}, json);
  Measure({"libLLVM", {"/usr/lib/x86_64-linux-gnu/libLLVM.so.19.1", "/usr/lib/llvm-19/lib/libLLVM.so.19.1"}},
          json);
  Measure({"chromium", {"/usr/lib/chromium/chromium"}}, json);
  json.EndArray().EndObject();
  return WriteFileAtomically(arguments[1], json.Take()).has_value() ? 0 : 1;
}
