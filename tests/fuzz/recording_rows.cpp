// SPDX-License-Identifier: Apache-2.0
// Our handling of rows from an untrusted recording: indices, sums and texts of any value, missing and
// repeated rows. The rows come from the input, not from DuckDB: changed files corrupt DuckDB's memory, so
// that a fuzzer of whole files would find nothing else. tests/e2e/crafted_recordings_test.py changes files.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "exporters/exporter.h"
#include "exporters/summary.h"
#include "server/api.h"
#include "server/flame_tree.h"
#include "server/gpu_facts.h"
#include "store/queries/gpu_query.h"
#include "store/queries/profile_query.h"
#include "store/store.h"

namespace {

using namespace gpusonde;  // NOLINT(google-build-using-namespace): a program of its own
using model::Profile;

// Values of all types, from the input; zeros once it is used up.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : bytes_(data, size) {}

  bool empty() const { return bytes_.empty(); }
  uint8_t Byte() {
    if (bytes_.empty()) return 0;
    const uint8_t byte = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return byte;
  }
  // Few, so that rows refer to each other.
  Id128 Id() {
    const uint8_t byte = Byte();
    return {.high = byte % 16U, .low = byte % 16U};
  }
  int64_t Int64() {
    constexpr int64_t kBounds[] = {std::numeric_limits<int64_t>::min(),
                                   std::numeric_limits<int64_t>::max(),
                                   std::numeric_limits<int32_t>::min(),
                                   std::numeric_limits<int32_t>::max(),
                                   std::numeric_limits<uint32_t>::max(),
                                   -1,
                                   1'000'000'000,
                                   1'700'000'000'000'000'000};
    const uint8_t kind = Byte();
    if (kind < 128) return kind;
    if (kind < 136) return kBounds[kind - 128];
    return kind < 192 ? Raw<int32_t>() : Raw<int64_t>();
  }
  double Float64() {
    const uint8_t kind = Byte();
    if (kind < 128) return kind / 16.0;
    if (kind < 192) return static_cast<double>(Int64());
    return Raw<double>();
  }
  std::string Text() {
    constexpr const char* kTexts[] = {
        "",         "on_cpu",    "io",     "gpu_wait",      "native", "kernel",
        "python",   "gpu",       "jit",    "all",           "lost",   "sampled",
        "captured", "gpu.power", "record", "_ZN3foo3barEv", "a.py",   "\x1b[31m\xff"};
    const uint8_t kind = Byte();
    if (kind < 128) return kTexts[kind % std::size(kTexts)];
    std::string text(kind % 32, '\0');
    for (char& byte : text) byte = static_cast<char>(Byte());
    return text;
  }

 private:
  template <class T>
  T Raw() {
    std::array<uint8_t, sizeof(T)> raw{};
    for (uint8_t& byte : raw) byte = Byte();
    T value;
    std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }

  std::span<const uint8_t> bytes_;
};

// A column of a row keeps its value, however often and as whatever type it is read.
class InputRows final : public store::Rows {
 public:
  // `counts`: numbers that our SQL counted.
  explicit InputRows(Input& input, bool counts = false) : input_(input), counts_(counts) {}

  std::span<const Column> columns() const override { return {}; }
  Result<bool> Next() override {
    row_.clear();
    if (++rows_ > kMaxRows || input_.empty()) return false;
    const uint8_t byte = input_.Byte();
    if (byte == 0xff) return Fail(ErrorCode::kIo, "read a block");
    return byte % 4 != 0;
  }
  bool IsNull(size_t column) const override { return Of(column).is_null; }
  int64_t Int64(size_t column) const override { return Of(column).int64; }
  double Float64(size_t column) const override { return Of(column).float64; }
  std::string_view Text(size_t column) const override { return Of(column).text; }
  Id128 Id(size_t column) const override { return Of(column).id; }
  size_t ListSize(size_t column) const override { return Of(column).ids.size(); }
  std::vector<Id128> IdList(size_t column) const override { return Of(column).ids; }
  std::vector<int64_t> Int64List(size_t column) const override { return Of(column).int64s; }
  std::string Display(size_t column) const override { return Of(column).text; }
  std::string Json(size_t /*column*/) const override { return "null"; }

 private:
  static constexpr int kMaxRows = 24;
  struct Value {
    bool is_null = false;
    int64_t int64 = 0;
    double float64 = 0;
    Id128 id;
    std::string text;
    std::vector<Id128> ids;
    std::vector<int64_t> int64s;
  };

  const Value& Of(size_t column) const {
    const auto [found, is_new] = row_.try_emplace(column);
    Value& value = found->second;
    if (!is_new) return value;
    const uint8_t kind = input_.Byte();
    value.is_null = kind == 0xff;
    if (value.is_null) return value;
    value.int64 = counts_ ? input_.Byte() : input_.Int64();
    value.float64 = kind % 2 != 0 ? input_.Float64() : static_cast<double>(value.int64);
    value.id = input_.Id();
    value.text = input_.Text();
    for (int i = 0; i < kind / 2 % 16; ++i) {
      value.ids.push_back(input_.Id());
      value.int64s.push_back(value.ids.back().low % 2 != 0 ? input_.Int64() : 0);
    }
    return value;
  }

  Input& input_;
  bool counts_;
  int rows_ = 0;
  mutable std::map<size_t, Value> row_;
};

class InputStore final : public store::Store {
 public:
  explicit InputStore(Input& input) : input_(input) {}

  Status Append(std::span<const model::Batch> /*batches*/) override { return {}; }
  Result<std::unique_ptr<store::Rows>> Query(const std::string& sql,
                                             std::span<const store::Parameter> /*parameters*/) override {
    // The amount of work, which decides the slices; the size of each slice is bounded by our SQL.
    if (sql.starts_with("SELECT sum(count)::BIGINT, min(start_ns), max(start_ns)"))
      return std::make_unique<InputRows>(nothing_);
    return std::make_unique<InputRows>(input_, sql.contains("count(*) OVER ()"));
  }

 private:
  Input& input_;
  Input nothing_{nullptr, 0};
};

void Require(bool holds) {
  if (!holds) std::abort();
}

template <class Items>
bool IsNoneOrIndex(int32_t index, const Items& items) {
  return index >= -1 && index < static_cast<int64_t>(items.size());
}

void CheckIndices(const Profile& profile) {
  for (const Profile::Location& location : profile.locations) {
    Require(IsNoneOrIndex(location.binary, profile.binaries));
    for (const Profile::Line& line : location.lines)
      Require(line.function >= 0 && IsNoneOrIndex(line.function, profile.functions));
  }
  for (const std::vector<int32_t>& stack : profile.stacks)
    for (const int32_t location : stack) Require(IsNoneOrIndex(location, profile.locations));
  for (const Profile::Sample& sample : profile.samples) {
    Require(sample.stack >= 0 && IsNoneOrIndex(sample.stack, profile.stacks));
    Require(sample.thread >= 0 && IsNoneOrIndex(sample.thread, profile.threads));
    Require(IsNoneOrIndex(sample.device, profile.devices));
    Require(IsNoneOrIndex(sample.launch_group, profile.launch_groups));
  }
}

// Like `gpusonde export` and the summary of `gpusonde record`.
void Export(store::Store& store, Input& input, bool gpu) {
  const model::Selection selection{.off_cpu = !gpu && input.Byte() % 2 != 0};
  const auto profile = gpu ? store::ReadGpuProfile(store, selection) : store::ReadProfile(store, selection);
  if (!profile.has_value()) return;
  CheckIndices(*profile);
  for (const exporters::Exporter* exporter : exporters::AllExporters())
    for (const bool per_thread : {false, true})
      (void)exporter->render(*profile, {.value = exporters::Value::kMicroseconds, .per_thread = per_thread});
  exporters::SummaryFacts facts{.duration_ns = input.Int64(), .cpus = 2, .sampling_hz = 99};
  const std::unique_ptr<server::ApiData> data = server::ReadingFrom(store);
  if (auto read = server::ReadGpuFacts(*data, {}, true); read.has_value()) facts.gpu = *std::move(read);
  Require(!exporters::Summarise(*profile, facts).empty());
}

// Like the UI of `gpusonde view`.
void Ask(store::Store& store, Input& input) {
  constexpr const char* kPaths[] = {"devices", "flamegraph", "incidents", "overview", "processes",
                                    "source",  "strips",     "summary",   "compare",  "usage"};
  constexpr std::pair<const char*, const char*> kParameters[] = {
      {"buckets", "7"},        {"device", "00000000000000010000000000000001"},
      {"file", "a.py"},        {"from_us", "1"},
      {"helper_threads", "1"}, {"metrics", "1"},
      {"min_total", "3"},      {"process", "00000000000000020000000000000002"},
      {"roots", "1"},          {"filter", "foo"},
      {"stream", "7"},         {"to_us", "1700000000000000"},
      {"type", "gpu"},         {"type", "off_cpu"},
      {"wait", "io"},          {"while_gpu_idle", "1"},
      {"by", "label:team"},    {"base_process", "all"},
      {"base_to_us", "5"},     {"gpus", "1"}};
  server::HttpRequest request{.path = std::string("/api/v1/") + kPaths[input.Byte() % std::size(kPaths)]};
  for (int count = input.Byte() % 4; count > 0; --count)
    request.query.emplace_back(kParameters[input.Byte() % std::size(kParameters)]);
  const std::unique_ptr<server::ApiData> data = server::ReadingFrom(store);
  const server::HttpResponse response = server::ApiHandler(*data, {.mode = "view"})(request);
  Require(response.body != nullptr && nlohmann::json::accept(*response.body));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  InputStore store(input);
  switch (const uint8_t kind = input.Byte() % 4; kind) {
    case 0:
    case 1:
      Export(store, input, kind == 1);
      break;
    default:
      Ask(store, input);
  }
  return 0;
}
