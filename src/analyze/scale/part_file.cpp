// SPDX-License-Identifier: Apache-2.0
#include "analyze/scale/part_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "analyze/archive.h"
#include "analyze/detail/confirm_unrecorded.h"
#include "analyze/scale/trace_part.h"
#include "base/fd.h"
#include "base/id128.h"

namespace gpusonde::analyze {
namespace {

constexpr std::string_view kMagic = "gpusonde analyze part 19\n";
constexpr uint64_t kMaxHeader = uint64_t{4} << 30;
constexpr uint64_t kMaxParts = 1'000'000;

// How many records of a process follow the header.
struct Counts {
  uint64_t gpu = 0;
  uint64_t calls = 0;
  uint64_t syncs = 0;

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(gpu);
    archive(calls);
    archive(syncs);
  }
};

Id128 ChecksumOf(std::string_view header) { return IdHasher("analyze part").Add(header).Finish(); }

// A file has kMagic, the size of the header in 8 bytes, its checksum, and the header; then the records of
// each trace and process: events, then calls, then those that wait, all sorted.
struct Part {
  uint64_t part = 0;
  uint64_t parts = 1;
  std::string communication;  // CommunicationKernels::expression
  bool operators = false;     // Options::operators
  bool critical_path = false;
  bool waves = false;
  bool sequences = false;
  std::vector<TracePart> traces;
  std::vector<std::vector<Counts>> counts;

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(part);
    archive(parts);
    archive(communication);
    archive(operators);
    archive(critical_path);
    archive(waves);
    archive(sequences);
    uint64_t size = traces.size();
    archive(size);
    archive.Require(size <= kMaxParts);
    if constexpr (Archive::kReads) {
      if (!archive.ok()) return;
      traces.resize(size);
      counts.resize(size);
    }
    for (size_t i = 0; i < traces.size(); ++i) {
      archive(traces[i].path);
      archive(traces[i]);
      archive(counts[i]);
      archive.Require(counts[i].size() <= traces[i].state.ranks().processes().size());
    }
  }
};

// Writes records through a buffer.
class RecordWriter {
 public:
  explicit RecordWriter(int fd) : fd_(fd) {}

  template <class Record, class Less>
  Status Write(std::span<const Run<Record, Renumbering>> runs) {
    Merged<Record, Less, Renumbering> records(runs);
    while (const Record* record = records.Next()) {
      const auto bytes = std::as_bytes(std::span(record, 1));
      buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
      if (buffer_.size() >= kBufferBytes) TRY(Flush());
    }
    return records.status();
  }
  Status Flush() {
    TRY(WriteAll(fd_, buffer_));
    buffer_.clear();
    return {};
  }

 private:
  static constexpr size_t kBufferBytes = size_t{1} << 20;
  int fd_;
  std::vector<std::byte> buffer_;
};

Status WriteTo(int fd, Part& part) {
  ArchiveWriter archive;
  archive(part);
  const std::string header = archive.Take();
  const uint64_t size = header.size();
  TRY(WriteAll(fd, std::as_bytes(std::span(kMagic))));
  TRY(WriteAll(fd, std::as_bytes(std::span(&size, 1))));
  const Id128 checksum = ChecksumOf(header);
  TRY(WriteAll(fd, std::as_bytes(std::span(&checksum, 1))));
  TRY(WriteAll(fd, std::as_bytes(std::span(header))));
  RecordWriter records(fd);
  for (const TracePart& trace : part.traces)
    for (const ProcessRecords& process : trace.state.processes()) {
      TRY((records.Write<GpuRecord, ByCorrelation>(process.gpu.runs())));
      TRY((records.Write<CallRecord, ByCorrelation>(process.calls.runs())));
      TRY((records.Write<SyncRecord, BySyncStart>(process.syncs.runs())));
    }
  TRY(records.Flush());
  if (::fsync(fd) != 0) return Fail(ErrnoError(errno, "fsync"));
  return {};
}

Status WritePart(const std::string& path, Part& part) {
  TRY(CheckReplaceable(path));
  std::string temporary = path + ".XXXXXX";
  const Fd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd.valid()) return Fail(ErrnoError(errno, path));
  ::fchmod(fd.get(), 0644);
  Status done = WriteTo(fd.get(), part);
  if (done.has_value() && ::rename(temporary.c_str(), path.c_str()) != 0)
    done = Fail(ErrnoError(errno, path));
  if (done.has_value()) return SyncFolderOf(path);
  ::unlink(temporary.c_str());
  return Fail(std::move(done).error().With(path));
}

// Whether a record is valid for every analysis.
bool IsValid(const GpuRecord& record, const TraceState& state, size_t process) {
  const bool known = record.work <= importers::GpuWork::kGraph &&
                     record.rank < state.ranks().ranks().size() &&
                     state.ranks().ProcessOf(record.rank) == process &&
                     (!importers::IsNamed(record.work) || record.name < state.names().size());
  return known && record.has_correlation <= 1 && record.rank < state.extents().size() &&
         state.extents()[record.rank].Covers(record.start_ns, record.end_ns) &&
         record.start_ns <= record.end_ns && record.start_ns >= -importers::kMaxTimeNs &&
         record.end_ns <= importers::kMaxTimeNs &&
         (importers::IsNamed(record.work) || (CopyOf(record.name) <= importers::CopyKind::kHostToHost &&
                                              SourceOf(record.name) <= importers::MemoryKind::kManaged &&
                                              TargetOf(record.name) <= importers::MemoryKind::kManaged));
}
bool IsValid(const CallRecord& record, const TraceState& /*state*/, size_t /*process*/) {
  return record.start_ns <= record.end_ns && record.start_ns >= -importers::kMaxTimeNs &&
         record.end_ns <= importers::kMaxTimeNs;
}

bool IsValid(const SyncRecord& record, const TraceState& state, size_t /*process*/) {
  return record.name < state.names().size() && record.start_ns <= record.end_ns &&
         record.start_ns >= -importers::kMaxTimeNs && record.end_ns <= importers::kMaxTimeNs;
}

class PartReader {
 public:
  explicit PartReader(std::string path) : path_(std::move(path)) {}

  Result<Part> Read() {
    ASSIGN_OR_RETURN(Fd fd, Open(path_, O_RDONLY));
    struct stat info{};
    if (::fstat(fd.get(), &info) != 0) return Fail(ErrnoError(errno, path_));
    size_ = static_cast<uint64_t>(info.st_size);
    file_ = std::make_shared<TemporaryFile>(std::move(fd));
    ASSIGN_OR_RETURN(const std::string magic, Bytes(std::min<uint64_t>(size_, kMagic.size())));
    if (magic != kMagic) return Corrupt("not a part file of gpusonde analyze");
    ASSIGN_OR_RETURN(const uint64_t size, Plain<uint64_t>());
    ASSIGN_OR_RETURN(const Id128 checksum, Plain<Id128>());
    if (size > kMaxHeader) return Corrupt("its header is too large");
    ASSIGN_OR_RETURN(const std::string header, Bytes(size));
    if (ChecksumOf(header) != checksum) return Corrupt("its header is damaged");
    Part part;
    ArchiveReader archive(header);
    archive(part);
    if (!archive.fault().empty())
      return Corrupt(fmt::format("its header is damaged: impossible {}", archive.fault()));
    if (!archive.ok() || !archive.rest().empty() || part.part >= part.parts || part.parts > kMaxParts)
      return Corrupt("its header is damaged");
    for (size_t i = 0; i < part.traces.size(); ++i)
      for (size_t process = 0; process < part.counts[i].size(); ++process) {
        TraceState& state = part.traces[i].state;
        ProcessRecords& records = state.RecordsOf(static_cast<uint16_t>(process));
        const Counts& counts = part.counts[i][process];
        TRY((Records<GpuRecord, ByCorrelation>(counts.gpu, state, process, records.gpu)));
        TRY((Records<CallRecord, ByCorrelation>(counts.calls, state, process, records.calls)));
        TRY((Records<SyncRecord, BySyncStart>(counts.syncs, state, process, records.syncs)));
      }
    if (at_ != size_) return Corrupt(fmt::format("{} extra bytes at the end", size_ - at_));
    return part;
  }

 private:
  std::unexpected<Error> Corrupt(std::string_view what) const {
    return Fail(ErrorCode::kCorrupt, fmt::format("{}: byte {}: {}", path_, at_, what));
  }

  Result<std::string> Bytes(uint64_t count) {
    if (count > size_ - at_) return Corrupt("truncated");
    std::string bytes(count, '\0');
    TRY(file_->Read(at_, std::as_writable_bytes(std::span(bytes))));
    at_ += count;
    return bytes;
  }

  template <class T>
  Result<T> Plain() {
    ASSIGN_OR_RETURN(const std::string bytes, Bytes(sizeof(T)));
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

  template <class Record, class Less, class Runs>
  Status Records(uint64_t count, const TraceState& state, size_t process, Runs& runs) {
    if (count > (size_ - at_) / sizeof(Record)) return Corrupt("truncated");
    std::vector<Record> buffer;
    std::optional<Record> last;
    for (uint64_t left = count; left > 0; left -= buffer.size()) {
      buffer.resize(std::min<uint64_t>(left, 16'384));
      TRY(file_->Read(at_, std::as_writable_bytes(std::span(buffer))));
      for (const Record& record : buffer) {
        if (!IsValid(record, state, process) || (last.has_value() && Less()(record, *last)))
          return Corrupt("a damaged record");
        last = record;
        runs.Add(record);
      }
      at_ += buffer.size() * sizeof(Record);
    }
    runs.Spill();
    return {};
  }

  std::string path_;
  std::shared_ptr<TemporaryFile> file_;
  uint64_t size_ = 0;
  uint64_t at_ = 0;
};

// Reads and sorts all parts; checks that they are complete and of one job.
Result<std::vector<Part>> ReadAll(const std::vector<std::string>& files) {
  std::vector<Part> parts;
  std::vector<std::string> names;
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(Part part, PartReader(file).Read());
    const auto paths = [](const Part& of) {
      std::vector<std::string> all;
      for (const TracePart& trace : of.traces) all.push_back(trace.path);
      return all;
    };
    if (!parts.empty() && (part.parts != parts[0].parts || paths(part) != paths(parts[0])))
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{} and {} are parts of different jobs", files[0], file));
    for (size_t i = 0; i < parts.size(); ++i)
      if (parts[i].part == part.part)
        return Fail(ErrorCode::kInvalidArgument,
                    fmt::format("{} and {} are both part {}/{}", names[i], file, part.part, part.parts));
    names.push_back(file);
    parts.push_back(std::move(part));
  }
  if (parts.empty()) return parts;
  std::ranges::sort(parts, {}, &Part::part);
  for (uint64_t i = 0; i < parts[0].parts; ++i)
    if (i >= parts.size() || parts[i].part != i)
      return Fail(ErrorCode::kInvalidArgument, fmt::format("part {}/{} is missing", i, parts[0].parts));
  return parts;
}

}  // namespace

Status AnalyzePart(const std::vector<std::string>& paths, const Options& options, uint64_t part,
                   uint64_t parts, const std::string& output) {
  ASSIGN_OR_RETURN(const Division division, Division::Make(paths, parts));
  Part made{.part = part,
            .parts = parts,
            .communication = options.communication.expression(),
            .operators = options.operators,
            .critical_path = options.critical_path,
            .waves = options.waves,
            .sequences = options.sequences};
  TRY(ReadParts(paths, options, division, part,
                [&made](TracePart trace) { made.traces.push_back(std::move(trace)); }));
  for (const TracePart& trace : made.traces) {
    std::vector<Counts>& counts = made.counts.emplace_back();
    for (const ProcessRecords& process : trace.state.processes())
      counts.push_back(
          {.gpu = process.gpu.count(), .calls = process.calls.count(), .syncs = process.syncs.count()});
  }
  return WritePart(output, made);
}

Result<Report> MergeParts(const std::vector<std::string>& files, const Options& options) {
  LimitTemporarySpace(files, options);
  ASSIGN_OR_RETURN(std::vector<Part> parts, ReadAll(files));
  for (const Part& part : parts)
    if (part.communication != options.communication.expression())
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("part {}/{} was made with --communication '{}'; give all parts and --merge the same",
                      part.part, part.parts, part.communication));
  for (const Part& part : parts)
    if (part.operators != parts[0].operators || part.critical_path != parts[0].critical_path ||
        part.waves != parts[0].waves || part.sequences != parts[0].sequences)
      return Fail(ErrorCode::kInvalidArgument,
                  "give all parts the same of --operators, --critical-path, --waves and --sequences");
  FollowOptions follow = FollowOptionsOf(options);
  follow.sequences = !parts.empty() && parts[0].sequences;
  ReportBuilder builder(options.alignment, options.communication, !options.steps.empty());
  for (size_t i = 0; !parts.empty() && i < parts[0].traces.size(); ++i) {
    const auto whole = std::ranges::find_if(parts, [i](const Part& part) { return part.traces[i].whole; });
    if (whole != parts.end()) {
      TracePart& trace = whole->traces[i];
      builder.Add(trace.path, trace.info, trace.state, std::move(trace.ranks));
      builder.AddDetail(trace.detail);
      continue;
    }
    TracePart& first = parts[0].traces[i];
    for (size_t other = 1; other < parts.size(); ++other)
      first.state.Merge(std::move(parts[other].traces[i].state));
    TRY(first.state.Finish());
    TRY(ConfirmUnrecorded(first.path, first.info.format, options, first.state));
    ASSIGN_OR_RETURN(std::vector<RankResult> ranks, FollowProcesses(first.state, ThreadsOf(options), follow));
    builder.Add(first.path, first.info, first.state, std::move(ranks));
    for (const Part& part : parts) builder.AddDetail(part.traces[i].detail);
  }
  return std::move(builder).Finish();
}

}  // namespace gpusonde::analyze
