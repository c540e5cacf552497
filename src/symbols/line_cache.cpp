// SPDX-License-Identifier: Apache-2.0
#include "symbols/line_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/fd.h"
#include "base/log.h"
#include "symbols/line_text.h"

namespace gpusonde::symbols {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kMaxFolderBytes = uintmax_t{64} << 20;
constexpr size_t kMaxFileBytes = size_t{2} << 20;
// A file without it is of another version, and is begun anew.
constexpr std::string_view kHeader = "gpusonde lines 1\n";
constexpr int kMaxFrames = 1024;

void RemoveOldest(const std::string& folder) {
  std::vector<std::tuple<fs::file_time_type, uintmax_t, fs::path>> files;
  uintmax_t bytes = 0;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed); !failed && at != fs::directory_iterator();
       at.increment(failed)) {
    std::error_code gone;  // another process may be removing, too
    const uintmax_t size = at->file_size(gone);
    const fs::file_time_type time = at->last_write_time(gone);
    if (gone) continue;
    files.emplace_back(time, size, at->path());
    bytes += size;
  }
  if (bytes <= kMaxFolderBytes) return;
  std::ranges::sort(files);
  for (const auto& [time, size, path] : files) {
    if (bytes <= kMaxFolderBytes / 2) return;
    fs::remove(path, failed);
    bytes -= size;
  }
}

// The bytes of `text` that parse: the header, and whole records of "offset, number of frames" with as many
// frames. Frames have other fields than a record begins with, so a torn write can't be taken for lines.
size_t Parse(std::string_view text, LineCache::Lines& lines) {
  if (!text.starts_with(kHeader)) return 0;
  size_t good = kHeader.size();
  LineFields fields(text.substr(good));
  while (!fields.AtEnd()) {
    const auto offset = fields.Number<uint64_t>('\t');
    const auto count = fields.Number<int>('\n');
    if (fields.failed() || count < 1 || count > kMaxFrames) break;
    std::vector<SourceFrame> frames;
    for (int i = 0; i < count && !fields.failed(); ++i) frames.push_back(fields.Frame());
    if (fields.failed()) break;
    lines[offset] = std::move(frames);
    good = text.size() - fields.left();
  }
  return good;
}

std::string ReadText(const std::string& path) {
  return ReadFile(path, kMaxFileBytes).value_or(std::string());
}

}  // namespace

LineCache::LineCache(std::string folder) : folder_(std::move(folder)) {
  if (folder_.empty()) return;
  std::error_code failed;
  fs::create_directories(fs::path(folder_).parent_path(), failed);
  if (::mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) {
    LogWarn("the cache of source lines is not written: {}",
            ErrnoError(errno, "make the folder " + folder_).message);
    folder_.clear();
    return;
  }
  RemoveOldest(folder_);
}

std::string LineCache::PathOf(const Id128& binary) const { return folder_ + "/" + binary.ToHex(); }

LineCache::Lines LineCache::Load(const Id128& binary) const {
  Lines lines;
  if (!folder_.empty()) Parse(ReadText(PathOf(binary)), lines);
  return lines;
}

void LineCache::Add(const Id128& binary, const Found& found) const {
  if (folder_.empty() || found.empty()) return;
  Result<Fd> file = Open(PathOf(binary), O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
  // Another process that is writing to it may be adding the same lines.
  if (!file.has_value() || ::flock(file->get(), LOCK_EX | LOCK_NB) != 0) return;
  const std::string before = ReadText(PathOf(binary));
  Lines known;
  const size_t good = Parse(before, known);
  std::string more(good == 0 ? kHeader : "");
  for (const auto& [offset, frames] : found) {
    if (frames.empty() || frames.size() > kMaxFrames || known.contains(offset)) continue;
    std::string record = fmt::format("{}\t{}\n", offset, frames.size());
    for (const SourceFrame& frame : frames) record += FrameText(frame);
    if (good + more.size() + record.size() > kMaxFileBytes) break;
    more += record;
  }
  if (::ftruncate(file->get(), static_cast<off_t>(good)) != 0 ||
      ::lseek(file->get(), 0, SEEK_END) != static_cast<off_t>(good))
    return;
  // What is written by half is cut off by the next.
  (void)WriteAll(file->get(), std::as_bytes(std::span(more)));
}

}  // namespace gpusonde::symbols
