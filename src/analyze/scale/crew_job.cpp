// SPDX-License-Identifier: Apache-2.0
#include "analyze/scale/crew_job.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <span>
#include <string_view>
#include <thread>
#include <utility>

#include "analyze/archive.h"
#include "analyze/detail/confirm_unrecorded.h"
#include "analyze/report_builder.h"
#include "analyze/scale/run_offer.h"
#include "analyze/scale/trace_part.h"
#include "analyze/start_thread.h"

namespace gpusonde::analyze {
namespace {

// Runs are sent together until a message is as large.
constexpr size_t kMessageBytes = size_t{1} << 20;

// Files of other ranks that this one has open at the same time, of usually 1,024 descriptors.
constexpr size_t kMaxOpenFiles = 256;

auto Damaged() { return Fail(ErrorCode::kInternal, "a message between ranks is damaged"); }

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
      TRY(ExchangeWith(to, from));
    }
    return {};
  }

  // Calls use(place, records) for each kind of each process that a rank owns.
  template <class Use>
  Status ForEachOwnedBy(int rank, Use use) {
    for (size_t trace = 0; trace < parts_.size(); ++trace) {
      TraceState& state = parts_[trace].state;
      for (size_t process = 0; process < state.processes().size(); ++process)
        if (owners_[trace][process] == rank) {
          ProcessRecords& records = state.RecordsOf(static_cast<uint16_t>(process));
          TRY(use(RunOffer::Place{trace, process, RecordKind::kGpu}, records.gpu));
          TRY(use(RunOffer::Place{trace, process, RecordKind::kCall}, records.calls));
          TRY(use(RunOffer::Place{trace, process, RecordKind::kSync}, records.syncs));
        }
    }
    return {};
  }

  // Calls use(records) for those of a place that another rank has named.
  template <class Use>
  Status With(const RunOffer::Place& place, Use use) {
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

  // Gives `to` what it owns and takes what `from` has for this rank. Each says first what it has; what is in
  // files is read there if that is possible, and the rest is sent.
  Status ExchangeWith(int to, int from) {
    RunOffer own;
    TRY(ForEachOwnedBy(to, [&own](const RunOffer::Place& place, auto& records) -> Status {
      records.Pack();
      own.Add(place, records.runs());
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
    if (files.has_value()) open_files_ += files->size();
    return SendAndReceive(to, from, answer == kCan, offer, files);
  }

  // Sends runs for `to`, except for what is in files if it `can_read` them, and receives those of an offer
  // of `from` likewise. Frees what was sent.
  Status SendAndReceive(int to, int from, bool can_read, const RunOffer& offer,
                        const std::optional<RunOffer::Files>& files) {
    std::vector<const RunOffer::Offered*> coming;
    for (const RunOffer::Offered& run : offer.runs()) {
      if (run.file == RunOffer::kInMemory || !files.has_value())
        coming.push_back(&run);
      else
        TRY(With(run.place, [&](auto& records) {
          records.AddRun((*files)[run.file], run.offset, run.bytes, run.count, offer.ChangeOf(run));
        }));
    }
    size_t next = 0;
    const auto pass = [&](std::string_view message) -> Status {  // empty: only receives
      const bool receives = next < coming.size();
      if (message.empty() && !receives) return {};
      ASSIGN_OR_RETURN(const std::string received,
                       crew_.Exchange(message.empty() ? -1 : to, message, receives ? from : -1));
      std::span<const std::byte> bytes = std::as_bytes(std::span(received));
      for (; !bytes.empty(); ++next) {
        if (next == coming.size() || coming[next]->bytes > bytes.size()) return Damaged();
        const RunOffer::Offered& run = *coming[next];
        TRY(With(run.place, [&](auto& records) {
          records.AddRun(bytes.first(run.bytes), run.count, offer.ChangeOf(run));
        }));
        bytes = bytes.subspan(run.bytes);
      }
      return {};
    };
    std::string message;
    const auto send = [&](const RunOffer::Place& /*place*/, auto& records) -> Status {
      for (auto& run : records.TakeRuns()) {
        if (can_read && run.file != nullptr) continue;
        const size_t before = message.size();
        message.resize(before + run.bytes);
        TRY(CopyBytes(run, 0, std::as_writable_bytes(std::span(message)).subspan(before)));
        run = {};
        if (message.size() < kMessageBytes) continue;
        TRY(pass(message));
        message.clear();
      }
      return {};
    };
    TRY(ForEachOwnedBy(to, send));
    TRY(pass(message));
    while (next < coming.size()) TRY(pass({}));
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

Result<std::optional<Report>> AnalyzeTogether(Crew& crew, const std::vector<std::string>& paths,
                                              const Options& options, bool& others_wait) {
  others_wait = false;
  std::optional<Division> division;
  std::vector<TracePart> parts;
  const auto read_as = [&](const Crew::Place& place) -> Status {
    parts.clear();
    ASSIGN_OR_RETURN(division, Division::Make(paths, static_cast<uint64_t>(place.size)));
    return ReadParts(paths, options, *division, static_cast<uint64_t>(place.rank),
                     [&parts](TracePart part) { parts.push_back(std::move(part)); });
  };
  const std::optional<Crew::Place> expected = Crew::ExpectedPlace();
  Status read;
  {
    // MPI_Init of Open MPI 4.1 mostly waits, for a tenth of a second.
    std::vector<std::jthread> reader;
    if (expected.has_value()) StartThread(reader, [&] { read = read_as(*expected); });
    TRY(crew.Join());
  }
  if (!division.has_value() || crew.place() != expected) read = read_as(crew.place());
  TRY(Agree(crew, read));
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
