// SPDX-License-Identifier: Apache-2.0
#include "diagnose/situation_json.h"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/json_writer.h"
#include "diagnose/cause.h"

namespace gpusonde::diagnose {
namespace {

using Json = nlohmann::json;

constexpr int32_t kVersion = 1;

void WriteAccount(JsonWriter& json, std::string_view key, const Account& account) {
  json.Key(key).BeginObject();
  for (size_t i = 0; i < kStates; ++i)
    if (account.ns[i] != 0) json.Field(model::InfoOf(MetricOf(static_cast<State>(i))).name, account.ns[i]);
  json.EndObject();
}

void WriteShares(JsonWriter& json, std::string_view key, const Shares& shares) {
  json.Key(key).BeginArray();
  for (const auto& [actor, amount] : shares)
    json.BeginObject()
        .Field("name", actor.name)
        .Field("cgroup", actor.cgroup)
        .Field("own", actor.own)
        .Field("pid", actor.pid)
        .Field("command", actor.command)
        .Field("amount", amount)
        .EndObject();
  json.EndArray();
}

void WriteChange(JsonWriter& json, std::string_view key, const Change& change) {
  json.Key(key).BeginObject().Field("before", change.before).Field("during", change.during).EndObject();
}

void WriteRank(JsonWriter& json, const RankPart& rank) {
  json.BeginObject().Field("name", rank.name);
  WriteAccount(json, "before", rank.before);
  WriteAccount(json, "during", rank.during);
  json.Field("idle_before", rank.idle_before).Field("idle_during", rank.idle_during);
  WriteShares(json, "cpu_before", rank.cpu_before);
  WriteShares(json, "cpu_during", rank.cpu_during);
  json.Field("cause", rank.cause.transform(NameOf)).Field("because", rank.because).EndObject();
}

// Reads fields of objects; remembers the first one that is missing or wrong, and returns defaults from then
// on.
class Reader {
 public:
  const std::string& wrong() const { return wrong_; }
  void Fail(std::string_view key) {
    if (wrong_.empty()) wrong_ = key;
  }

  const Json& Field(const Json& object, const char* key) {
    static const Json kNone;
    if (object.is_object())
      if (const auto found = object.find(key); found != object.end()) return *found;
    Fail(key);
    return kNone;
  }
  template <class T>
  void Read(const Json& object, const char* key, T& value) {
    Convert(Field(object, key), key, value);
  }
  // For a field that situations of earlier builds lack.
  template <class T>
  void ReadIfPresent(const Json& object, const char* key, T& value) {
    if (object.contains(key)) Read(object, key, value);
  }

 private:
  void Convert(const Json& json, std::string_view key, double& value) {
    json.is_number() ? void(value = json.get<double>()) : Fail(key);
  }
  void Convert(const Json& json, std::string_view key, bool& value) {
    json.is_boolean() ? void(value = json.get<bool>()) : Fail(key);
  }
  void Convert(const Json& json, std::string_view key, std::string& value) {
    json.is_string() ? void(value = json.get_ref<const std::string&>()) : Fail(key);
  }
  void Convert(const Json& json, std::string_view key, int64_t& value) {
    json.is_number_integer() ? void(value = json.get<int64_t>()) : Fail(key);
  }
  void Convert(const Json& json, std::string_view key, int32_t& value) {
    int64_t wide = 0;
    Convert(json, key, wide);
    std::in_range<int32_t>(wide) ? void(value = static_cast<int32_t>(wide)) : Fail(key);
  }
  template <class T>
  void Convert(const Json& json, std::string_view key, std::optional<T>& value) {
    if (!json.is_null()) Convert(json, key, value.emplace());
  }
  template <class T>
  void Convert(const Json& json, std::string_view key, std::vector<T>& values) {
    if (!json.is_array()) Fail(key);
    for (const Json& each : json) Convert(each, key, values.emplace_back());
  }
  void Convert(const Json& json, std::string_view key, CauseId& value) {
    std::string name;
    Convert(json, key, name);
    const std::optional<CauseId> cause = FindCause(name);
    cause.has_value() ? void(value = *cause) : Fail(key);
  }
  void Convert(const Json& json, std::string_view, Change& change) {
    Read(json, "before", change.before);
    Read(json, "during", change.during);
  }
  void Convert(const Json& json, std::string_view key, Account& account) {
    if (!json.is_object()) Fail(key);
    for (const auto& [name, ns] : json.items()) {
      const std::optional<model::Metric> metric = model::FindMetric(name);
      const auto state = metric.has_value()
                             ? static_cast<size_t>(*metric) - static_cast<size_t>(MetricOf(State::kBlocked))
                             : kStates;
      state < kStates ? Convert(ns, name, account.ns[state]) : Fail(name);
    }
  }
  void Convert(const Json& json, std::string_view key, Shares& shares) {
    if (!json.is_array()) Fail(key);
    for (const Json& each : json) {
      Actor actor;
      double amount = 0;
      Read(each, "name", actor.name);
      Read(each, "cgroup", actor.cgroup);
      Read(each, "own", actor.own);
      Read(each, "pid", actor.pid);
      Read(each, "command", actor.command);
      Read(each, "amount", amount);
      shares.insert_or_assign(std::move(actor), amount);
    }
  }
  void Convert(const Json& json, std::string_view, HelperPart& helper) {
    Read(json, "name", helper.name);
    Read(json, "waited_for", helper.waited_for);
    Read(json, "ended", helper.ended);
    Read(json, "busy", helper.busy);
    ReadIfPresent(json, "stopped", helper.stopped);
    ReadIfPresent(json, "blocked", helper.blocked);
  }
  void Convert(const Json& json, std::string_view, RankPart& rank) {
    Read(json, "name", rank.name);
    Read(json, "before", rank.before);
    Read(json, "during", rank.during);
    Read(json, "idle_before", rank.idle_before);
    Read(json, "idle_during", rank.idle_during);
    Read(json, "cpu_before", rank.cpu_before);
    Read(json, "cpu_during", rank.cpu_during);
    Read(json, "cause", rank.cause);
    Read(json, "because", rank.because);
  }
  void Convert(const Json& json, std::string_view key, std::map<model::Metric, Change>& signals) {
    if (!json.is_object()) Fail(key);
    for (const auto& [name, change] : json.items()) {
      const std::optional<model::Metric> metric = model::FindMetric(name);
      metric.has_value() ? Convert(change, name, signals[*metric]) : Fail(name);
    }
  }
  void Convert(const Json& json, std::string_view key, std::map<std::string, Change>& changes) {
    if (!json.is_object()) Fail(key);
    for (const auto& [name, change] : json.items()) Convert(change, name, changes[name]);
  }

  std::string wrong_;
};

}  // namespace

std::string WriteSituation(const Situation& situation) {
  JsonWriter json;
  json.BeginObject()
      .Field("version", kVersion)
      .Field("tid", situation.tid)
      .Field("onset_ns", situation.onset_ns);
  json.Field("slowdown", situation.slowdown).Field("steps", situation.steps);
  WriteAccount(json, "before", situation.before);
  WriteAccount(json, "during", situation.during);
  json.Field("idle_ns", situation.idle_ns).Field("unfinished", situation.unfinished);
  json.Field("unfinished_ns", situation.unfinished_ns).Field("cgroup", situation.cgroup);
  json.Field("silent_ns", situation.silent_ns).Field("signals_known", situation.signals_known);
  json.Field("before_is_later", situation.before_is_later);
  WriteShares(json, "cpu_before", situation.cpu_before);
  WriteShares(json, "cpu_during", situation.cpu_during);
  WriteShares(json, "halted_before", situation.halted_before);
  WriteShares(json, "halted_during", situation.halted_during);
  WriteShares(json, "stopped_before", situation.stopped_before);
  WriteShares(json, "stopped_during", situation.stopped_during);
  WriteShares(json, "outside_before", situation.outside_before);
  WriteShares(json, "outside_during", situation.outside_during);
  WriteShares(json, "ran_before", situation.ran_before);
  WriteShares(json, "ran_during", situation.ran_during);
  WriteShares(json, "slept_before", situation.slept_before);
  WriteShares(json, "slept_during", situation.slept_during);
  json.Field("own_threads_slept_before", situation.own_threads_slept_before);
  json.Field("own_threads_slept_during", situation.own_threads_slept_during);
  json.Field("own_threads_idle_before", situation.own_threads_idle_before);
  json.Field("own_threads_idle_during", situation.own_threads_idle_during);
  WriteShares(json, "disk_before", situation.disk_before);
  WriteShares(json, "disk_during", situation.disk_during);
  WriteShares(json, "network_before", situation.network_before);
  WriteShares(json, "network_during", situation.network_during);
  WriteChange(json, "retransmits", situation.retransmits);
  json.Key("ranks").BeginArray();
  for (const RankPart& rank : situation.ranks) WriteRank(json, rank);
  json.EndArray().Key("helpers").BeginArray();
  for (const HelperPart& helper : situation.helpers)
    json.BeginObject()
        .Field("name", helper.name)
        .Field("waited_for", helper.waited_for)
        .Field("ended", helper.ended)
        .Field("busy", helper.busy)
        .Field("stopped", helper.stopped)
        .Field("blocked", helper.blocked)
        .EndObject();
  json.EndArray();
  json.Field("own_threads_before", situation.own_threads_before);
  json.Field("own_threads_during", situation.own_threads_during);
  json.Field("own_threads_cpu_before", situation.own_threads_cpu_before);
  json.Field("own_threads_cpu_during", situation.own_threads_cpu_during);
  json.Field("loader_cpu_before", situation.loader_cpu_before);
  json.Field("loader_cpu_during", situation.loader_cpu_during);
  WriteChange(json, "own_cpu", situation.own_cpu);
  json.Key("signals").BeginObject();
  for (const auto& [metric, change] : situation.signals)
    WriteChange(json, model::InfoOf(metric).name, change);
  json.EndObject().Key("gpu_time").BeginObject();
  for (const auto& [name, change] : situation.gpu_time) WriteChange(json, name, change);
  json.EndObject().Key("neighbours").BeginObject();
  for (const auto& [name, change] : situation.neighbours) WriteChange(json, name, change);
  json.EndObject().Column("xids", situation.xids).EndObject();
  return json.Take();
}

Result<Situation> ReadSituation(std::string_view line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Fail(ErrorCode::kCorrupt, "a situation must be a line with a JSON object");
  Reader reader;
  int32_t version = 0;
  reader.Read(json, "version", version);
  if (version != kVersion)
    return Fail(ErrorCode::kCorrupt,
                fmt::format("the situation is of version {}; this gpusonde reads {}", version, kVersion));
  Situation situation;
  reader.ReadIfPresent(json, "tid", situation.tid);
  reader.Read(json, "onset_ns", situation.onset_ns);
  reader.Read(json, "slowdown", situation.slowdown);
  reader.ReadIfPresent(json, "steps", situation.steps);
  reader.Read(json, "before", situation.before);
  reader.Read(json, "during", situation.during);
  reader.Read(json, "idle_ns", situation.idle_ns);
  reader.Read(json, "unfinished", situation.unfinished);
  situation.unfinished_ns =
      situation.unfinished ? situation.during.total() : 0;  // of older ones, with one step
  reader.ReadIfPresent(json, "unfinished_ns", situation.unfinished_ns);
  reader.ReadIfPresent(json, "cgroup", situation.cgroup);
  reader.Read(json, "silent_ns", situation.silent_ns);
  reader.Read(json, "signals_known", situation.signals_known);
  reader.ReadIfPresent(json, "before_is_later", situation.before_is_later);
  reader.Read(json, "cpu_before", situation.cpu_before);
  reader.Read(json, "cpu_during", situation.cpu_during);
  reader.ReadIfPresent(json, "halted_before", situation.halted_before);
  reader.ReadIfPresent(json, "halted_during", situation.halted_during);
  reader.ReadIfPresent(json, "stopped_before", situation.stopped_before);
  reader.ReadIfPresent(json, "stopped_during", situation.stopped_during);
  reader.ReadIfPresent(json, "outside_before", situation.outside_before);
  reader.ReadIfPresent(json, "outside_during", situation.outside_during);
  reader.ReadIfPresent(json, "ran_before", situation.ran_before);
  reader.ReadIfPresent(json, "ran_during", situation.ran_during);
  reader.ReadIfPresent(json, "slept_before", situation.slept_before);
  reader.ReadIfPresent(json, "slept_during", situation.slept_during);
  reader.ReadIfPresent(json, "own_threads_slept_before", situation.own_threads_slept_before);
  reader.ReadIfPresent(json, "own_threads_slept_during", situation.own_threads_slept_during);
  reader.ReadIfPresent(json, "own_threads_idle_before", situation.own_threads_idle_before);
  reader.ReadIfPresent(json, "own_threads_idle_during", situation.own_threads_idle_during);
  reader.Read(json, "disk_before", situation.disk_before);
  reader.Read(json, "disk_during", situation.disk_during);
  reader.Read(json, "network_before", situation.network_before);
  reader.Read(json, "network_during", situation.network_during);
  reader.Read(json, "retransmits", situation.retransmits);
  reader.Read(json, "ranks", situation.ranks);
  reader.ReadIfPresent(json, "helpers", situation.helpers);
  reader.ReadIfPresent(json, "own_threads_before", situation.own_threads_before);
  reader.ReadIfPresent(json, "own_threads_during", situation.own_threads_during);
  reader.ReadIfPresent(json, "own_threads_cpu_before", situation.own_threads_cpu_before);
  reader.ReadIfPresent(json, "own_threads_cpu_during", situation.own_threads_cpu_during);
  reader.Read(json, "loader_cpu_before", situation.loader_cpu_before);
  reader.Read(json, "loader_cpu_during", situation.loader_cpu_during);
  reader.Read(json, "own_cpu", situation.own_cpu);
  reader.Read(json, "signals", situation.signals);
  reader.ReadIfPresent(json, "gpu_time", situation.gpu_time);
  reader.Read(json, "neighbours", situation.neighbours);
  reader.Read(json, "xids", situation.xids);
  if (!reader.wrong().empty())
    return Fail(ErrorCode::kCorrupt,
                fmt::format("the situation's field \"{}\" is missing or of another type", reader.wrong()));
  return situation;
}

}  // namespace gpusonde::diagnose
