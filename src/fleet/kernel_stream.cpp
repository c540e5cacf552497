// SPDX-License-Identifier: Apache-2.0
#include "fleet/kernel_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>

#include "base/fd.h"
#include "base/program_file.h"
#include "base/text.h"

namespace gpusonde::fleet {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxNames = 65'536;
// 11 days: sums of durations, scaled, stay far below 2^63.
constexpr int64_t kMaxDurationNs = 1'000'000'000'000'000;

// The words of a line, removed from the front.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line) {}

  std::string_view Next() {
    const size_t end = rest_.find(' ');
    const std::string_view word = rest_.substr(0, end);
    rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
    return word;
  }
  // Parses a nonnegative integer within range.
  template <class Integer>
  bool Number(Integer& number) {
    const std::optional<Integer> parsed = ParseNumber<Integer>(Next());
    number = parsed.value_or(0);
    return parsed.has_value() && number >= 0;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

std::optional<KernelStream::Kind> CopyKind(std::string_view word) {
  if (word == "htod") return KernelStream::Kind::kToDevice;
  if (word == "dtoh") return KernelStream::Kind::kFromDevice;
  if (word == "dtod") return KernelStream::Kind::kWithinDevice;
  return std::nullopt;
}

bool ParseKernel(Words words, size_t names, KernelStream::Operation& kernel) {
  bool good = words.Number(kernel.stream) && words.Number(kernel.name) && kernel.name < names;
  for (uint32_t& extent : kernel.grid) good = good && words.Number(extent);
  for (uint32_t& extent : kernel.block) good = good && words.Number(extent);
  return good && words.Number(kernel.shared_bytes) && words.Number(kernel.gap_ns) &&
         words.Number(kernel.duration_ns) && kernel.duration_ns <= kMaxDurationNs && words.rest().empty();
}

bool ParseTransfer(Words words, bool is_copy, KernelStream::Operation& transfer) {
  if (!words.Number(transfer.stream)) return false;
  transfer.kind = KernelStream::Kind::kSet;
  if (is_copy) {
    const auto kind = CopyKind(words.Next());
    if (!kind.has_value()) return false;
    transfer.kind = *kind;
  }
  return words.Number(transfer.bytes) && words.Number(transfer.gap_ns) &&
         words.Number(transfer.duration_ns) && words.rest().empty();
}

// False for an invalid line.
bool ParseLine(std::string_view line, KernelStream& stream) {
  Words words(line);
  const std::string_view kind = words.Next();
  if (kind == "source" || kind == "licence" || kind == "mark") return true;
  if (kind == "device") {
    stream.device = words.rest();
    return true;
  }
  if (kind == "name") {
    size_t index = 0;
    if (!words.Number(index) || index != stream.names.size() || index >= kMaxNames) return false;
    stream.names.emplace_back(words.rest());
    return true;
  }
  KernelStream::Operation operation;
  const bool is_copy = kind == "c";
  if (kind == "k" ? !ParseKernel(words, stream.names.size(), operation)
                  : (!is_copy && kind != "m") || !ParseTransfer(words, is_copy, operation))
    return false;
  stream.operations.push_back(operation);
  return true;
}

}  // namespace

Result<KernelStream> ParseKernelStream(std::string_view text) {
  KernelStream stream;
  for (size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = TakeLine(text);
    if (number == 1 ? line != "kernel-stream 1" : !ParseLine(line, stream))
      return Fail(ErrorCode::kCorrupt,
                  fmt::format("line {} isn't one of a kernel stream of version 1", number));
  }
  if (stream.operations.empty()) return Fail(ErrorCode::kCorrupt, "a kernel stream without any operation");
  return stream;
}

Result<std::vector<KernelStream>> ReadKernelStreams(const std::string& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().extension() == ".stream") files.push_back(entry->path());
  if (files.empty())
    return Fail(ErrorCode::kNotFound, fmt::format("{}: no kernel streams (*.stream) there{}", folder,
                                                  error ? ": " + error.message() : std::string()));
  std::ranges::sort(files);
  std::vector<KernelStream> streams;
  for (const fs::path& file : files) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(file.string()));
    auto stream = ParseKernelStream(text);
    if (!stream.has_value()) return Fail(std::move(stream).error().With(file.string()));
    stream->source = file.stem().string();
    streams.push_back(*std::move(stream));
  }
  return streams;
}

Fingerprint FingerprintOf(const KernelStream& stream) {
  FingerprintBuilder builder;
  for (const KernelStream::Operation& operation : stream.operations)
    if (operation.kind == KernelStream::Kind::kKernel)
      builder.Add(operation.stream, stream.names[operation.name], operation.duration_ns);
  return builder.Build();
}

std::string KernelStreamFolder() {
  if (const Result<std::string> installed = InstallFolder(); installed.has_value()) {
    const std::string folder = *installed + "/data/kernel-streams";
    std::error_code ignored;
    if (fs::is_directory(folder, ignored)) return folder;
  }
  return GPUSONDE_KERNEL_STREAMS_FOLDER;
}

}  // namespace gpusonde::fleet
