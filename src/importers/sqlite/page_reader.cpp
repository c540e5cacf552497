// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "importers/sqlite/format.h"
#include "importers/sqlite/readers.h"

namespace gpusonde::importers::sqlite {
namespace {

constexpr size_t kPartBytes = size_t{1} << 20;
// Pages are read together, and decoded before they leave the cache: half of the second-level one of a small
// CPU.
constexpr size_t kReadBytes = size_t{128} << 10;
// No row of a trace is larger; SQLite's own limit is 1 GB.
constexpr uint64_t kMaxPayload = uint64_t{256} << 20;

// Bytes of a serial type 0 to 9 (section 2.1); 10 and 11 are reserved.
constexpr uint8_t kSizes[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0};

// Padding after every buffer of pages, so that a number of any size can be read as 8 bytes.
constexpr size_t kPadding = 8;

// A big-endian signed number of 64 - shift bits.
int64_t BigSigned(const uint8_t* p, int shift) {
  uint64_t bytes = 0;
  std::memcpy(&bytes, p, sizeof bytes);
  return static_cast<int64_t>(__builtin_bswap64(bytes)) >> shift;
}

// The begin of a varint's successor (section 1.6). 8 bytes are read, for which there is padding.
inline const uint8_t* BehindVarint(const uint8_t* p) {
  uint64_t bytes = 0;
  std::memcpy(&bytes, p, sizeof bytes);
  const uint64_t ends = ~bytes & 0x8080808080808080;
  return p + (ends != 0 ? std::countr_zero(ends) / 8 + 1 : kMaxVarint);
}

// Headers of a table may differ in any byte, so all that are compared are hashed.
inline size_t HashOf(const uint8_t* header, size_t size) {
  uint64_t hash = size;
  uint64_t word = 0;
  size_t at = 0;
  for (; at + 8 <= size; at += 8) {
    std::memcpy(&word, header + at, sizeof word);
    hash = std::rotl(hash, 23) + word * 0x9E3779B97F4A7C15;
  }
  // The padding after a page is long enough for any header's end.
  std::memcpy(&word, header + at, sizeof word);
  word &= ~(~uint64_t{0} << 8 * (size - at));
  hash = std::rotl(hash, 23) + word * 0xD6E8FEB86659FD93;
  return (hash * 0x9E3779B97F4A7C15) >> 56;
}

// Whether a header equals that of a plan, which is zero-padded. Calling memcmp took 2 % of a whole run.
inline bool IsSameHeader(const uint8_t* header, const uint8_t* known, size_t size) {
  uint64_t here = 0;
  uint64_t there = 0;
  size_t at = 0;
  for (; at + 8 <= size; at += 8) {
    std::memcpy(&here, header + at, sizeof here);
    std::memcpy(&there, known + at, sizeof there);
    if (here != there) return false;
  }
  if (at == size) return true;
  std::memcpy(&here, header + at, sizeof here);
  std::memcpy(&there, known + at, sizeof there);
  return (here & ~(~uint64_t{0} << 8 * (size - at))) == there;
}

}  // namespace

PageReader::PageReader(const Table& table, std::span<const size_t> columns)
    : table_(table), database_(*table.database_), cells_(columns.size() + 1), integers_(columns.size()) {
  for (size_t slot = 0; slot < columns.size(); ++slot) {
    const Column& column = table.columns_[columns[slot]];
    if (slots_.size() <= columns[slot]) slots_.resize(columns[slot] + 1);
    slots_[columns[slot]] = {
        .cell = static_cast<int16_t>(slot), .is_rowid = column.is_rowid, .is_real = column.is_real};
  }
}

size_t PageReader::LeavesPerPart(const Table& table) {
  return std::max<size_t>(1, kPartBytes / table.database_->page_size_);
}

Error PageReader::Corrupt(std::string_view what) const {
  const uint32_t page = table_.leaves_[first_leaf_ + leaf_].page;
  return {ErrorCode::kCorrupt,
          fmt::format("{}: table {}: page {} (byte {}), row {}: {}", database_.path_, table_.name_, page,
                      uint64_t{page - 1} * database_.page_size_, cell_, what)};
}

Status PageReader::Load(size_t first_leaf, size_t count) {
  first_leaf_ = first_leaf;
  leaf_count_ = count;
  read_end_ = 0;
  page_ = nullptr;
  return EnterPage(0);
}

Status PageReader::ReadFrom(size_t index) {
  const size_t page_size = database_.page_size_;
  const size_t count = std::min(leaf_count_ - index, std::max<size_t>(1, kReadBytes / page_size));
  pages_.resize(count * page_size + kPadding);
  read_begin_ = read_end_ = index;
  for (size_t i = 0; i < count;) {  // pages of a table mostly follow each other in the file
    const uint32_t page = table_.leaves_[first_leaf_ + index + i].page;
    size_t run = 1;
    while (i + run < count && table_.leaves_[first_leaf_ + index + i + run].page == page + run) ++run;
    TRY(database_.ReadPages(page, std::span(pages_).subspan(i * page_size, run * page_size)));
    i += run;
  }
  read_end_ = index + count;
  return {};
}

Status PageReader::EnterPage(size_t index) {
  leaf_ = index;
  cell_ = cell_count_ = 0;
  if (index >= leaf_count_) return {};
  if (index >= read_end_) TRY(ReadFrom(index));
  page_ = pages_.data() + (index - read_begin_) * database_.page_size_;
  header_ = table_.leaves_[first_leaf_ + index].page == 1 ? kFileHeaderSize : 0;
  if (page_[header_] != kLeafTablePage)
    return Fail(Corrupt(fmt::format("type {} where a leaf belongs", page_[header_])));
  cell_count_ = Big16(page_ + header_ + kCellCountOffset);
  if (header_ + kLeafHeaderSize + 2 * cell_count_ <= database_.usable_size_) return {};
  cell_count_ = 0;
  return Fail(Corrupt("more cells than fit"));
}

Status PageReader::Seek(size_t part) {
  const size_t per_part = LeavesPerPart(table_);
  const size_t first = part * per_part;
  return Load(first, std::min(per_part, table_.leaves_.size() - first));
}

Result<bool> PageReader::HasRow() {
  while (cell_ == cell_count_) {
    if (leaf_ + 1 >= leaf_count_) return false;
    TRY(EnterPage(leaf_ + 1));
  }
  return true;
}

Result<bool> PageReader::Next(Row& row) {
  ASSIGN_OR_RETURN(const bool more, HasRow());
  if (!more) return false;
  Record record;
  TRY(FindRecord(record));
  Follow(record, row);
  ++cell_;
  return true;
}

Result<bool> PageReader::NextIntegers(IntegerRows& rows) {
  size_t count = 0;
  ASSIGN_OR_RETURN(const bool more, HasRow());
  for (; more && count < IntegerBuffer::kRows && cell_ < cell_count_; ++cell_, ++count) {
    Record record;
    Status found = FindRecord(record);
    if (!found.has_value()) {
      if (count == 0) return std::unexpected(std::move(found).error());
      break;  // the next call fails
    }
    FollowIntegers(record, count);
  }
  rows = integers_.First(count);
  return count > 0;
}

Result<bool> PageReader::Find(int64_t rowid, Row& row) {
  const auto leaf = std::ranges::lower_bound(table_.leaves_, rowid, {}, &Table::Leaf::last_rowid);
  if (leaf == table_.leaves_.end()) return false;
  const auto index = static_cast<size_t>(leaf - table_.leaves_.begin());
  if (page_ == nullptr || leaf_count_ != 1 || first_leaf_ != index) TRY(Load(index, 1));
  size_t low = 0;
  size_t high = cell_count_;
  while (low < high) {
    cell_ = low + (high - low) / 2;
    Record record;
    TRY(FindRecord(record));
    const int64_t here = RowidOf(record);
    if (here == rowid) {
      Follow(record, row);
      return true;
    }
    (here < rowid ? low : high) = here < rowid ? cell_ + 1 : cell_;
  }
  return false;
}

bool PageReader::IsShortHeader(size_t header_size, size_t size) {
  return header_size > 0 && header_size <= Plan::kMaxHeader && header_size <= size;
}

// The types of wanted columns, and of those before, take a byte each, but for those of long texts.
size_t PageReader::SlotOf(const uint8_t* header, size_t header_size) const {
  return HashOf(header, std::min(header_size, 1 + slots_.size()));
}

int64_t PageReader::RowidOf(const Record& record) {
  const uint8_t* p = record.rowid;
  uint64_t rowid = 0;
  ReadVarint(p, p + kMaxVarint, rowid);
  return static_cast<int64_t>(rowid);
}

Status PageReader::FindRecord(Record& record) {
  const size_t usable = database_.usable_size_;
  const size_t at = Big16(page_ + header_ + kLeafHeaderSize + 2 * cell_);
  if (at >= usable) return Fail(Corrupt("lies outside the page"));
  const uint8_t* p = page_ + at;
  const uint8_t* const end = page_ + usable;
  uint64_t payload = 0;
  if (!ReadVarint(p, end, payload)) return Fail(Corrupt("ends outside the page"));
  record.rowid = p;
  p = BehindVarint(p);
  if (p > end) return Fail(Corrupt("ends outside the page"));
  if (payload <= usable - 35) {  // section 1.6: all of it is here
    if (payload > static_cast<uint64_t>(end - p)) return Fail(Corrupt("ends outside the page"));
    return FindPlan(p, payload, record) ? Status() : LearnPlan(p, p + payload, record);
  }
  if (payload > kMaxPayload)
    return Fail(Corrupt(fmt::format("has {} bytes; at most {} are supported", payload, kMaxPayload)));
  const size_t least = (usable - 12) * 32 / 255 - 23;
  const size_t fitting = least + (payload - least) % (usable - 4);
  const size_t local = fitting <= usable - 35 ? fitting : least;
  if (local + 4 > static_cast<uint64_t>(end - p)) return Fail(Corrupt("ends outside the page"));
  TRY(FollowOverflow(p, local, payload));
  const size_t size = overflow_.size();
  overflow_.resize(size + kPadding);
  return LearnPlan(overflow_.data(), overflow_.data() + size, record);
}

Status PageReader::FollowOverflow(const uint8_t* local, size_t local_size, uint64_t payload_size) {
  overflow_.assign(local, local + local_size);
  one_page_.resize(database_.page_size_);
  uint32_t next = Big32(local + local_size);
  // Every page adds to the payload, so a cycle of pages ends too.
  while (overflow_.size() < payload_size) {
    if (next == 0) return Fail(Corrupt("its overflow pages end early"));
    TRY(database_.ReadPages(next, one_page_));
    const size_t here = std::min<uint64_t>(payload_size - overflow_.size(), database_.usable_size_ - 4);
    overflow_.insert(overflow_.end(), one_page_.begin() + 4,
                     one_page_.begin() + 4 + static_cast<std::ptrdiff_t>(here));
    next = Big32(one_page_.data());
  }
  return {};
}

bool PageReader::FindPlan(const uint8_t* p, size_t size, Record& record) {
  const size_t header_size = size > 0 ? *p : 0;
  const auto fits = [&](const Plan& known) {
    return known.header_size == header_size && known.end <= size - header_size &&
           IsSameHeader(p, known.header.data(), known.compared);
  };
  if (!IsShortHeader(header_size, size)) return false;
  if (!fits(*last_plan_)) {
    const Plan* const plan = plans_[SlotOf(p, header_size)].get();
    if (plan == nullptr || !fits(*plan)) return false;
    last_plan_ = plan;
  }
  record.plan = last_plan_;
  record.values = p + header_size;
  return true;
}

Status PageReader::LearnPlan(const uint8_t* p, const uint8_t* end, Record& record) {
  const auto size = static_cast<size_t>(end - p);
  const size_t header_size = size > 0 ? *p : 0;
  Plan plan;
  TRY(MakePlan(p, end, plan));
  record.values = p + plan.header_size;
  if (!IsShortHeader(header_size, size)) {
    long_plan_ = plan;
    record.plan = &long_plan_;
    return {};
  }
  std::memcpy(plan.header.data(), p, plan.compared);
  std::unique_ptr<Plan>& known = plans_[SlotOf(p, header_size)];
  if (known == nullptr) known = std::make_unique<Plan>();
  *known = plan;
  record.plan = last_plan_ = known.get();
  return {};
}

Status PageReader::MakePlan(const uint8_t* p, const uint8_t* end, Plan& plan) {
  const uint8_t* const begin = p;
  uint64_t header_size = 0;
  if (!ReadVarint(p, end, header_size) || header_size > static_cast<uint64_t>(end - begin))
    return Fail(Corrupt("its header is larger than it"));
  // The header's size includes itself; SQLite reads the types after the size, even if the size claims less.
  const uint8_t* const header_end = begin + header_size;
  uint64_t at = 0;
  plan.header_size = static_cast<uint32_t>(header_size);
  for (const Slot& slot : slots_) {
    uint64_t type = 0;  // rows older than a column end before it: NULL
    if (p < header_end && !ReadVarint(p, header_end, type)) return Fail(Corrupt("its header ends early"));
    if (type == 10 || type == 11) return Fail(Corrupt(fmt::format("serial type {}", type)));
    const uint64_t size = type < 10 ? kSizes[type] : (type - 12) / 2;
    if (size > static_cast<uint64_t>(end - header_end) - at) return Fail(Corrupt("a value ends outside it"));
    if (slot.cell >= 0) {
      const Plan::Value value = PlanOf(slot, type, at, size);
      PlanInteger(plan, value);
      plan.values[plan.count++] = value;
    }
    at += size;
  }
  plan.compared = static_cast<uint32_t>(p - begin);
  plan.end = static_cast<uint32_t>(at);
  return {};
}

PageReader::Plan::Value PageReader::PlanOf(const Slot& slot, uint64_t type, uint64_t offset, uint64_t size) {
  Plan::Value value{.cell = static_cast<uint16_t>(slot.cell),
                    .offset = static_cast<uint32_t>(offset),
                    .size = static_cast<uint32_t>(size)};
  if (slot.is_rowid) {
    value.kind = Plan::Kind::kRowid;
  } else if (type >= 1 && type <= 6) {
    value.kind = slot.is_real ? Plan::Kind::kRealFromInteger : Plan::Kind::kInteger;
    value.shift = static_cast<uint8_t>(64 - 8 * size);
  } else if (type == 7) {
    value.kind = Plan::Kind::kReal;
  } else if (type == 8 || type == 9) {
    value.kind = Plan::Kind::kConstant;
    value.size = type == 9 ? 1 : 0;
    // Values without bytes; a real column has 0.0 or 1.0.
    value.shift = slot.is_real ? 1 : 0;
  } else if (type >= 12) {
    value.kind = (type & 1) != 0 ? Plan::Kind::kText : Plan::Kind::kBlob;
  }
  return value;
}

void PageReader::PlanInteger(Plan& plan, const Plan::Value& value) {
  Plan::Integer integer{.offset = value.offset, .cell = static_cast<uint8_t>(value.cell)};
  bool is_integer = true;
  if (value.kind == Plan::Kind::kInteger) {
    integer.shift = value.shift;
    integer.keep = -1;
  } else if (value.kind == Plan::Kind::kRowid) {
    plan.rowid_cell = static_cast<int16_t>(value.cell);
  } else if (value.kind == Plan::Kind::kConstant && value.shift == 0) {
    integer.constant = static_cast<uint8_t>(value.size);
  } else {
    is_integer = false;
  }
  plan.integers[plan.count] = integer;
  if (is_integer) plan.is_integer |= uint64_t{1} << value.cell;
}

void PageReader::FollowIntegers(const Record& record, size_t row) {
  const Plan& plan = *record.plan;
  int64_t* const values = integers_.RowAt(row);
  for (size_t i = 0; i < plan.count; ++i) {
    const Plan::Integer& integer = plan.integers[i];
    const int64_t stored = BigSigned(record.values + integer.offset, integer.shift);
    values[integer.cell] = (stored & integer.keep) | integer.constant;
  }
  if (plan.rowid_cell >= 0) values[plan.rowid_cell] = RowidOf(record);
  integers_.IntegersAt(row) = plan.is_integer;
}

void PageReader::Follow(const Record& record, Row& row) {
  const Plan& plan = *record.plan;
  row.rowid = RowidOf(record);
  row.cells = cells_;
  for (size_t i = 0; i < plan.count; ++i) {
    const Plan::Value& value = plan.values[i];
    const uint8_t* const p = record.values + value.offset;
    Cell& cell = cells_[value.cell];
    switch (value.kind) {
      case Plan::Kind::kInteger:
        cell.type = CellType::kInteger;
        cell.integer = BigSigned(p, value.shift);
        break;
      case Plan::Kind::kNull:
        cell.type = CellType::kNull;
        break;
      case Plan::Kind::kConstant:
        cell.type = value.shift != 0 ? CellType::kReal : CellType::kInteger;
        cell.integer = value.size;
        cell.real = value.size;
        break;
      case Plan::Kind::kRowid:
        cell.type = CellType::kInteger;
        cell.integer = row.rowid;
        break;
      case Plan::Kind::kReal:
        cell.type = CellType::kReal;
        cell.real = std::bit_cast<double>(BigSigned(p, 0));
        if (cell.real != cell.real) cell.type = CellType::kNull;  // SQLite reads NaN as NULL
        break;
      case Plan::Kind::kRealFromInteger:
        cell.type = CellType::kReal;
        cell.real = static_cast<double>(BigSigned(p, value.shift));
        break;
      case Plan::Kind::kText:
      case Plan::Kind::kBlob:
        cell.type = value.kind == Plan::Kind::kText ? CellType::kText : CellType::kBlob;
        cell.bytes = {reinterpret_cast<const char*>(p), value.size};
        break;
    }
  }
}

}  // namespace gpusonde::importers::sqlite
