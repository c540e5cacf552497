// SPDX-License-Identifier: Apache-2.0
#include "analyze/scale/crew_job.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include "analyze/archive.h"
#include "analyze/detail/confirm_unrecorded.h"
#include "analyze/report_builder.h"
#include "analyze/scale/run_offer.h"
#include "analyze/scale/trace_part.h"

namespace gpusonde::analyze {
namespace {

// Messages are built, sent and parsed in the second-level cache.
constexpr size_t kMessageBytes = size_t{1} << 20;

// Files of other ranks that this one has open at the same time, of usually 1,024 descriptors.
constexpr size_t kMaxOpenFiles = 256;

// The head of a message, followed by records of it; a special `trace` means that no more follow.
using Heading = RunOffer::Place;
constexpr uint64_t kEnd = ~uint64_t{0};

auto Damaged() { return Fail(ErrorCode::kInternal, "a message between ranks is damaged"); }

std::string MessageOf(Heading heading) {
  ArchiveWriter archive;
  archive(heading);
  return archive.Take();
}

// Traces that all ranks read together, as one rank knows them.
class SharedTraces {
 public:
  SharedTraces(const Crew& crew, const Options& options, std::vector<TracePart>& parts)
      : crew_(crew), options_(options), parts_(parts) {}

  // Joins the parts and analyses the processes that this rank owns.
  Status PutTogether() {
    TRY(MergeSums());
    TRY(ExchangeRecords());
    for (size_t trace = 0; trace < parts_.size(); ++trace) {
      TRY(parts_[trace].state.Finish());
      TRY(ConfirmUnrecorded(parts_[trace].path, parts_[trace].info.format, options_, parts_[trace].state));
      std::vector<size_t> mine;
      for (size_t process = 0; process < owners_[trace].size(); ++process)
        if (owners_[trace][process] == crew_.rank()) mine.push_back(process);
      ASSIGN_OR_RETURN(parts_[trace].ranks, FollowProcesses(parts_[trace].state, mine, ThreadsOf(options_),
                                                            FollowOptionsOf(options_)));
    }
    return {};
  }

 private:
  // Numbers names and ranks equally everywhere and assigns processes to owners.
  Status MergeSums() {
    ArchiveWriter archive;
    for (TracePart& part : parts_) {
      std::vector<uint64_t> sizes = SizesOf(part.state);
      archive(part.state);
      archive(sizes);
    }
    ASSIGN_OR_RETURN(const std::vector<std::string> all, crew_.GatherAll(archive.Take()));
    std::vector<ArchiveReader> readers(all.begin(), all.end());
    std::vector<uint64_t> loads(all.size());
    for (TracePart& part : parts_) {
      TraceState together;
      std::vector<uint64_t> bytes;
      Renumbering change;
      for (size_t rank = 0; rank < readers.size(); ++rank) {
        TraceState sums;
        std::vector<uint64_t> sizes;
        readers[rank](sums);
        readers[rank](sizes);
        if (!readers[rank].ok()) return Fail(ErrorCode::kInternal, "a message between ranks is damaged");
        Renumbering here = together.Adopt(sums);
        AddSizes(sums, sizes, together, bytes);
        if (static_cast<int>(rank) == crew_.rank()) change = std::move(here);
      }
      owners_.push_back(Assign(bytes, loads));
      together.TakeRecords(std::move(part.state), std::move(change));
      part.state = std::move(together);
    }
    return {};
  }

  // Of the records of each process.
  static std::vector<uint64_t> SizesOf(const TraceState& state) {
    std::vector<uint64_t> sizes;
    for (const ProcessRecords& process : state.processes())
      sizes.push_back(process.gpu.count() * sizeof(GpuRecord) + process.calls.count() * sizeof(CallRecord) +
                      process.syncs.count() * sizeof(SyncRecord));
    return sizes;
  }
  static void AddSizes(const TraceState& sums, const std::vector<uint64_t>& sizes, const TraceState& together,
                       std::vector<uint64_t>& bytes) {
    const std::vector<int64_t>& processes = together.ranks().processes();
    bytes.resize(processes.size());
    for (size_t i = 0; i < sizes.size(); ++i) {
      const auto found = std::ranges::find(processes, sums.ranks().processes()[i]);
      bytes[static_cast<size_t>(found - processes.begin())] += sizes[i];
    }
  }
  // Assigns the largest process first, to the least loaded rank.
  static std::vector<int> Assign(const std::vector<uint64_t>& bytes, std::vector<uint64_t>& loads) {
    std::vector<size_t> order(bytes.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, std::greater<>(), [&](size_t process) { return bytes[process]; });
    std::vector<int> owners(bytes.size());
    for (const size_t process : order) {
      const auto least = std::ranges::min_element(loads);
      owners[process] = static_cast<int>(least - loads.begin());
      *least += bytes[process];
    }
    return owners;
  }

  Status ExchangeRecords() {
    for (TracePart& part : parts_) TRY(part.state.Finish());
    for (int step = 1; step < crew_.size(); ++step) {
      const int to = (crew_.rank() + step) % crew_.size();
      const int from = (crew_.rank() + crew_.size() - step) % crew_.size();
      ASSIGN_OR_RETURN(const bool shared, ShareFiles(to, from));
      TRY(SendAndReceive(to, from, shared));
    }
    return {};
  }

  // Calls use(place, runs) for the records of each kind of each process that a rank owns.
  template <class Use>
  Status ForEachOwnedBy(int rank, Use use) const {
    for (size_t trace = 0; trace < parts_.size(); ++trace) {
      const TraceState& state = parts_[trace].state;
      for (size_t process = 0; process < state.processes().size(); ++process)
        if (owners_[trace][process] == rank) {
          const ProcessRecords& records = state.processes()[process];
          TRY(use(Heading{trace, process, RecordKind::kGpu}, records.gpu.runs()));
          TRY(use(Heading{trace, process, RecordKind::kCall}, records.calls.runs()));
          TRY(use(Heading{trace, process, RecordKind::kSync}, records.syncs.runs()));
        }
    }
    return {};
  }

  // Calls use(records) for those of a place that another rank has named.
  template <class Use>
  Status With(const Heading& place, Use use) {
    if (place.trace >= parts_.size() || place.process >= owners_[place.trace].size()) return Damaged();
    ProcessRecords& records = parts_[place.trace].state.RecordsOf(static_cast<uint16_t>(place.process));
    if (place.kind == RecordKind::kCall)
      use(records.calls);
    else if (place.kind == RecordKind::kSync)
      use(records.syncs);
    else
      use(records.gpu);
    return {};
  }

  // Offers what is in files for `to`, and adds what `from` offers if this rank can read it. Returns whether
  // `to` can.
  Result<bool> ShareFiles(int to, int from) {
    RunOffer own;
    TRY(ForEachOwnedBy(to, [&own](const Heading& place, auto runs) -> Status {
      own.Add(place, runs);
      return {};
    }));
    ArchiveWriter archive;
    archive(own);
    ASSIGN_OR_RETURN(const std::string received, crew_.Exchange(to, archive.Take(), from));
    ArchiveReader reader(received);
    RunOffer offer;
    reader(offer);
    if (!reader.ok()) return Damaged();
    const std::optional<RunOffer::Files> files = offer.Open(kMaxOpenFiles - open_files_);
    constexpr std::string_view kCan = "can";
    ASSIGN_OR_RETURN(const std::string answer, crew_.Exchange(from, files.has_value() ? kCan : "can't", to));
    if (files.has_value()) {
      open_files_ += files->size();
      TRY(AddRuns(offer, *files));
    }
    return answer == kCan;
  }

  Status AddRuns(const RunOffer& offer, const RunOffer::Files& files) {
    for (const RunOffer::Offered& run : offer.runs())
      TRY(With(run.place, [&](auto& records) {
        records.AddRun(files[run.file], run.offset, run.count, offer.ChangeOf(run));
      }));
    return {};
  }

  // Sends everything for `to`, except for what is in files if it can read them, and receives everything from
  // `from`, message by message.
  Status SendAndReceive(int to, int from, bool shared) {
    bool receiving = true;
    const auto pass = [&](std::string_view message) -> Status {  // empty: only receives
      ASSIGN_OR_RETURN(const std::string received,
                       crew_.Exchange(message.empty() ? -1 : to, message, receiving ? from : -1));
      if (!receiving) return {};
      ArchiveReader reader(received);
      Heading heading;
      reader(heading);
      if (!reader.ok()) return Damaged();
      receiving = heading.trace != kEnd;
      if (!receiving) return {};
      return With(heading,
                  [&](auto& records) { records.AddSorted(std::as_bytes(std::span(reader.rest()))); });
    };
    TRY(ForEachOwnedBy(
        to, [&](const Heading& heading, auto runs) { return SendRuns(runs, heading, shared, pass); }));
    TRY(pass(MessageOf({.trace = kEnd})));
    while (receiving) TRY(pass({}));
    return {};
  }

  // Run by run, as they are sorted already.
  template <class Record, class Pass>
  static Status SendRuns(std::span<const Run<Record, Renumbering>> runs, const Heading& heading, bool shared,
                         Pass pass) {
    const std::string begin = MessageOf(heading);
    std::vector<Record> records;
    for (const Run<Record, Renumbering>& run : runs) {
      if (shared && run.file != nullptr) continue;
      for (uint64_t sent = 0; sent < run.count; sent += records.size()) {
        records.resize(std::min<uint64_t>(run.count - sent, kMessageBytes / sizeof(Record)));
        TRY(CopyRecords(run, sent, std::span(records)));
        std::string message = begin;
        message.append(reinterpret_cast<const char*>(records.data()), records.size() * sizeof(Record));
        TRY(pass(message));
      }
    }
    return {};
  }

  const Crew& crew_;
  const Options& options_;
  std::vector<TracePart>& parts_;
  std::vector<std::vector<int>> owners_;  // by trace and process
  size_t open_files_ = 0;                 // of other ranks
};

// Collects everything at rank 0.
Result<std::optional<Report>> Collect(const Crew& crew, const Options& options, std::vector<TracePart>& own) {
  ArchiveWriter archive;
  for (TracePart& part : own) archive(part);
  ASSIGN_OR_RETURN(const std::vector<std::string> all, crew.Gather(archive.Take()));
  if (crew.rank() != 0) return std::optional<Report>();
  std::vector<std::vector<TracePart>> crews;
  for (const std::string& bytes : all) {
    ArchiveReader reader(bytes);
    std::vector<TracePart>& parts = crews.emplace_back(own.size());
    for (TracePart& part : parts) reader(part);
    if (!reader.ok()) return Fail(ErrorCode::kInternal, "a message between ranks is damaged");
  }
  ReportBuilder builder(options.alignment, options.communication, !options.steps.empty());
  for (size_t trace = 0; trace < own.size(); ++trace) {
    size_t whose = 0;
    for (size_t i = 0; i < crews.size(); ++i)
      if (crews[i][trace].whole) whose = i;
    TracePart& part = crews[whose][trace];
    if (!part.whole) {
      for (size_t i = 1; i < crews.size(); ++i)
        std::ranges::move(crews[i][trace].ranks, std::back_inserter(part.ranks));
      std::ranges::sort(part.ranks, {}, &RankResult::key);
    }
    builder.Add(own[trace].path, part.info, part.state, std::move(part.ranks));
    for (const std::vector<TracePart>& parts : crews) builder.AddDetail(parts[trace].detail);
  }
  ASSIGN_OR_RETURN(Report report, std::move(builder).Finish());
  return std::optional<Report>(std::move(report));
}

// Whether all ranks succeeded; if not, rank 0 returns the error of the first that failed.
Status Agree(const Crew& crew, const Status& own) {
  ASSIGN_OR_RETURN(const std::vector<std::string> all,
                   crew.GatherAll(own.has_value() ? std::string() : own.error().message));
  for (const std::string& message : all)
    if (!message.empty())
      return Fail(own.has_value() ? ErrorCode::kInternal : own.error().code, crew.rank() == 0 ? message : "");
  return {};
}

}  // namespace

Result<std::optional<Report>> AnalyzeTogether(const Crew& crew, const std::vector<std::string>& paths,
                                              const Options& options, bool& others_wait) {
  others_wait = false;
  const auto division = Division::Make(paths, static_cast<uint64_t>(crew.size()));
  std::vector<TracePart> parts;
  const auto read = [&]() -> Status {
    if (!division.has_value()) return std::unexpected(division.error());
    return ReadParts(paths, options, *division, static_cast<uint64_t>(crew.rank()),
                     [&parts](TracePart part) { parts.push_back(std::move(part)); });
  };
  TRY(Agree(crew, read()));
  others_wait = true;
  if (division->IsShared()) {
    SharedTraces shared(crew, options, parts);
    TRY(shared.PutTogether());
  }
  auto report = Collect(crew, options, parts);
  others_wait = false;
  return report;
}

}  // namespace gpusonde::analyze
