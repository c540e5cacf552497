// SPDX-License-Identifier: Apache-2.0
#include "diagnose/diagnosis.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "command.h"
#include "diagnose/print.h"
#include "store/recording.h"
#include "store/table_rows.h"

namespace gpusonde::app {
namespace {

struct DiagnoseOptions {
  std::vector<std::string> files;
  bool json = false;
};

// Read at once; memory grows with it.
constexpr int64_t kSliceNs = 10 * kNanosPerSecond;
// As the agent would look at it.
constexpr int64_t kRoundNs = kNanosPerSecond / 4;

// One table's rows of a slice, handed over in the order of their times.
template <class Table>
class Column {
 public:
  using Row = typename Table::Row;
  Column(const Table& table, std::string_view time_column, int64_t Row::* time)
      : table_(table), time_column_(time_column), time_(time) {}

  Status Read(store::Store& store, int64_t from_ns, int64_t to_ns) {
    const std::string where = fmt::format("WHERE {0} >= ? AND {0} < ? ORDER BY {0}", time_column_);
    const std::vector<store::Parameter> range = {from_ns, to_ns};
    ASSIGN_OR_RETURN(rows_, store::ReadTable(store, table_, where, range));
    next_ = 0;
    return {};
  }
  void TellBefore(int64_t time_ns, diagnose::Diagnosis& diagnosis) {
    for (; next_ < rows_.size() && rows_[next_].*time_ < time_ns; ++next_) diagnosis.Take(rows_[next_]);
  }

 private:
  const Table& table_;
  std::string_view time_column_;
  int64_t Row::* time_;
  std::vector<Row> rows_;
  size_t next_ = 0;
};

// When anything was recorded.
Result<std::pair<int64_t, int64_t>> ReadSpan(store::Store& store) {
  ASSIGN_OR_RETURN(
      const auto rows,
      store.Query(
          "SELECT min(t), max(t) FROM (SELECT start_ns AS t FROM kernels WHERE start_ns > 0 UNION ALL "
          "SELECT end_ns FROM kernels UNION ALL SELECT start_ns FROM kernel_packs UNION ALL SELECT time_ns "
          "FROM metrics UNION ALL "
          "SELECT start_ns FROM signals UNION ALL SELECT coalesce(ended_ns, started_ns) FROM sources)"));
  ASSIGN_OR_RETURN(const bool any, rows->Next());
  if (!any || rows->IsNull(0)) return std::pair<int64_t, int64_t>(0, 0);
  return std::pair(rows->Int64(0), rows->Int64(1));
}

Status Replay(store::Store& store, diagnose::Diagnosis& diagnosis) {
  ASSIGN_OR_RETURN(const auto processes, store::ReadTable(store, model::kProcesses));
  for (const auto& process : processes) diagnosis.Take(process);
  ASSIGN_OR_RETURN(const auto sessions, store::ReadTable(store, model::kGpuSessions));
  for (const auto& session : sessions) diagnosis.Take(session);
  Column calls(model::kApiCalls, "start_ns", &model::ApiCall::start_ns);
  Column kernels(model::kKernels, "start_ns", &model::Kernel::start_ns);
  Column packs(model::kKernelPacks, "start_ns", &model::KernelPack::start_ns);
  Column copies(model::kMemcpys, "start_ns", &model::Memcpy::start_ns);
  Column syncs(model::kSyncs, "start_ns", &model::Sync::start_ns);
  Column ranges(model::kRanges, "start_ns", &model::Range::start_ns);
  Column metrics(model::kMetrics, "time_ns", &model::MetricValue::time_ns);
  Column signals(model::kSignals, "start_ns", &model::Signal::start_ns);
  const auto for_all = [&](auto&& visit) {
    visit(calls), visit(kernels), visit(packs), visit(copies), visit(syncs), visit(ranges), visit(metrics),
        visit(signals);
  };
  ASSIGN_OR_RETURN(const auto span, ReadSpan(store));
  const auto [first_ns, last_ns] = span;
  for (int64_t slice_ns = first_ns; slice_ns <= last_ns; slice_ns += kSliceNs) {
    Status read;
    for_all([&](auto& column) {
      if (read.has_value()) read = column.Read(store, slice_ns, slice_ns + kSliceNs);
    });
    TRY(std::move(read));
    for (int64_t now_ns = slice_ns + kRoundNs; now_ns <= slice_ns + kSliceNs; now_ns += kRoundNs) {
      for_all([&](auto& column) { column.TellBefore(now_ns, diagnosis); });
      diagnosis.Advance(std::min(now_ns, last_ns));
    }
  }
  diagnosis.Finish(last_ns);
  return {};
}

Status Run(const DiagnoseOptions& options) {
  ASSIGN_OR_RETURN(const auto store, store::OpenRecordings(options.files));
  diagnose::Diagnosis diagnosis({});
  TRY(Replay(*store, diagnosis));
  const std::string text = options.json ? diagnose::FormatJson(diagnosis) : diagnose::FormatText(diagnosis);
  fmt::print("{}", text);
  return {};
}

}  // namespace

void AddDiagnose(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<DiagnoseOptions>();
  CLI::App* command = app.add_subcommand("diagnose", "When were steps slow, and why?");
  command->footer(
      "Examples:\n"
      "  gpusonde diagnose run.sonde\n"
      "  gpusonde diagnose run.sonde --format json | jq -r '.incidents[].sentence'\n\n"
      "Steps are found in the GPU work of a program; the first twenty say how long they take. "
      "docs/diagnose.md "
      "tells what is looked at, and what the causes mean.");
  command->add_option("FILE...", options->files, "recordings, read as one")->required()->option_text(" ");
  command
      ->add_option_function<std::string>(
          "--format", [options](const std::string& format) { options->json = format == "json"; },
          "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->option_text("text|json");
  command->callback([options, &exit_status] {
    const Status done = Run(*options);
    if (done.has_value()) return;
    fmt::print(stderr, "gpusonde diagnose: {}\n", done.error().message);
    exit_status = kExitFailed;
  });
}

}  // namespace gpusonde::app
