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
// No row of a trace is larger; SQLite's own limit is 1 GB.
constexpr uint64_t kMaxPayload = uint64_t{256} << 20;

// Bytes of a serial type 0 to 9 (section 2.1); 10 and 11 are reserved.
constexpr uint8_t kSizes[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0};

// Behind every buffer of pages, so that a number of any size is read as 8 bytes.
constexpr size_t kPadding = 8;

// A big-endian signed number of 1 to 8 bytes.
int64_t BigSigned(const uint8_t* p, size_t size) {
  uint64_t bytes = 0;
  std::memcpy(&bytes, p, sizeof bytes);
  return static_cast<int64_t>(__builtin_bswap64(bytes)) >> (64 - 8 * size);
}

void SetInteger(Cell& cell, int64_t value) {
  cell.type = CellType::kInteger;
  cell.integer = value;
}

// `type` is none of the reserved ones, and its bytes lie at p.
void SetCell(Cell& cell, uint64_t type, const uint8_t* p, size_t size) {
  if (type - 1 < 6) return SetInteger(cell, BigSigned(p, size));
  switch (type) {
    case 0:
      cell.type = CellType::kNull;
      return;
    case 7:
      cell.type = CellType::kReal;
      cell.real = std::bit_cast<double>(BigSigned(p, 8));
      if (cell.real != cell.real) cell.type = CellType::kNull;  // SQLite reads NaN as NULL
      return;
    case 8:
      return SetInteger(cell, 0);
    case 9:
      return SetInteger(cell, 1);
    default:
      cell.type = (type & 1) != 0 ? CellType::kText : CellType::kBlob;
      cell.bytes = {reinterpret_cast<const char*>(p), size};
  }
}

}  // namespace

PageReader::PageReader(const Table& table, std::span<const size_t> columns)
    : table_(table), database_(*table.database_), cells_(columns.size()) {
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
  const size_t page_size = database_.page_size_;
  first_leaf_ = first_leaf;
  leaf_count_ = count;
  leaf_ = 0;
  cell_ = cell_count_ = 0;
  page_ = nullptr;
  pages_.resize(count * page_size + kPadding);
  for (size_t i = 0; i < count;) {  // pages of a table mostly follow each other in the file
    const uint32_t page = table_.leaves_[first_leaf + i].page;
    size_t run = 1;
    while (i + run < count && table_.leaves_[first_leaf + i + run].page == page + run) ++run;
    TRY(database_.ReadPages(page, std::span(pages_).subspan(i * page_size, run * page_size)));
    i += run;
  }
  return EnterPage(0);
}

Status PageReader::EnterPage(size_t index) {
  leaf_ = index;
  cell_ = cell_count_ = 0;
  if (index >= leaf_count_) return {};
  page_ = pages_.data() + index * database_.page_size_;
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

Result<bool> PageReader::Next(Row& row) {
  while (cell_ == cell_count_) {
    if (leaf_ + 1 >= leaf_count_) return false;
    TRY(EnterPage(leaf_ + 1));
  }
  TRY(DecodeCell(row));
  ++cell_;
  return true;
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
    TRY(DecodeCell(row));
    if (row.rowid == rowid) return true;
    (row.rowid < rowid ? low : high) = row.rowid < rowid ? cell_ + 1 : cell_;
  }
  return false;
}

Status PageReader::DecodeCell(Row& row) {
  const size_t usable = database_.usable_size_;
  const size_t at = Big16(page_ + header_ + kLeafHeaderSize + 2 * cell_);
  if (at >= usable) return Fail(Corrupt("lies outside the page"));
  const uint8_t* p = page_ + at;
  const uint8_t* const end = page_ + usable;
  uint64_t payload = 0;
  uint64_t rowid = 0;
  if (!ReadVarint(p, end, payload) || !ReadVarint(p, end, rowid))
    return Fail(Corrupt("ends outside the page"));
  row.rowid = static_cast<int64_t>(rowid);
  row.cells = cells_;
  if (payload <= usable - 35) {  // section 1.6: all of it is here
    if (payload > static_cast<uint64_t>(end - p)) return Fail(Corrupt("ends outside the page"));
    return DecodeRecord(p, p + payload, row.rowid);
  }
  if (payload > kMaxPayload)
    return Fail(Corrupt(fmt::format("has {} bytes; more than {} are no trace", payload, kMaxPayload)));
  const size_t least = (usable - 12) * 32 / 255 - 23;
  const size_t fitting = least + (payload - least) % (usable - 4);
  const size_t local = fitting <= usable - 35 ? fitting : least;
  if (local + 4 > static_cast<uint64_t>(end - p)) return Fail(Corrupt("ends outside the page"));
  TRY(FollowOverflow(p, local, payload));
  const size_t size = overflow_.size();
  overflow_.resize(size + kPadding);
  return DecodeRecord(overflow_.data(), overflow_.data() + size, row.rowid);
}

Status PageReader::FollowOverflow(const uint8_t* local, size_t local_size, uint64_t payload_size) {
  overflow_.assign(local, local + local_size);
  one_page_.resize(database_.page_size_);
  uint32_t next = Big32(local + local_size);
  // Every page adds to the payload, so a circle of pages ends too.
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

Status PageReader::DecodeRecord(const uint8_t* p, const uint8_t* end, int64_t rowid) {
  const uint8_t* const begin = p;
  uint64_t header_size = 0;
  if (!ReadVarint(p, end, header_size) || header_size > static_cast<uint64_t>(end - begin))
    return Fail(Corrupt("its header is larger than it"));
  const uint8_t* const header_end = begin + header_size;
  const uint8_t* value = header_end;
  for (const Slot& slot : slots_) {
    uint64_t type = 0;  // rows older than a column end before it: NULL
    if (p < header_end && !ReadVarint(p, header_end, type)) return Fail(Corrupt("its header ends early"));
    if (type == 10 || type == 11) return Fail(Corrupt(fmt::format("serial type {}", type)));
    const uint64_t size = type < 10 ? kSizes[type] : (type - 12) / 2;
    if (size > static_cast<uint64_t>(end - value)) return Fail(Corrupt("a value ends outside it"));
    if (slot.cell >= 0) {
      Cell& cell = cells_[static_cast<size_t>(slot.cell)];
      SetCell(cell, type, value, size);
      if (slot.is_rowid) SetInteger(cell, rowid);
      if (slot.is_real && cell.type == CellType::kInteger) {
        cell.type = CellType::kReal;
        cell.real = static_cast<double>(cell.integer);
      }
    }
    value += size;
  }
  return {};
}

}  // namespace gpusonde::importers::sqlite
