// SPDX-License-Identifier: Apache-2.0
// Ranks stored situations by other weights, for bench/diagnose/fit.py.
//
//     rank_situations SITUATIONS
//
// SITUATIONS has one situation per line (situation_json.h). The first line of the output is an array of the
// weights, in the order of causes/weights.h, each [value, unit]. After that, each line of the standard input
// is a vector of all weights, separated by spaces, and is answered with one line: an array that has, for each
// situation, the cause that is named (or "abstain") and the confidence of each cause that is considered:
//
//     [["cpu_contention", {"cpu_contention": 0.93, "slow_cpu": 0.08}], …]
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <new>
#include <span>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "base/json_writer.h"
#include "base/result.h"
#include "diagnose/causes/weights.h"
#include "diagnose/explain.h"
#include "diagnose/rank.h"
#include "diagnose/situation_json.h"

namespace gpusonde::diagnose {
namespace {

// CauseWeights has no other members, so it is laid out like an array.
static_assert(std::is_standard_layout_v<CauseWeights> && sizeof(CauseWeights) % sizeof(Tuned<double>) == 0);
std::span<Tuned<double>> AllWeights() {
  return {std::launder(reinterpret_cast<Tuned<double>*>(&kWeights)),
          sizeof(kWeights) / sizeof(Tuned<double>)};
}

[[noreturn]] void Die(const std::string& what) {
  fmt::print(stderr, "rank_situations: {}\n", what);
  std::exit(1);
}

std::vector<Situation> ReadSituations(const char* path) {
  std::ifstream file(path);
  if (!file) Die(fmt::format("can't read {}", path));
  std::vector<Situation> situations;
  for (std::string line; std::getline(file, line);) {
    Result<Situation> situation = ReadSituation(line);
    if (!situation.has_value())
      Die(fmt::format("{}:{}: {}", path, situations.size() + 1, situation.error().message));
    situations.push_back(*std::move(situation));
  }
  return situations;
}

void PrintWeights() {
  JsonWriter json;
  json.BeginArray();
  for (const Tuned<double>& weight : AllWeights())
    json.BeginArray().Value(weight.value).Value(weight.unit).EndArray();
  fmt::print("{}\n", json.EndArray().Take());
}

void SetWeights(const std::string& line) {
  std::istringstream values(line);
  for (Tuned<double>& weight : AllWeights())
    if (!(values >> weight.value)) Die("a line has fewer weights than the table");
}

void PrintVerdicts(std::span<const Situation> situations) {
  JsonWriter json;
  json.BeginArray();
  for (const Situation& situation : situations) {
    const std::vector<Candidate> causes = Rank(situation);
    const Explanation explanation = Explain(situation, causes, situation.onset_ns);
    json.BeginArray().Value(explanation.cause.transform(NameOf).value_or(kAbstain)).BeginObject();
    for (const Candidate& candidate : causes) json.Field(candidate.cause->name, candidate.confidence);
    json.EndObject().EndArray();
  }
  fmt::print("{}\n", json.EndArray().Take());
  std::fflush(stdout);
}

void AnswerEachLine(const char* path) {
  const std::vector<Situation> situations = ReadSituations(path);
  PrintWeights();
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    SetWeights(line);
    PrintVerdicts(situations);
  }
}

}  // namespace
}  // namespace gpusonde::diagnose

int main(int argc, char** argv) {
  if (argc != 2) gpusonde::diagnose::Die("usage: rank_situations SITUATIONS");
  gpusonde::diagnose::AnswerEachLine(argv[1]);
}
