// SPDX-License-Identifier: Apache-2.0
#include "unwind/compile.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/packing.h"
#include "symbols/elf_image.h"
#include "symbols/go_section.h"
#include "unwind/cfa_program.h"
#include "unwind/go_frames.h"

namespace gpusonde::unwind {
namespace {

constexpr uint64_t kPageBytes = 65536;
// The maximum padding between functions. No code runs there, so it keeps the rule before it, which saves a
// tenth of all rows.
constexpr uint64_t kFunctionAlignment = 16;
constexpr uint64_t kMapPageBytes = 4096;
// Maximum size of .eh_frame and of .debug_frame; libtorch_cpu, the largest library seen, has 20 MB.
constexpr uint64_t kMaxSectionBytes = uint64_t{64} << 20;

// Maximum number of functions of a file. libtorch_cpu, the largest library seen, has 400,000.
constexpr size_t kMaxFunctions = 1'000'000;
// As many as fit into the kernel's tables for all files together.
constexpr size_t kMaxRows = size_t{GPUSONDE_UNWIND_SHARDS} * GPUSONDE_UNWIND_SHARD_WORDS;
// Limit of the bytes of instructions run per byte of the sections. In compilers' output entries don't
// overlap, and the CIEs' instructions are few: the ratio is 0.7 to 0.8 in this machine's libraries.
constexpr uint64_t kMaxInstructionsPerByte = 2;

// The source of a function's rules, in order of precedence.
enum class Origin : uint8_t { kGo, kEhFrame, kDebugFrame };

struct Function {
  Origin origin = Origin::kEhFrame;
  Fde fde;                        // for a Go function, only its begin and end
  symbols::GoTable::Function go;  // for a Go function
};

class Compiler {
 public:
  Compiler(std::vector<Table::Segment> segments, RuleSet& rules) : rules_(rules) {
    table_.segments = std::move(segments);
  }

  // The section must outlive the compiler.
  void Add(const CfiSection& section) {
    instructions_left_ += section.bytes.size() * kMaxInstructionsPerByte;
    std::unordered_map<const Cie*, const Cie*> kept;
    table_.malformed += ForEachFde(section, [&](const Fde& fde) {
      if (!IsCode(fde)) return true;
      if (functions_.size() > kMaxFunctions) return false;
      const auto [cie, is_new] = kept.try_emplace(fde.cie);
      if (is_new) cie->second = &cies_.emplace_back(*fde.cie);
      functions_.push_back(
          {section.format == CfiFormat::kDebugFrame ? Origin::kDebugFrame : Origin::kEhFrame, fde, {}});
      functions_.back().fde.cie = cie->second;
      return true;
    });
  }

  // The table must outlive the compiler.
  void Add(const GoFrames& go) {
    go_ = &go;
    instructions_left_ += go.bytes() * kMaxInstructionsPerByte;
    for (const symbols::GoTable::Function& function : go.functions())
      if (const Fde place{.start = function.start, .end = function.end}; IsCode(place))
        functions_.push_back({Origin::kGo, place, function});
  }

  // Errors: kUnsupported if it would take too much time or memory.
  Result<Table> Finish() {
    if (functions_.size() > kMaxFunctions)
      return Fail(ErrorCode::kUnsupported,
                  fmt::format("its unwind tables describe more than {} functions", kMaxFunctions));
    std::ranges::sort(functions_, {}, [](const Function& function) {
      return std::tuple(function.fde.start, function.origin, function.fde.end);
    });
    // Skip a second entry for the same code, and entries within a Go function.
    std::optional<uint64_t> last_start;
    uint64_t go_end = 0;
    std::erase_if(functions_, [&](const Function& function) {
      const Fde& fde = function.fde;
      const bool is_go = function.origin == Origin::kGo;
      if (fde.start == last_start || (!is_go && fde.start < go_end)) return true;
      last_start = fde.start;
      if (is_go) go_end = fde.end;
      return false;
    });
    // A function's claimed end may overlap the next one.
    for (size_t i = 0; i < functions_.size(); ++i) {
      Fde& fde = functions_[i].fde;
      if (fde.start < covered_to_) continue;
      if (i + 1 < functions_.size()) fde.end = std::min(fde.end, functions_[i + 1].fde.start);
      if (fde.end > fde.start) TRY(Append(functions_[i]));
    }
    if (!table_.pages.empty()) Put(covered_to_, RuleSet::kNone);
    return std::move(table_);
  }

 private:
  bool IsCode(const Fde& fde) const {
    return std::ranges::any_of(table_.segments, [&fde](const Table::Segment& segment) {
      return fde.start >= segment.address && fde.end - segment.address <= segment.size;
    });
  }

  Status Append(const Function& function) {
    const Fde& fde = function.fde;
    if (table_.pages.empty()) table_.base = fde.start / kPageBytes * kPageBytes;
    if ((fde.end - table_.base) / kPageBytes >= GPUSONDE_UNWIND_MAX_PAGES)
      return Fail(ErrorCode::kUnsupported, "its code covers 2 GiB and more");
    if (!table_.pages.empty() && fde.start - covered_to_ >= kFunctionAlignment)
      Put(covered_to_, RuleSet::kNone);
    uint64_t changes = 0;
    const auto put = [&](uint64_t address, const Rule& rule) {
      ++changes;
      if (address < fde.end && table_.rows.size() < kMaxRows) Put(address, rules_.Intern(rule));
    };
    const bool is_go = function.origin == Origin::kGo;
    if (!is_go) TRY(Spend(fde.cie->instructions.size() + fde.instructions.size()));
    const bool whole = is_go ? go_->Run(function.go, put) : RunCfaProgram(fde, put);
    if (is_go) TRY(Spend(changes));
    if (table_.rows.size() >= kMaxRows)
      return Fail(ErrorCode::kUnsupported, fmt::format("its unwind table has more than {} rows", kMaxRows));
    if (!whole) ++table_.malformed;
    covered_to_ = fde.end;
    ++table_.functions;
    return {};
  }

  Status Spend(uint64_t instructions) {
    if (instructions > instructions_left_)
      return Fail(
          ErrorCode::kUnsupported,
          fmt::format(
              "its unwind entries overlap: they have more than {} bytes of instructions for each byte",
              kMaxInstructionsPerByte));
    instructions_left_ -= instructions;
    return {};
  }

  // Adds a row: `rule` applies from `address` on. Addresses must ascend.
  void Put(uint64_t address, uint16_t rule) {
    const uint64_t offset = address - table_.base;
    while (table_.pages.size() <= offset / kPageBytes) {
      table_.pages.push_back({.first = static_cast<uint32_t>(table_.rows.size()), .count = 0});
      PutRow(0, last_rule_);  // the rule that applies at the page's begin
    }
    if (rule == last_rule_) return;
    last_rule_ = rule;
    const auto low = static_cast<uint16_t>(offset % kPageBytes);
    if ((table_.rows.back() & 0xFFFF) == low) {
      table_.rows.back() = uint32_t{rule} << 16 | low;
      return;
    }
    PutRow(low, rule);
  }
  void PutRow(uint16_t low, uint16_t rule) {
    table_.rows.push_back(uint32_t{rule} << 16 | low);
    ++table_.pages.back().count;
  }

  RuleSet& rules_;
  Table table_;
  std::vector<Function> functions_;
  std::deque<Cie> cies_;
  const GoFrames* go_ = nullptr;
  uint64_t instructions_left_ = 0;
  uint64_t covered_to_ = 0;
  uint16_t last_rule_ = RuleSet::kNone;
};

std::vector<Table::Segment> CodeSegments(const symbols::ElfImage& image) {
  std::vector<Table::Segment> segments;
  for (const symbols::ElfImage::Segment& segment : image.segments()) {
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    // A segment is mapped from the begin of a page.
    const uint64_t before = segment.p_vaddr % kMapPageBytes;
    if (before > segment.p_offset) continue;
    segments.push_back({segment.p_offset - before, segment.p_memsz + before, segment.p_vaddr - before});
  }
  return segments;
}

std::vector<std::byte> ReadCode(int fd, const std::vector<Table::Segment>& segments, uint64_t address,
                                uint64_t size) {
  for (const Table::Segment& segment : segments) {
    if (address < segment.address || address - segment.address >= segment.size) continue;
    std::vector<std::byte> code(size);
    const ssize_t count = ::pread(fd, code.data(), code.size(),
                                  static_cast<off_t>(segment.file_offset + (address - segment.address)));
    code.resize(count < 0 ? 0 : static_cast<size_t>(count));
    return code;
  }
  return {};
}

}  // namespace

std::optional<uint64_t> BiasOf(const std::vector<Table::Segment>& segments, uint64_t base, uint64_t start,
                               uint64_t file_offset) {
  for (const Table::Segment& segment : segments)
    if (file_offset >= segment.file_offset && file_offset - segment.file_offset < segment.size)
      return start - (segment.address + (file_offset - segment.file_offset)) + base;
  return std::nullopt;
}

Result<Table> Compile(const std::vector<CfiSection>& sections, std::vector<Table::Segment> segments,
                      RuleSet& rules) {
  Compiler compiler(std::move(segments), rules);
  for (const CfiSection& section : sections) compiler.Add(section);
  return compiler.Finish();
}

Result<Table> CompileFile(int fd, const std::string& name, RuleSet& rules) {
  ASSIGN_OR_RETURN(symbols::ElfImage image, symbols::ElfImage::Read(fd, name));
  std::vector<Table::Segment> segments = CodeSegments(image);
  Compiler compiler(segments, rules);
  ASSIGN_OR_RETURN(const std::optional<symbols::GoSection> go, symbols::FindGoSection(image));
  std::optional<GoFrames> go_frames;
  if (go.has_value())
    compiler.Add(go_frames.emplace(go->table, [fd, &segments](uint64_t address, uint64_t size) {
      return ReadCode(fd, segments, address, size);
    }));
  std::deque<std::vector<std::byte>> contents;  // the compiler refers to these
  for (const symbols::ElfImage::Section& section : image.sections()) {
    const bool eh = section.name == ".eh_frame";
    if (!eh && section.name != ".debug_frame") continue;
    Result<std::vector<std::byte>> bytes = image.Contents(section, kMaxSectionBytes);
    if (!bytes.has_value() && !eh) continue;  // unsupported compression: use .eh_frame only
    if (!bytes.has_value()) return Fail(std::move(bytes).error());
    compiler.Add({contents.emplace_back(std::move(*bytes)), section.address,
                  eh ? CfiFormat::kEhFrame : CfiFormat::kDebugFrame});
  }
  Result<Table> table = compiler.Finish();
  if (!table.has_value()) return Fail(std::move(table).error().With(name));
  return table;
}

std::string Pack(const Table& table, std::span<const Rule> rules) {
  Packer packer;
  packer.Value(table.base);
  packer.Array(std::span(table.pages));
  packer.Array(std::span(table.rows));
  packer.Array(std::span(table.segments));
  packer.Value(table.functions);
  packer.Value(table.malformed);
  packer.Array(rules);
  return packer.Take();
}

Result<CompiledTable> Unpack(std::string_view bytes) {
  Unpacker unpacker(bytes);
  CompiledTable unpacked;
  Table& table = unpacked.table;
  table.base = unpacker.Value<uint64_t>();
  table.pages = unpacker.Array<Table::Page>();
  table.rows = unpacker.Array<uint32_t>();
  table.segments = unpacker.Array<Table::Segment>();
  table.functions = unpacker.Value<int64_t>();
  table.malformed = unpacker.Value<int64_t>();
  unpacked.rules = unpacker.Array<Rule>();
  uint64_t rows = 0;  // which the pages divide up
  const bool pages_follow = std::ranges::all_of(table.pages, [&rows](const Table::Page& page) {
    return page.first == std::exchange(rows, rows + page.count);
  });
  std::unordered_set<Rule, RuleHash, RuleEqual> distinct(unpacked.rules.begin(), unpacked.rules.end());
  if (!unpacker.Complete() || !pages_follow || rows != table.rows.size() || rows > kMaxRows ||
      table.pages.size() > GPUSONDE_UNWIND_MAX_PAGES || unpacked.rules.size() > GPUSONDE_UNWIND_RULES ||
      distinct.size() != unpacked.rules.size() ||
      std::ranges::any_of(table.rows, [&](uint32_t row) { return row >> 16 >= unpacked.rules.size(); }))
    return Fail(ErrorCode::kCorrupt, "an unwind table of another process doesn't parse");
  return unpacked;
}

}  // namespace gpusonde::unwind
