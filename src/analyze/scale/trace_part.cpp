// SPDX-License-Identifier: Apache-2.0
#include "analyze/scale/trace_part.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <regex>
#include <utility>

#include "analyze/detail/confirm_unrecorded.h"
#include "analyze/scale/in_order.h"
#include "analyze/temporary_file.h"
#include "base/text.h"
#include "base/usable_cpus.h"

namespace gpusonde::analyze {
namespace {

// The trace's information, with the rank from the file's name if --rank-from was given.
Result<importers::TraceInfo> Describe(const std::string& path, const importers::TraceInfo& info,
                                      const Options& options) {
  importers::TraceInfo described = info;
  if (!options.rank_from.has_value()) return described;
  std::smatch match;
  const std::string name = path.substr(path.rfind('/') + 1);
  if (!std::regex_search(name, match, *options.rank_from) || match.size() < 2)
    return Fail(ErrorCode::kInvalidArgument, path + ": --rank-from finds no rank in its name");
  const std::string digits = match[1];
  described.rank = ParseNumber<int64_t>(digits);
  if (!described.rank.has_value())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: --rank-from finds '{}', which is not a number", path, digits));
  return described;
}

Result<uint64_t> SizeOf(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return Fail(ErrnoError(errno, path));
  return static_cast<uint64_t>(info.st_size);
}

}  // namespace

bool TracePart::HasOnlyKnownNames(const RankResult& rank, size_t names) {
  const auto known = [names](const auto& one) { return one.name < names; };
  return std::ranges::all_of(rank.kernels.strata, known) &&
         std::ranges::all_of(rank.kernels.streams, known) && std::ranges::all_of(rank.collectives, known) &&
         std::ranges::all_of(
             rank.steps.slow,
             [&](const SlowStep& slow) { return std::ranges::all_of(slow.kernels, known); }) &&
         std::ranges::all_of(rank.syncs.rows, known) &&
         std::ranges::all_of(rank.sequences.sequences,
                             [names](const KernelSequence& sequence) {
                               return std::ranges::all_of(sequence.names,
                                                          [names](uint32_t name) { return name < names; });
                             }) &&
         std::ranges::all_of(rank.kernels.names, [names](const auto& one) { return one.first < names; });
}

FollowOptions FollowOptionsOf(const Options& options) {
  return {.communication = options.communication, .steps = options.steps, .sequences = options.sequences};
}

int ThreadsOf(const Options& options) { return options.threads > 0 ? options.threads : UsableCpus(); }

Result<Division> Division::Make(const std::vector<std::string>& paths, uint64_t parts) {
  Division division;
  division.parts_ = parts;
  if (paths.size() < parts) return division;
  if (parts == 1) {
    division.owners_.assign(paths.size(), 0);
    return division;
  }
  std::vector<uint64_t> sizes;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(const uint64_t size, SizeOf(path));
    sizes.push_back(size);
  }
  // Largest first, each to the least loaded part: at most a third worse than optimal (Graham 1969).
  std::vector<size_t> order(paths.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&sizes](size_t trace) { return sizes[trace]; });
  std::vector<uint64_t> loads(parts);
  division.owners_.resize(paths.size());
  for (const size_t trace : order) {
    const auto least = std::ranges::min_element(loads);
    division.owners_[trace] = static_cast<uint64_t>(least - loads.begin());
    *least += sizes[trace];
  }
  return division;
}

size_t Division::CountOf(size_t traces, uint64_t part) const {
  return IsShared() ? traces : static_cast<size_t>(std::ranges::count(owners_, part));
}

std::optional<Share> Division::Of(size_t trace, uint64_t part) const {
  if (owners_.empty()) return Share{.part = part, .parts = parts_};
  return owners_[trace] == part ? std::optional<Share>(Share()) : std::nullopt;
}

bool Division::ReadsDetail(size_t trace, uint64_t part) const {
  return owners_.empty() ? trace % parts_ == part : owners_[trace] == part;
}

namespace {

// At most what temporary files need: SQLite has 60 bytes or more for a kernel and JSON 250, for which records
// take up to 120; JSON is compressed by about 15.
uint64_t EstimateTemporarySpace(const std::vector<std::string>& paths) {
  uint64_t bytes = 0;
  for (const std::string& path : paths) {
    constexpr uint64_t kPerByte = 2;
    constexpr uint64_t kPerCompressedByte = 8;
    const auto size = SizeOf(path);
    const bool compressed = path.ends_with(".gz") || path.ends_with(".zst");
    if (size.has_value()) bytes += *size * (compressed ? kPerCompressedByte : kPerByte);
  }
  return bytes;
}

Result<TracePart> ReadPart(const std::string& path, const std::optional<Share>& share, bool detail,
                           const Options& options, int threads) {
  TracePart part;
  part.path = path;
  if (!share.has_value()) return part;
  ASSIGN_OR_RETURN(const auto trace, importers::OpenTrace(path, {.partial = options.partial,
                                                                 .kernels_only = options.kernel_summary,
                                                                 .temp_limit = options.temp_limit}));
  ASSIGN_OR_RETURN(part.state, ReadTrace(*trace, {.path = path,
                                                  .threads = threads,
                                                  .partial = options.partial,
                                                  .keep_records = !options.kernel_summary,
                                                  .share = *share}));
  ASSIGN_OR_RETURN(part.info, Describe(path, trace->info(), options));
  part.whole = share->parts == 1;
  if (part.whole) {
    TRY(ConfirmUnrecorded(path, part.info.format, options, part.state));
    ASSIGN_OR_RETURN(part.ranks, FollowProcesses(part.state, threads, FollowOptionsOf(options)));
    part.state.DropRecords();
  }
  if (detail) {
    ASSIGN_OR_RETURN(part.detail, ReadDetail(path, trace->info().format, options));
  }
  return part;
}

}  // namespace

Result<TracePart> ReadOpened(importers::Trace& trace, const std::string& path, const Options& options) {
  const int threads = ThreadsOf(options);
  TracePart part;
  part.path = path;
  ASSIGN_OR_RETURN(part.state, ReadTrace(trace, {.path = path, .threads = threads}));
  part.info = trace.info();
  part.whole = true;
  ASSIGN_OR_RETURN(part.ranks, FollowProcesses(part.state, threads, FollowOptionsOf(options)));
  part.state.DropRecords();
  return part;
}

void LimitTemporarySpace(const std::vector<std::string>& paths, const Options& options) {
  TemporaryFile::LimitSpace(options.temp_limit, EstimateTemporarySpace(paths));
}

Status ReadParts(const std::vector<std::string>& paths, const Options& options, const Division& division,
                 uint64_t part, const std::function<void(TracePart)>& take) {
  LimitTemporarySpace(paths, options);
  const auto threads = static_cast<size_t>(ThreadsOf(options));
  const size_t at_once = std::max<size_t>(1, std::min(threads, division.CountOf(paths.size(), part)));
  const auto read = [&](size_t i) {
    return ReadPart(paths[i], division.Of(i, part), division.ReadsDetail(i, part), options,
                    static_cast<int>((threads + at_once - 1) / at_once));
  };
  return MakeInOrder<TracePart>(paths.size(), at_once, read, take);
}

}  // namespace gpusonde::analyze
