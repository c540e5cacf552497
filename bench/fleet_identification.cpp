// SPDX-License-Identifier: Apache-2.0
// How well applications are identified by their kernels, on kernel streams of real programs, MODEL+RUN.stream
// in the folder named on the command line (tools/kernel_streams.py --evaluation). Integer fingerprints are
// compared with nearest neighbour in floating point, on all unhashed features, with the same floor.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "fleet/catalog.h"
#include "fleet/fingerprint.h"
#include "fleet/kernel_stream.h"

namespace {

using namespace gpusonde;         // NOLINT(google-build-using-namespace): a program of its own
using namespace gpusonde::fleet;  // NOLINT(google-build-using-namespace)

struct Known {
  std::string model;
  std::string run;
  const KernelStream* stream;
  Fingerprint fingerprint;
  std::map<uint64_t, double> features;
};

// A range of a stream's kernels; if `other` is given, every tenth one is followed by one of its kernels with
// the same duration.
FingerprintBuilder Look(const KernelStream& stream, double from, double to,
                        const KernelStream* other = nullptr) {
  FingerprintBuilder builder;
  const auto count = static_cast<double>(stream.operations.size());
  size_t others = 0;
  for (auto i = static_cast<size_t>(from * count); i < static_cast<size_t>(to * count); ++i) {
    const auto& operation = stream.operations[i];
    if (operation.kind != KernelStream::Kind::kKernel) continue;
    builder.Add(operation.stream, stream.names[operation.name], operation.duration_ns);
    if (other == nullptr || i % 10 != 9) continue;
    const auto& theirs = other->operations[others++ % other->operations.size()];
    if (theirs.kind == KernelStream::Kind::kKernel)
      builder.Add(1000 + theirs.stream, other->names[theirs.name], operation.duration_ns);
  }
  return builder;
}

double Cosine(const std::map<uint64_t, double>& a, const std::map<uint64_t, double>& b) {
  double product = 0;
  double a_squares = 0;
  double b_squares = 0;
  for (const auto& [feature, weight] : a) {
    a_squares += weight * weight;
    if (const auto found = b.find(feature); found != b.end()) product += weight * found->second;
  }
  for (const auto& [feature, weight] : b) b_squares += weight * weight;
  return product == 0 ? 0 : product / std::sqrt(a_squares * b_squares);
}

struct Found {
  std::optional<std::string> model;  // by integer fingerprints
  std::optional<std::string> plain;  // by floating-point nearest neighbour
};

Found Find(const std::vector<const Known*>& catalog, const FingerprintBuilder& look) {
  Found found;
  const Fingerprint fingerprint = look.Build();
  std::vector<int32_t> scores;
  for (const Known* known : catalog) scores.push_back(Score(known->fingerprint, fingerprint));
  if (const Match best = BestMatch(scores); best.is_known) found.model = catalog[best.application]->model;
  const auto features = look.Features();
  double most = static_cast<double>(kUnknownFloor) / (kFingerprintLength * kFingerprintLength);
  for (const Known* known : catalog) {
    const double cosine = Cosine(known->features, features);
    if (cosine < most) continue;
    most = cosine;
    found.plain = known->model;
  }
  return found;
}

struct Tally {
  int looks = 0;
  int right = 0;
  int wrong = 0;
  int plain_right = 0;
  std::set<std::string> models;

  void Add(const std::string& model, const std::optional<std::string>& expected, const Found& found) {
    ++looks;
    right += found.model == expected;
    wrong += found.model != expected && found.model.has_value();
    plain_right += found.plain == expected;
    models.insert(model);
  }
};

class Evaluation {
 public:
  explicit Evaluation(const std::vector<KernelStream>& streams) {
    for (const KernelStream& stream : streams) {
      const size_t plus = stream.source.find('+');
      const FingerprintBuilder whole = Look(stream, 0, 1);
      known_.push_back({stream.source.substr(0, plus),
                        plus == std::string::npos ? "" : stream.source.substr(plus + 1), &stream,
                        whole.Build(), whole.Features()});
    }
  }

  void Run() {
    for (const Known& one : known_) {
      const Known& other = known_[(static_cast<size_t>(&one - known_.data()) + 7) % known_.size()];
      const auto all = Without([](const Known&) { return false; });
      for (int half = 0; half < 2; ++half)
        Try(parts_, one, all, Look(*one.stream, half / 2.0, (half + 1) / 2.0));
      Try(mixed_, one, all, Look(*one.stream, 0, 1, other.stream));
      const auto unlike = Without([&](const Known& known) { return known.model == one.model; });
      const Found unknown = Find(unlike, Look(*one.stream, 0, 1));
      unknown_.Add(one.model, std::nullopt, unknown);
      if (unknown.model.has_value()) Confuse(one, *unknown.model, "unknown");
      // Another run of the model must be in the catalog; GPUs of another maker count separately.
      const auto is_own_gpu = [&](const Known& known) {
        return known.model == one.model && (&known == &one || Maker(known) == Maker(one));
      };
      const auto siblings = std::ranges::count_if(known_, is_own_gpu);
      const auto relatives = std::ranges::count(known_, one.model, &Known::model);
      if (siblings > 1)
        Try(runs_, one, Without([&](const Known& known) { return &known == &one; }), Look(*one.stream, 0, 1));
      if (relatives > siblings) Try(makers_, one, Without(is_own_gpu), Look(*one.stream, 0, 1));
    }
  }

  std::string ToJson() const {
    JsonWriter json;
    json.BeginObject().Key("rows").BeginArray();
    WriteRow(json, "identified: halves of a run in the catalog", parts_, 98);
    WriteRow(json, "identified: a tenth of the time another's", mixed_, 98);
    WriteRow(json, "identified: leave one run out", runs_, 98);
    WriteRow(json, "identified: leave one maker's GPUs out", makers_, 0);
    WriteRow(json, "called unknown: leave one model out", unknown_, 95);
    json.EndArray().Key("confusions").BeginArray();
    for (const std::string& confusion : confusions_) json.Value(confusion);
    json.EndArray().EndObject();
    return json.Take();
  }

 private:
  static bool Maker(const Known& known) { return known.run.starts_with("mi"); }

  template <class Left>
  std::vector<const Known*> Without(const Left& is_left_out) const {
    std::vector<const Known*> catalog;
    for (const Known& known : known_)
      if (!is_left_out(known)) catalog.push_back(&known);
    return catalog;
  }

  void Try(Tally& tally, const Known& one, const std::vector<const Known*>& catalog,
           const FingerprintBuilder& look) {
    const Found found = Find(catalog, look);
    tally.Add(one.model, one.model, found);
    if (found.model.has_value() && found.model != one.model) Confuse(one, *found.model, one.model);
  }
  void Confuse(const Known& one, const std::string& found, const std::string& expected) {
    confusions_.insert(fmt::format("{}+{}: {} instead of {}", one.model, one.run, found, expected));
  }

  static void WriteRow(JsonWriter& json, const char* what, const Tally& tally, int goal) {
    const auto percent = [&](int part) { return tally.looks == 0 ? 0.0 : 100.0 * part / tally.looks; };
    json.BeginObject()
        .Field("name", fmt::format("{} ({} looks, {} models, {} mistaken)", what, tally.looks,
                                   tally.models.size(), tally.wrong))
        .Field("value", percent(tally.right))
        .Field("unit", "%")
        .Field("peer", fmt::format("floating-point nearest neighbour: {:.1f}", percent(tally.plain_right)))
        .Field("ratio", tally.plain_right == 0 ? 0.0 : double{1} * tally.right / tally.plain_right);
    if (goal > 0) json.Field("goal", fmt::format("≥ {}", goal)).Field("met", percent(tally.right) >= goal);
    json.EndObject();
  }

  std::vector<Known> known_;
  Tally parts_;
  Tally mixed_;
  Tally runs_;
  Tally makers_;
  Tally unknown_;
  std::set<std::string> confusions_;
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    fmt::print(stderr, "usage: bench_fleet_identification FOLDER\n");
    return 2;
  }
  const auto streams = ReadKernelStreams(arguments[1]);
  if (!streams.has_value()) {
    fmt::print(stderr, "bench_fleet_identification: {}\n", streams.error().message);
    return 1;
  }
  Evaluation evaluation(*streams);
  evaluation.Run();
  fmt::print("{}\n", evaluation.ToJson());
}
