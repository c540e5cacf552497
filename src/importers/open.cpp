// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "importers/kineto/kineto.h"
#include "importers/ncu/ncu.h"
#include "importers/nsys/nsys.h"
#include "importers/nvprof/nvprof.h"
#include "importers/sonde/sonde.h"
#include "importers/sqlite/table.h"
#include "importers/trace.h"
#include "store/recordings/recording.h"

namespace gpusonde::importers {
namespace {

// Output of the program may precede Nsight Compute's rows.
constexpr size_t kPeekBytes = size_t{64} << 10;
constexpr std::string_view kSqliteMagic{"SQLite format 3\0", 16};
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kTraces =
    "recordings, Nsight Systems SQLite exports, nvprof databases, and Kineto JSON and Nsight Compute CSV "
    "(plain, gzip, zstd) are read";

Status CheckRegularFile(const std::string& path) {
  struct stat info{};
  if (path == "-" && ::access("-", F_OK) != 0)
    return Fail(ErrorCode::kInvalidArgument,
                "-: standard input is not read, as a trace is read more than once; save it to a file");
  if (::stat(path.c_str(), &info) != 0) {
    const int failure = errno;
    if (std::optional<Error> why = store::WhyAbsent(path); failure == ENOENT && why.has_value())
      return Fail(*std::move(why));
    return Fail(ErrnoError(failure, path));
  }
  if (S_ISDIR(info.st_mode))
    return Fail(ErrorCode::kInvalidArgument, path + ": a folder; name the traces in it");
  if (!S_ISREG(info.st_mode))
    return Fail(ErrorCode::kInvalidArgument,
                path + ": a pipe or device; a trace is read more than once, so save it to a file");
  if (info.st_size == 0) return Fail(ErrorCode::kCorrupt, path + ": the file is empty");
  return {};
}

Result<std::unique_ptr<Trace>> OpenSqlite(const std::string& path, const OpenOptions& options) {
  const auto access = options.partial ? sqlite::Access::kPartial : sqlite::Access::kFastest;
  ASSIGN_OR_RETURN(auto database, sqlite::Database::Open(path, access, options.temp_limit));
  ASSIGN_OR_RETURN(const std::vector<std::string> tables, database->TableNames());
  if (nsys::IsNsys(tables)) return nsys::OpenNsys(std::move(database), path, options);
  if (nvprof::IsNvprof(tables)) return nvprof::OpenNvprof(std::move(database), path, options);
  if (std::ranges::any_of(tables, [](const std::string& table) { return table.starts_with("rocpd_"); }))
    return Fail(
        ErrorCode::kUnsupported,
        path +
            ": a rocpd database of ROCm's profiler, which is not read; of AMD's GPUs, traces of PyTorch's "
            "and JAX's profilers are");
  if (nsys::LacksStrings(tables))
    return Fail(
        ErrorCode::kUnsupported,
        path +
            ": an Nsight Systems export without the table StringIds, so that its kernels have no names; "
            "export the report again without --tables");
  return Fail(ErrorCode::kUnsupported,
              fmt::format("{}: an SQLite database, but not a known trace; {}", path, kTraces));
}

// What files that people take for traces are, by how they begin.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kOthers = {
    {{"PK\x03\x04", "it is a zip archive: unpack it first"},
     {"\xFD"
      "7zXZ",
      "it is compressed by xz: decompress it first (gzip and zstd are read as they are)"},
     {"BZh", "it is compressed by bzip2: decompress it first (gzip and zstd are read as they are)"},
     {"\x04\x22\x4D\x18",
      "it is compressed by lz4: decompress it first (gzip and zstd are read as they are)"},
     {"7z\xBC\xAF", "it is a 7z archive: unpack it first"},
     {"\xFF\xFE", "it is text in UTF-16: iconv -f UTF-16 -t UTF-8 FILE > FILE.json converts it"},
     {"\xFE\xFF", "it is text in UTF-16: iconv -f UTF-16 -t UTF-8 FILE > FILE.json converts it"},
     {"PAR1",
      "Parquet files are only written (gpusonde export), not read: name the recording or trace that it was "
      "made from; Nsight Systems exports a report with nsys export --type sqlite"},
     {"Time (%),",
      "these are statistics of Nsight Systems; what it exports with nsys export --type sqlite is read"}}};

// Whether it is JSON in UTF-16 or UTF-32 without a byte order mark: ASCII with zeros between.
bool IsWide(std::string_view head) { return head.substr(0, 4).find('\0') != std::string_view::npos; }

// Of a file of no known format, which begins with `head`.
Error NotATrace(const std::string& path, std::string_view head) {
  const auto advise = [&path](std::string_view advice) {
    return Error{ErrorCode::kUnsupported, fmt::format("{}: not a trace that is read; {}", path, advice)};
  };
  for (const auto& [begin, advice] : kOthers)
    if (head.starts_with(begin)) return advise(advice);
  if (const size_t first = head.find_first_not_of('\0');
      IsWide(head) && first < 4 && (head[first] == '{' || head[first] == '['))
    return advise(
        "it is JSON in UTF-16 or UTF-32: iconv -f UTF-16LE (or UTF-16BE, UTF-32LE …) -t UTF-8 FILE > "
        "FILE.json converts it");
  constexpr size_t kTarMagic = 257;
  if (head.size() > kTarMagic && head.substr(kTarMagic).starts_with("ustar"))
    return advise("it is a tar archive: unpack it first");
  if (path.ends_with(".xplane.pb"))
    return advise("XLA's profiler writes a *.trace.json.gz beside it, which is");
  if (path.ends_with(".pftrace") || path.ends_with(".perfetto-trace"))
    return advise("traces of Perfetto are only written (gpusonde export), not read");
  if (path.ends_with(".nsys-rep") || path.ends_with(".qdrep"))
    return advise("Nsight Systems converts its reports: nsys export --type sqlite FILE");
  if (path.ends_with(".ncu-rep"))
    return advise("Nsight Compute converts its reports: ncu --import FILE --csv --page raw > FILE.csv");
  return {ErrorCode::kUnsupported, fmt::format("{}: not a known trace; {}", path, kTraces)};
}

}  // namespace

std::string_view Name(TraceFormat format) {
  constexpr std::string_view kNames[] = {"nsys-sqlite", "nvprof-sqlite", "kineto-json", "ncu-csv", "sonde"};
  return kNames[static_cast<size_t>(format)];
}

Result<std::unique_ptr<Trace>> OpenTrace(const std::string& path, const OpenOptions& options) {
  TRY(CheckRegularFile(path));
  ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> source, ByteSource::Open(path));
  std::vector<char> peek(kPeekBytes);
  ASSIGN_OR_RETURN(const size_t count, source->Read(peek));
  std::string_view head(peek.data(), count);
  if (head.starts_with(kByteOrderMark)) head.remove_prefix(kByteOrderMark.size());
  if ((head.starts_with(kSqliteMagic) || sonde::IsDuckDb(head)) && source->compressed())
    return Fail(ErrorCode::kUnsupported, path +
                                             ": a compressed database; decompress it first, as it is not "
                                             "read from its beginning to its end");
  if (head.starts_with(kSqliteMagic)) return OpenSqlite(path, options);
  if (sonde::IsDuckDb(head)) return sonde::OpenSonde(path);
  const size_t first = head.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && (head[first] == '{' || head[first] == '[') && !IsWide(head)) {
    ASSIGN_OR_RETURN(source, ByteSource::Open(path));  // from its beginning
    return kineto::OpenKineto(std::move(source), options);
  }
  if (ncu::IsNcu(head)) {
    ASSIGN_OR_RETURN(source, ByteSource::Open(path));
    return ncu::OpenNcu(std::move(source), options);
  }
  if (count == 0) return Fail(ErrorCode::kCorrupt, path + ": nothing is compressed in it");
  return Fail(NotATrace(path, head));
}

void Multiprocessor::SetCapability(int64_t major, int64_t minor) {
  reserved_shared_bytes = major >= 8 ? 1'024 : 0;
  if (blocks != 0) return;
  switch (major * 10 + minor) {
    case 75:
    case 86:
    case 87:
      blocks = 16;
      return;
    case 89:
    case 120:
      blocks = 24;
      return;
    case 50:
    case 52:
    case 53:
    case 60:
    case 61:
    case 62:
    case 70:
    case 72:
    case 80:
    case 90:
    case 100:
    case 103:
      blocks = 32;
      return;
    default:
      return;
  }
}

}  // namespace gpusonde::importers
