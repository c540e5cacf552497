// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "flight_recorder/value.h"

namespace gpusonde::flight_recorder {
namespace {

// The opcodes of values that are only data.
enum class Op : uint8_t {
  kMark = '(',
  kStop = '.',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinUnicode = 'X',
  kEmptyList = ']',
  kAppend = 'a',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyDict = '}',
  kEmptyTuple = ')',
  kBinFloat = 'G',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kMemoize = 0x94,
  kFrame = 0x95,
};

constexpr uint8_t kMaxProtocol = 5;

// Python fills a container before it puts it into another one. Otherwise containers could hold each other, or
// be nested without a limit.
constexpr std::string_view kGrows = "a container that grows within another one";

// A machine with a stack of values and of marks in it, and a memo of values that are referred to again. Once
// something is wrong, it does nothing more.
class Unpickler {
 public:
  explicit Unpickler(std::string_view bytes) : bytes_(bytes) {}

  Result<Value> Run() {
    while (!stopped_ && !error_.has_value()) {
      start_ = at_;
      Step(static_cast<Op>(Unsigned<uint8_t>()));
    }
    if (error_.has_value()) return std::unexpected(*error_);
    if (stack_.size() != 1 || !marks_.empty())
      Corrupt("the end is reached with another number of values than one");
    if (error_.has_value()) return std::unexpected(*error_);
    return std::move(stack_.back());
  }

 private:
  void Corrupt(std::string_view what) {
    if (!error_.has_value())
      error_ = {ErrorCode::kCorrupt, fmt::format("not a pickle of plain data at byte {}: {}", start_, what)};
  }

  std::string_view Bytes(uint64_t count) {
    if (count > bytes_.size() - at_) {
      Corrupt("the file ends too early");
      return {};
    }
    return bytes_.substr(std::exchange(at_, at_ + count), count);
  }
  template <class T>
  T Unsigned() {
    T value = 0;
    size_t shift = 0;
    for (const char byte : Bytes(sizeof(T))) {
      value = static_cast<T>(value | static_cast<T>(static_cast<T>(static_cast<uint8_t>(byte)) << shift));
      shift += 8;
    }
    return value;
  }

  void Push(Value value) {
    if (++values_ > kMaxValues)
      error_ = {ErrorCode::kUnsupported, fmt::format("more than {} values", kMaxValues)};
    else
      stack_.push_back(std::move(value));
  }
  Value Pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) {
      Corrupt("a value is missing");
      return {};
    }
    Value value = std::move(stack_.back());
    stack_.pop_back();
    return value;
  }
  // The values since the last mark.
  std::vector<Value> PopToMark() {
    if (marks_.empty()) {
      Corrupt("a mark is missing");
      return {};
    }
    const auto from = stack_.begin() + static_cast<ptrdiff_t>(marks_.back());
    std::vector<Value> values(std::make_move_iterator(from), std::make_move_iterator(stack_.end()));
    stack_.erase(from, stack_.end());
    marks_.pop_back();
    return values;
  }
  std::vector<Value> PopSome(size_t count) {
    std::vector<Value> values(count);
    while (count > 0) values[--count] = Pop();
    return values;
  }
  const Value* Top() {
    if (stack_.size() > (marks_.empty() ? 0 : marks_.back())) return &stack_.back();
    Corrupt("a value is missing");
    return nullptr;
  }

  // How deep a container becomes by holding `value`.
  size_t Deeper(size_t depth, const Value& value) {
    size_t within = 0;
    if (List* const list = value.AsList()) {
      within = list->depth;
      list->is_held = true;
    } else if (Dict* const dict = value.AsDict()) {
      within = dict->depth;
      dict->is_held = true;
    }
    if (within + 1 > kMaxDepth)
      error_ = {ErrorCode::kUnsupported,
                fmt::format("containers within containers, more than {} deep", kMaxDepth)};
    return std::max(depth, within + 1);
  }
  void Append(std::vector<Value> values) {
    const Value* top = Top();
    List* list = top == nullptr ? nullptr : top->AsList();
    if (list == nullptr) return Corrupt("an item for what isn't a list");
    if (list->is_held) return Corrupt(kGrows);
    for (Value& value : values) {
      if (value.AsList() == list) return Corrupt(kGrows);
      list->depth = Deeper(list->depth, value);
      list->items.push_back(std::move(value));
    }
  }
  void SetItems(std::vector<Value> values) {
    const Value* top = Top();
    Dict* dict = top == nullptr ? nullptr : top->AsDict();
    if (dict == nullptr || values.size() % 2 != 0) return Corrupt("an item for what isn't a dictionary");
    if (dict->is_held) return Corrupt(kGrows);
    for (size_t i = 0; i < values.size(); i += 2) {
      if (values[i].Text() == nullptr) return Corrupt("a key that isn't text");
      if (values[i + 1].AsDict() == dict) return Corrupt(kGrows);
      dict->depth = Deeper(dict->depth, values[i + 1]);
      dict->items.emplace_back(std::move(values[i]), std::move(values[i + 1]));
    }
  }
  void PushTuple(std::vector<Value> values) {
    Push(Value(std::make_shared<List>()));
    if (!error_.has_value()) Append(std::move(values));
  }
  void PushText(uint64_t size) { Push(Value(std::string(Bytes(size)))); }
  void PushLong(size_t size) {
    if (size > sizeof(int64_t)) return Corrupt("a number of more than 64 bits");
    uint64_t bits = 0;
    const std::string_view bytes = Bytes(size);
    for (size_t i = 0; i < bytes.size(); ++i) bits |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
    // The highest bit of the last byte is the sign.
    if (!bytes.empty() && bytes.size() < sizeof bits && (static_cast<uint8_t>(bytes.back()) & 0x80) != 0)
      bits |= ~uint64_t{0} << (8 * bytes.size());
    Push(Value(static_cast<int64_t>(bits)));
  }
  void PushFloat() {
    uint64_t bits = 0;  // big endian
    for (const char byte : Bytes(sizeof bits)) bits = bits << 8 | static_cast<uint8_t>(byte);
    Push(Value(std::bit_cast<double>(bits)));
  }
  void Mark() {
    if (marks_.size() == 2 * kMaxDepth) return Corrupt("too many open marks");
    marks_.push_back(stack_.size());
  }
  void Get(uint32_t id) {
    const auto found = memo_.find(id);
    found == memo_.end() ? Corrupt("a reference to nothing") : Push(found->second);
  }
  void Put(uint32_t id) {
    if (memo_.size() == kMaxValues) return Corrupt("too many values to refer to");
    if (const Value* top = Top()) memo_.insert_or_assign(id, *top);
  }

  void Step(Op op) {
    switch (op) {
      case Op::kProto:
        if (const auto protocol = Unsigned<uint8_t>(); protocol < 2 || protocol > kMaxProtocol)
          Corrupt("an unknown protocol");
        break;
      case Op::kFrame:
        Bytes(sizeof(uint64_t));
        break;
      case Op::kMark:
        Mark();
        break;
      case Op::kStop:
        stopped_ = true;
        break;
      case Op::kNone:
        Push({});
        break;
      case Op::kNewTrue:
        Push(Value(true));
        break;
      case Op::kNewFalse:
        Push(Value(false));
        break;
      case Op::kBinInt:
        Push(Value(int64_t{static_cast<int32_t>(Unsigned<uint32_t>())}));
        break;
      case Op::kBinInt1:
        Push(Value(int64_t{Unsigned<uint8_t>()}));
        break;
      case Op::kBinInt2:
        Push(Value(int64_t{Unsigned<uint16_t>()}));
        break;
      case Op::kLong1:
        PushLong(Unsigned<uint8_t>());
        break;
      case Op::kBinFloat:
        PushFloat();
        break;
      case Op::kShortBinUnicode:
        PushText(Unsigned<uint8_t>());
        break;
      case Op::kBinUnicode:
        PushText(Unsigned<uint32_t>());
        break;
      case Op::kBinUnicode8:
        PushText(Unsigned<uint64_t>());
        break;
      case Op::kEmptyList:
      case Op::kEmptyTuple:
        Push(Value(std::make_shared<List>()));
        break;
      case Op::kEmptyDict:
        Push(Value(std::make_shared<Dict>()));
        break;
      case Op::kTuple:
        PushTuple(PopToMark());
        break;
      case Op::kTuple1:
        PushTuple(PopSome(1));
        break;
      case Op::kTuple2:
        PushTuple(PopSome(2));
        break;
      case Op::kTuple3:
        PushTuple(PopSome(3));
        break;
      case Op::kAppend:
        Append(PopSome(1));
        break;
      case Op::kAppends:
        Append(PopToMark());
        break;
      case Op::kSetItem:
        SetItems(PopSome(2));
        break;
      case Op::kSetItems:
        SetItems(PopToMark());
        break;
      case Op::kBinGet:
        Get(Unsigned<uint8_t>());
        break;
      case Op::kLongBinGet:
        Get(Unsigned<uint32_t>());
        break;
      case Op::kBinPut:
        Put(Unsigned<uint8_t>());
        break;
      case Op::kLongBinPut:
        Put(Unsigned<uint32_t>());
        break;
      case Op::kMemoize:
        Put(static_cast<uint32_t>(memo_.size()));
        break;
      default:
        Corrupt(fmt::format("opcode {:#04x} is not of plain data", static_cast<uint8_t>(op)));
    }
  }

  std::string_view bytes_;
  size_t at_ = 0, start_ = 0;  // of the next byte; of the current opcode
  size_t values_ = 0;          // pushed so far
  bool stopped_ = false;
  std::optional<Error> error_;
  std::vector<Value> stack_;
  std::vector<size_t> marks_;  // sizes of the stack
  std::unordered_map<uint32_t, Value> memo_;
};

}  // namespace

Result<Value> ReadPickle(std::string_view bytes) { return Unpickler(bytes).Run(); }

}  // namespace gpusonde::flight_recorder
