// SPDX-License-Identifier: Apache-2.0
#include "sources/ebpf/stack_tables.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <utility>

#include "base/time.h"
#include "sources/ebpf/bpf_program.h"

namespace gpusonde::ebpf {
namespace {

constexpr uint32_t kMaxProcesses = 16384;  // as in bpf/stack.h
// A program that has just looked up a process may use the entry for some microseconds more.
constexpr int64_t kGraceNs = 100 * kNanosPerMilli;

Result<Fd> MakeMap(bpf_map_type type, const char* name, uint32_t value_size, uint32_t entries) {
  Fd map(::bpf_map_create(type, name, sizeof(uint32_t), value_size, entries, nullptr));
  if (!map.valid()) return Fail(Explain(errno, fmt::format("create the BPF map {}", name)));
  return map;
}

}  // namespace

Result<StackTables> StackTables::Create() {
  ASSIGN_OR_RETURN(Fd processes,
                   MakeMap(BPF_MAP_TYPE_HASH, "processes", sizeof(gpusonde_process), kMaxProcesses));
  ASSIGN_OR_RETURN(Fd mappings, MakeMap(BPF_MAP_TYPE_ARRAY, "unwind_mappings",
                                        sizeof(gpusonde_unwind_mapping), GPUSONDE_UNWIND_MAPPINGS));
  ASSIGN_OR_RETURN(Fd rules, MakeMap(BPF_MAP_TYPE_ARRAY, "unwind_rules", sizeof(gpusonde_unwind_rule),
                                     GPUSONDE_UNWIND_RULES));
  ASSIGN_OR_RETURN(UnwindShards shards, UnwindShards::Create());
  return StackTables(std::move(processes), std::move(mappings), std::move(rules), std::move(shards));
}

Status StackTables::ShareWith(bpf_object* object) const {
  const std::pair<const char*, int> maps[] = {{"processes", processes_.get()},
                                              {"unwind_mappings", mappings_.get()},
                                              {"unwind_rules", rules_map_.get()},
                                              {"unwind_shards", shards_.fd()}};
  for (const auto& [name, fd] : maps) {
    bpf_map* map = ::bpf_object__find_map_by_name(object, name);
    if (map == nullptr) return Fail(ErrorCode::kInternal, fmt::format("a BPF program has no map {}", name));
    if (const int error = ::bpf_map__reuse_fd(map, fd); error != 0)
      return Fail(Explain(-error, fmt::format("share the BPF map {}", name)));
  }
  return {};
}

Status StackTables::AddFile(const Id128& file, unwind::Table table, std::span<const unwind::Rule> rules,
                            int32_t user_id) {
  if (HasFile(file)) return {};
  FreeRetired();
  if (files_.size() >= kMaxFiles) EvictOldest([](const File&) { return true; });
  File made{.user_id = user_id, .words = table.rows.size() + 2 * table.pages.size(), .used = ++clock_};
  TRY(TakeRoom(user_id, [&] { return words_.Acquire(user_id, made.words); }));
  if (Status placed = Place(made, table, rules); !placed.has_value()) {
    GiveBack(made);
    return placed;
  }
  made.base = table.base;
  made.segments = std::move(table.segments);
  files_[file] = std::move(made);
  return {};
}

Status StackTables::Place(File& file, unwind::Table& table, std::span<const unwind::Rule> rules) {
  std::vector<uint16_t> added;
  TRY(TakeRoom(file.user_id, [&] { return rules_.Acquire(rules, file.user_id, file.rules, added); }));
  for (const uint32_t number : added)
    if (::bpf_map_update_elem(rules_map_.get(), &number, &rules_.At(static_cast<uint16_t>(number)),
                              BPF_ANY) != 0)
      return Fail(ErrnoError(errno, "write an unwind rule to its BPF map"));
  for (uint32_t& row : table.rows) row = uint32_t{file.rules[row >> 16]} << 16 | (row & 0xFFFF);
  Result<UnwindShards::Placed> placed = shards_.Place(table);
  while (!placed.has_value() && placed.error().code == ErrorCode::kOutOfSpace && EvictOldestTable({}))
    placed = shards_.Place(table);
  if (!placed.has_value()) return Fail(std::move(placed).error());
  file.placed = std::move(*placed);
  return {};
}

Status StackTables::TakeRoom(int32_t user_id, const std::function<Shortage()>& take) {
  for (Shortage shortage = take(); shortage != Shortage::kNone; shortage = take()) {
    const bool of_user = shortage == Shortage::kOfUser;
    if (!EvictOldestTable(of_user ? std::optional(user_id) : std::nullopt))
      return Fail(ErrorCode::kOutOfSpace,
                  of_user
                      ? fmt::format("programs of user {} use all of a user's room for unwind tables", user_id)
                      : "all room for unwind tables is in use");
  }
  return {};
}

void StackTables::GiveBack(const File& file) {
  shards_.Remove(file.placed);
  rules_.Release(file.rules);
  words_.Release(file.user_id, file.words);
}

bool StackTables::EvictOldestTable(std::optional<int32_t> user_id) {
  return EvictOldest([user_id](const File& file) {
    return file.placed.pages > 0 && file.user_id == user_id.value_or(file.user_id);
  });
}

bool StackTables::EvictOldest(const std::function<bool(const File&)>& may_go) {
  auto oldest = files_.end();
  for (auto file = files_.begin(); file != files_.end(); ++file)
    if (file->second.slices == 0 && may_go(file->second) &&
        (oldest == files_.end() || file->second.used < oldest->second.used))
      oldest = file;
  if (oldest == files_.end()) return false;
  GiveBack(oldest->second);
  files_.erase(oldest);
  return true;
}

Status StackTables::SetProcess(int32_t pid, int32_t user_id, std::vector<Mapping> mappings,
                               const gpusonde_python& python) {
  // Code without tables is unwound by frame pointers, and often breaks off there even if it is known.
  if (mappings.size() > GPUSONDE_UNWIND_MAX_PROCESS_MAPPINGS) {
    const auto has_table = [this](const Mapping& one) { return one.file.has_value() && HasFile(*one.file); };
    std::ranges::stable_partition(mappings, has_table);
    mappings.resize(GPUSONDE_UNWIND_MAX_PROCESS_MAPPINGS);
  }
  std::ranges::sort(mappings, {}, &Mapping::start);
  FreeRetired();
  Result<std::shared_ptr<Slice>> slice = MakeSlice(mappings, user_id);
  gpusonde_process process{};
  process.python = python;
  // Without a slice the process is unwound by frame pointers.
  if (slice.has_value()) process.unwind = (*slice)->place;
  const auto key = static_cast<uint32_t>(pid);
  if (::bpf_map_update_elem(processes_.get(), &key, &process, BPF_ANY) != 0) {
    const int error = errno;
    if (slice.has_value()) Release(std::move(*slice));
    if (error == E2BIG)
      return Fail(ErrorCode::kOutOfSpace, fmt::format("more than {} processes are profiled", kMaxProcesses));
    return Fail(ErrnoError(error, fmt::format("write process {} to its BPF map", pid)));
  }
  Release(std::exchange(slices_[pid], slice.has_value() ? std::move(*slice) : nullptr));
  if (!slice.has_value()) return Fail(std::move(slice).error());
  return {};
}

Result<std::shared_ptr<StackTables::Slice>> StackTables::MakeSlice(const std::vector<Mapping>& mappings,
                                                                   int32_t user_id) {
  const auto count = static_cast<uint32_t>(mappings.size());
  auto slice = std::make_shared<Slice>();
  if (count == 0) return slice;
  if (mapping_shares_.Acquire(user_id, count) != Shortage::kNone)
    return Fail(ErrorCode::kOutOfSpace,
                fmt::format("programs of user {} use all of a user's room for mappings", user_id));
  const std::optional<uint32_t> first = places_.Allocate(count);
  if (!first.has_value()) {
    mapping_shares_.Release(user_id, count);
    return Fail(ErrorCode::kOutOfSpace,
                fmt::format("more than {} mappings are known", GPUSONDE_UNWIND_MAPPINGS));
  }
  slice->place = {.first = *first, .count = count, .id = ++last_slice_};
  slice->user_id = user_id;

  std::vector<gpusonde_unwind_mapping> values;
  for (uint32_t i = 0; i < count; ++i) {
    const Mapping& mapping = mappings[i];
    gpusonde_unwind_mapping value{
        .start = mapping.start, .end = mapping.end, .bias = 0, .directory = 0, .pages = 0};
    const auto file = mapping.file.has_value() ? files_.find(*mapping.file) : files_.end();
    if (file != files_.end()) {
      const auto bias =
          unwind::BiasOf(file->second.segments, file->second.base, mapping.start, mapping.file_offset);
      file->second.used = ++clock_;
      if (bias.has_value()) {
        value.bias = *bias;
        value.directory = file->second.placed.directory;
        value.pages = file->second.placed.pages;
      }
      ++file->second.slices;
      slice->files.push_back(*mapping.file);
    }
    values.push_back(value);
  }
  std::vector<uint32_t> keys(count);
  std::iota(keys.begin(), keys.end(), *first);
  uint32_t written = count;
  if (::bpf_map_update_batch(mappings_.get(), keys.data(), values.data(), &written, nullptr) != 0) {
    const int error = errno;
    Release(std::move(slice));
    return Fail(ErrnoError(error, "write a process's mappings to their BPF map"));
  }
  return slice;
}

void StackTables::ForkProcess(int32_t parent_pid, int32_t child_pid) {
  const auto parent = slices_.find(parent_pid);
  if (parent == slices_.end()) return;
  std::shared_ptr<Slice> shared = parent->second;
  Release(std::exchange(slices_[child_pid], std::move(shared)));
}

void StackTables::ForgetProcess(int32_t pid) {
  const auto key = static_cast<uint32_t>(pid);
  ::bpf_map_delete_elem(processes_.get(), &key);  // the BPF program may have done so already
  if (auto node = slices_.extract(pid); !node.empty()) Release(std::move(node.mapped()));
}

// The last one to refer to a slice retires it.
void StackTables::Release(std::shared_ptr<Slice> slice) {  // NOLINT(performance-unnecessary-value-param)
  if (slice != nullptr && slice.use_count() == 1) retired_.push_back({MonotonicNow(), std::move(*slice)});
}

void StackTables::FreeRetired() {
  const int64_t now = MonotonicNow();
  for (; !retired_.empty() && retired_.front().time_ns + kGraceNs <= now; retired_.pop_front()) {
    const Slice& slice = retired_.front().slice;
    if (slice.place.count > 0) places_.Free(slice.place.first, slice.place.count);
    mapping_shares_.Release(slice.user_id, slice.place.count);
    for (const Id128& file : slice.files)
      if (const auto found = files_.find(file); found != files_.end()) --found->second.slices;
  }
}

}  // namespace gpusonde::ebpf
