// SPDX-License-Identifier: Apache-2.0
#include "convert/name_store.h"

#include <cstring>
#include <limits>
#include <span>

namespace gpusonde::convert {

uint32_t NameStore::Add(std::string_view name) {
  name = name.substr(0, kMaxNameBytes);
  if (const auto known = numbers_.find(name); known != numbers_.end()) return known->second;
  if (names_.size() < kMaxNames && bytes_ + name.size() <= kMaxBytes) {
    bytes_ += name.size();
    names_.emplace_back(name);
    const auto number = static_cast<uint32_t>(names_.size() - 1);
    numbers_.emplace(names_.back(), number);
    return number;
  }
  const Result<uint32_t> spilled = Spill(name);
  if (spilled.has_value()) return *spilled;
  if (status_.has_value()) status_ = std::unexpected(spilled.error());
  return 0;
}

std::string_view NameStore::Get(uint32_t number) {
  if (number < names_.size()) return names_[number];
  const Status read = ReadSpilled(number);
  if (read.has_value()) return read_;
  if (status_.has_value()) status_ = read;
  return {};
}

Result<uint32_t> NameStore::Spill(std::string_view name) {
  const auto size = static_cast<uint32_t>(name.size());
  std::string record(sizeof size, '\0');
  std::memcpy(record.data(), &size, sizeof size);
  record += name;
  record.resize((record.size() + kAlignment - 1) / kAlignment * kAlignment);
  ASSIGN_OR_RETURN(const uint64_t offset, file_.Append(std::as_bytes(std::span(record))));
  const uint64_t number = kMaxNames + offset / kAlignment;
  if (number > std::numeric_limits<uint32_t>::max())
    return Fail(ErrorCode::kUnsupported, "the trace has more than 60 GiB of names");
  return static_cast<uint32_t>(number);
}

Status NameStore::ReadSpilled(uint32_t number) {
  const uint64_t offset = (uint64_t{number} - kMaxNames) * kAlignment;
  uint32_t size = 0;
  TRY(file_.Read(offset, std::as_writable_bytes(std::span(&size, 1))));
  read_.resize(size);
  return file_.Read(offset + sizeof size, std::as_writable_bytes(std::span(read_)));
}

}  // namespace gpusonde::convert
