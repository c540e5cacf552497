// SPDX-License-Identifier: Apache-2.0
// Prints the pages that are made from the data model: `gpusonde_schema_doc schema|metrics`.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "exporters/prometheus/families.h"
#include "model/drops.h"
#include "model/metric_catalogue.h"
#include "model/schema.h"

namespace gpusonde::model {
namespace {

constexpr std::string_view kGenerated =
    "<!-- Made from the code by `make docs`; `make check` compares. Edit src/model instead. -->\n";

// The type as DuckDB calls it, which is what a reader of a recording meets.
std::string_view TypeName(ColumnType type) {
  switch (type) {
    case ColumnType::kBool:
      return "BOOLEAN";
    case ColumnType::kInt32:
      return "INTEGER";
    case ColumnType::kInt64:
      return "BIGINT";
    case ColumnType::kFloat64:
      return "DOUBLE";
    case ColumnType::kText:
      return "VARCHAR";
    case ColumnType::kId128:
      return "UUID";
    case ColumnType::kIdList:
      return "UUID[]";
    case ColumnType::kInt64List:
      return "BIGINT[]";
  }
  return "?";
}

// A cell of a Markdown table: bars would end it.
std::string Cell(std::string_view text) {
  std::string cell;
  for (const char c : text) {
    if (c == '|') cell += '\\';
    cell += c;
  }
  return cell;
}

void PrintTable(const TableInfo& table) {
  fmt::print("\n## {}\n\n{}.\n", table.name, table.meaning);
  if (table.key_columns > 0) {
    std::string key;
    for (const ColumnInfo& column : table.columns.first(static_cast<size_t>(table.key_columns)))
      key += fmt::format("{}`{}`", key.empty() ? "" : ", ", column.name);
    fmt::print("Key: {}.\n", key);
  }
  fmt::print("\n| column | type | unit | meaning |\n|---|---|---|---|\n");
  for (const ColumnInfo& column : table.columns)
    fmt::print("| `{}` | {}{} | {} | {} |\n", column.name, TypeName(column.type),
               column.nullable ? ", may be null" : "", Cell(column.unit), Cell(column.meaning));
}

void PrintSchema() {
  fmt::print(
      "{}# Tables\n\n"
      "The same tables, with the same names and columns, wherever data rests: in a recording (`*.sonde`, a "
      "file that\n"
      "any DuckDB client opens) and in the store of `gpusonde up`. This is version {} of them, which every "
      "store\n"
      "holds in `meta`: a newer gpusonde opens older stores, an older one refuses newer ones. A table that "
      "no source\n"
      "has filled is there and empty.\n\n"
      "- A time is nanoseconds since the Unix epoch. Each source measures its clocks against it once, so "
      "that time\n"
      "  within a recording never steps back, whatever happens to the wall clock.\n"
      "- An id is a 128-bit hash of what it names, so that two machines give the same thing the same id.\n"
      "- A table with a key describes things: a later row replaces an earlier one with the same key. A table "
      "without\n"
      "  one holds facts, which are only ever added.\n"
      "- A column may be null only where it says so; null means that it was not observed, never zero.\n\n",
      kGenerated, kSchemaVersion);
  fmt::print(
      "A query that needs more memory than `--memory-limit-mb` is refused; most don't, since sums, sorts and "
      "joins spill\n"
      "to disk. Of 86 million kernels at 128 MB, these were refused: `count(DISTINCT ...)`, `list()` and "
      "window functions\n"
      "over all kernels, and a join of all kernels with themselves or with `api_calls`. Ask "
      "for a range\n"
      "of time, use `approx_count_distinct` and `approx_quantile`, or ask the sums in `kernel_windows` and\n"
      "`device_windows`.\n\n");
  fmt::print("| table | holds |\n|---|---|\n");
  for (const TableInfo& table : AllTables())
    fmt::print("| [{0}](#{0}) | {1} |\n", table.name, Cell(table.meaning));
  for (const TableInfo& table : AllTables()) PrintTable(table);
}

std::string_view WhoseMetric(std::string_view name) {
  if (name.starts_with("gpu.process.") || name.starts_with("listening.")) return "each process on a GPU";
  if (name.starts_with("gpu.")) return "each GPU";
  if (name.starts_with("host.")) return "the machine";
  if (name.starts_with("step.")) return "the steps of a program with GPU work";
  if (name.starts_with("thread.")) return "each thread of a program with GPU work";
  return "each process";
}

void PrintCatalogue() {
  fmt::print(
      "# Metrics\n\n"
      "What the tables [metrics](schema.md#metrics), [signals](schema.md#signals) (kind: sum) and "
      "[evidence](schema.md#evidence) (kind: step)\nmay hold. `gpusonde record` reads NVML ten times a "
      "second, "
      "`gpusonde\n"
      "up` once (`--nvml-hz`); what changes slowly, and what belongs to a process, once a second in both. A "
      "gauge or a\n"
      "sum of flags is as it was at the time of its row, a counter counts from when the driver was loaded, "
      "and "
      "an event is\n"
      "a row at its time. A value that the driver doesn't report has no rows; one that can't be true is "
      "counted, "
      "not stored.\n\n"
      "What is by GPM (NVML's performance counters; Hopper and newer) is a mean since the row before, once a "
      "second: of the\n"
      "device, never of a process. `gpusonde doctor` says why it can't be read. A MIG instance is a device "
      "with a `parent`:\n"
      "of it the memory in use and GPM are read, the rest of its GPU. NVLink and remapped rows are read "
      "every "
      "5 s.\n"
      "On an H200 the readings of use, memory, clocks, power, temperature and PCIe agreed with `nvidia-smi`, "
      "and GPM's were "
      "plausible;\nwhat no real GPU has shown yet, MIG above all, [is "
      "listed](gpu-results.md#unconfirmed-nvml).\n\n"
      "    gpusonde query run.sonde \"SELECT metric, avg(value), max(value) FROM metrics GROUP BY metric\"\n"
      "    gpusonde query run.sonde \"SELECT make_timestamp_ns(time_ns), value FROM metrics WHERE metric = "
      "'gpu.xid'\"\n\n"
      "| metric | unit | kind | of | meaning |\n|---|---|---|---|---|\n");
  for (const MetricInfo& metric : kMetricCatalogue)
    fmt::print("| `{}` | {} | {} | {}, by {} | {} |\n", metric.name, Cell(metric.unit), NameOf(metric.kind),
               WhoseMetric(metric.name), metric.source, Cell(metric.meaning));
  fmt::print(
      "\nThe bits of `gpu.throttle.reasons`, of which one reads `(value::BIGINT & 4) != 0`:\n\n"
      "| bit | slows the device down | reason | meaning |\n|---|---|---|---|\n");
  for (const ThrottleReason& reason : kThrottleReasons)
    fmt::print("| {} | {} | {} | {} |\n", reason.bit, reason.slows ? "yes" : "no", Cell(reason.label),
               Cell(reason.meaning));
}

void PrintFamily(const exporters::prometheus::Family& family, std::string_view of) {
  fmt::print("| `{}` | {} | {} | {} |\n", family.name,
             family.type == exporters::prometheus::Type::kCounter ? "counter" : "gauge", Cell(of),
             Cell(family.help));
}

void PrintExposition() {
  fmt::print(
      "\n# Metrics for Prometheus\n\n"
      "`gpusonde up` answers `GET /metrics` ([addresses](api.md#get-metrics)) from sums in memory: without a "
      "query, and\n"
      "whether or not the store accepts rows. Counters begin at 0 with the program. The names and labels of "
      "dcgm-exporter are\n"
      "used where both mean the same: `gpu`, `UUID`, `pci_bus_id`, `device`, `modelName`, `Hostname`. A "
      "reading that is not\n"
      "renewed for 10 s disappears.\n\n"
      "On a node of Kubernetes ([pods](usage.md#pods)) series of a process have `namespace`, `pod` and "
      "`container` if it runs in a\n"
      "pod, and those of a GPU if one container alone has it allocated, whether or not a process uses it; "
      "of a GPU in time-slices\n"
      "the processes' series say whose they are.\n\n"
      "At most 64 GPUs and, of those that used a GPU, 256 processes have series; the rest is summed in "
      "series "
      "whose labels\n"
      "are `other`. A process keeps its series for 5 minutes after its end; one that gets its series late "
      "counts from then on.\n"
      "`command` is the short name (comm) that a process had first; command lines are not exported, as they "
      "may hold secrets.\n"
      "The device's sums include all processes, so use those for totals.\n\n"
      "Counters of GPU work lack what ran while the profiling of its process was paused to keep to the "
      "[overhead budget](sampling.md#overhead-budget),\n"
      "or before it began: rates of them are lower bounds. Those by NVML and GPM (`DCGM_FI_…`) lack "
      "nothing.\n\n"
      "`gpusonde serve` has `/metrics` at its pages' address, about itself alone: those of gpusonde and of "
      "`serve`. Of hosts, the\n"
      "first 256 by name have series.\n\n"
      "| metric | kind | of, with labels | meaning |\n|---|---|---|---|\n");
  for (const exporters::prometheus::DcgmFamily& dcgm : exporters::prometheus::kDcgmFamilies)
    PrintFamily(dcgm.family, fmt::format("each GPU; {}", InfoOf(dcgm.metric).name));
  PrintFamily(exporters::prometheus::kLastXid, fmt::format("each GPU; {}", InfoOf(Metric::kGpuXid).name));
  for (const exporters::prometheus::FamilyGroup& group : exporters::prometheus::AllGroups())
    for (const exporters::prometheus::Family* family : group.families)
      PrintFamily(*family, fmt::format("{}: {}", group.of, group.labels));
  fmt::print(
      "\n## Other labels\n\n"
      "`gpusonde up --relabel FILE` changes the labels of all series by rules, with the keys, the defaults "
      "and "
      "the meaning of\n"
      "Prometheus's `metric_relabel_configs`, but in JSON: an array, read once at the start.\n\n"
      "```json\n"
      "[{{\"action\": \"drop\", \"source_labels\": [\"namespace\"], \"regex\": \"kube-.*\"}},\n"
      " {{\"source_labels\": [\"namespace\", \"pod\"], \"separator\": \"/\", \"target_label\": "
      "\"workload\"}},\n"
      " {{\"action\": \"labeldrop\", \"regex\": \"pid|command\"}}]\n"
      "```\n\n"
      "Actions are `replace` (default), `keep`, `drop`, `labelmap`, `labeldrop` and `labelkeep`. `__name__` "
      "can be "
      "read, not set.\n"
      "Regular expressions are those of ECMAScript without back-references, and match whole values of up to "
      "4 KiB. "
      "Of series that\n"
      "have the same labels afterwards the first is exported, and `gpusonde_series_repeated` counts the "
      "others: "
      "they aren't summed.\n");
}

void PrintMetrics() {
  fmt::print("{}", kGenerated);
  PrintCatalogue();
  fmt::print(
      "\n# Metrics of gpusonde itself\n\n"
      "Nothing is dropped in silence. Whatever is lost or incomplete is counted under one of these reasons, "
      "stored in\n"
      "the table [drops](schema.md#drops), and shown in the summary of `gpusonde record` and in the UI.\n\n"
      "| reason | data is missing | meaning |\n|---|---|---|\n");
  for (const DropInfo& drop : kDropReasons)
    fmt::print("| `{}` | {} | {} |\n", drop.name, drop.lost ? "yes" : "no, it has less detail",
               Cell(drop.meaning));
  PrintExposition();
}

}  // namespace
}  // namespace gpusonde::model

int main(int argc, char** argv) {
  const std::string_view page = argc == 2 ? argv[1] : "";
  if (page == "schema") {
    gpusonde::model::PrintSchema();
  } else if (page == "metrics") {
    gpusonde::model::PrintMetrics();
  } else {
    std::fputs("usage: gpusonde_schema_doc schema|metrics\n", stderr);
    return 2;
  }
  return 0;
}
