// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/report/html/charts.h"
#include "analyze/report/html/writer.h"
#include "analyze/report/quantities.h"
#include "base/html.h"
#include "base/printable.h"
#include "compare/comparison.h"
#include "compare/flame_html.h"
#include "model/short_names.h"

namespace gpusonde::compare {
namespace {

constexpr size_t kRows = 40;
constexpr size_t kMaxWhole = 2000;  // bytes of a whole name
constexpr size_t kMaxPaths = 20;
constexpr size_t kMaxOperator = 80;  // bytes

// The parts of Comparison::times, with the fills that analyze's page has for them.
struct Part {
  std::string_view name, style, meaning;
};
constexpr std::array<Part, 6> kTimeParts = {{
    {"compute", "compute", "computing"},
    {"communication", "comm", "only communicating"},
    {"copies", "copy", "only copying"},
    {"graphs", "graph", "graphs traced as a whole"},
    {"idle_host", "host", "idle: nothing launched"},
    {"idle_other", "idle", "idle: other"},
}};

std::string TimeOf(double ns) { return analyze::Time(std::llround(ns)); }
std::string More(double ns) { return (ns < 0 ? "" : "+") + TimeOf(ns); }
// The last `parts` names of the run's path.
std::string EndOfPath(const Run& run, int parts) {
  if (run.paths.empty()) return "–";
  std::string_view path = run.paths.front();
  if (path.ends_with('/')) path.remove_suffix(1);
  size_t slash = path.size();
  while (parts-- > 0 && slash != std::string_view::npos && slash > 0) slash = path.rfind('/', slash - 1);
  return Shorten(Printable(slash == std::string_view::npos ? path : path.substr(slash + 1)), 60);
}

// Files of one name are told apart by their folders.
std::string TitleOf(const Run& a, const Run& b) {
  const int parts = EndOfPath(a, 1) == EndOfPath(b, 1) ? 2 : 1;
  return fmt::format("{} and {}", EndOfPath(a, parts), EndOfPath(b, parts));
}

std::string TextOf(Change change) {
  if (change == Change::kNone) return "–";
  if (change == Change::kOnlyInA) return "only in A";
  if (change == Change::kOnlyInB) return "only in B";
  std::string text(Name(change));
  std::ranges::replace(text, '_', ' ');
  return text;
}

class PageWriter {
 public:
  explicit PageWriter(const Comparison& comparison) : comparison_(comparison), shown_(NamesIn(comparison)) {}

  std::string Write() {
    html_.BeginPage(TitleOf(comparison_.a, comparison_.b),
                    "Comparison by gpusonde: the first is A, before; the second is B, after.");
    html_.Section("Findings");
    html_.RawText("<ul>\n");
    for (const std::string& sentence : SentencesOf(comparison_))
      html_.Raw("<li>{}</li>\n", SentenceHtml(sentence));
    html_.RawText("</ul>\n");
    html_.EndSection();
    Times();
    Kernels("Kernels",
            "Each: of launches of equal shapes, by the mean of logarithms, with the 95 % interval.",
            comparison_.kernels);
    Kernels(
        "Phases",
        "Ranges that the program annotated, by their names without digits: how long each takes on the host. "
        "They may nest.",
        comparison_.phases);
    Lines("Kinds of work, by the names of kernels", comparison_.kinds);
    Lines("CUDA graphs", comparison_.graphs);
    Lines("Copies", comparison_.copies);
    Lines("API calls", comparison_.calls);
    Stacks();
    Runs();
    WholeNames();
    html_.EndPage();
    return html_.Take();
  }

 private:
  void Times() {
    html_.Section("Time of a GPU",
                  "Mean of all ranks and runs, A above B. Figures of B are for A's amount of work where that "
                  "is known.");
    html_.Table("Parts of the time from the first to the last GPU event",
                {"part", "", "#A", "#B", "#difference"});
    for (const Line& line : comparison_.times) {
      if (line.a_ns == 0 && line.b_ns == 0) continue;
      const auto* const part = std::ranges::find(kTimeParts, line.name, &Part::name);
      const bool is_part = part != kTimeParts.end();
      const double whole_ns = std::max(comparison_.times.front().a_ns, comparison_.times.front().b_ns);
      std::string bars;
      for (const double ns : {line.a_ns, line.b_ns}) {
        const analyze::BarPart bar{is_part ? part->style : "mark", std::llround(ns)};
        bars += analyze::Bar(std::span(&bar, 1), std::llround(whole_ns));
      }
      html_.Row();
      html_.Cell(is_part ? part->meaning : "first to last event");
      html_.RawCell(bars);
      html_.Figure(TimeOf(line.a_ns));
      html_.Figure(TimeOf(line.b_ns));
      html_.Figure(More(line.more_ns()));
      html_.EndRow();
    }
    html_.EndTable();
    html_.EndSection();
  }

  void Kernels(std::string_view title, std::string_view explanation, const std::vector<KernelLine>& lines) {
    if (lines.empty()) return;
    const size_t rows = std::min(lines.size(), kRows);
    double from = 1, to = 1;
    for (size_t i = 0; i < rows; ++i)
      if (const auto& duration = lines[i].duration) {
        from = std::min(from, duration->low);
        to = std::max(to, duration->high);
      }
    html_.Section(title, explanation);
    html_.Table(
        fmt::format("{}, the largest difference first; the axis goes from {} to {}, no change is marked",
                    title, analyze::Longer(from), analyze::Longer(to)),
        {"name", "", "#each", "#95 % interval", "#A", "#B", "#difference", "#count A", "#count B", "change"});
    for (size_t i = 0; i < rows; ++i) {
      const KernelLine& kernel = lines[i];
      const Line& line = kernel.line;
      html_.Row();
      html_.Name(shown_(line.name), line.name);
      if (const auto& duration = kernel.duration) {
        html_.Raw("<td class=small>{}</td>",
                  analyze::Interval(duration->low, duration->ratio, duration->high, from, to, 1));
        html_.Figure(analyze::Longer(duration->ratio));
        html_.Figure(
            fmt::format("{} to {}", analyze::Longer(duration->low), analyze::Longer(duration->high)));
      } else {
        html_.Cell("");
        html_.Figure("–");
        html_.Figure("–");
      }
      Amounts(line);
      html_.Cell(TextOf(kernel.change));
      html_.EndRow();
    }
    html_.EndTable(lines.size() - rows);
    html_.EndSection();
  }

  void Amounts(const Line& line) {
    html_.Figure(TimeOf(line.a_ns));
    html_.Figure(TimeOf(line.b_ns));
    html_.Figure(More(line.more_ns()));
    for (const double count : {line.count_a, line.count_b}) html_.Figure(fmt::format("{:.0f}", count));
  }

  void Lines(std::string_view title, const std::vector<Line>& lines) {
    if (lines.empty()) return;
    const size_t rows = std::min(lines.size(), kRows);
    html_.Section(title);
    html_.Table("The largest difference first", {"name", "#A", "#B", "#difference", "#count A", "#count B"});
    for (size_t i = 0; i < rows; ++i) {
      html_.Row();
      html_.Name(shown_(lines[i].name), lines[i].name);
      Amounts(lines[i]);
      html_.EndRow();
    }
    html_.EndTable(lines.size() - rows);
    html_.EndSection();
  }

  void Runs() {
    html_.Section("Runs");
    html_.Table("What was compared", {"side", "path", "#runs", "#ranks"});
    for (const auto& [side, run] : {std::pair("A", &comparison_.a), std::pair("B", &comparison_.b)})
      for (size_t i = 0; i < std::min(run->paths.size(), kMaxPaths); ++i) {
        html_.Row();
        html_.Cell(side);
        html_.Name(Shorten(Printable(run->paths[i]), kMaxWhole / 4), run->paths[i]);
        html_.Figure(i == 0 ? fmt::format("{}", run->runs) : "");
        html_.Figure(i == 0 ? fmt::format("{}", run->ranks) : "");
        html_.EndRow();
      }
    html_.EndTable();
    for (const auto& [side, run] : {std::pair("A", &comparison_.a), std::pair("B", &comparison_.b)})
      for (size_t i = 0; i < std::min(run->notes.size(), kMaxPaths); ++i)
        html_.Paragraph(fmt::format("{}: {}.", side, Shorten(Printable(run->notes[i]), kMaxWhole / 4)));
    html_.EndSection();
  }

  void Stacks() {
    if (!comparison_.stacks.empty()) html_.RawText(FlameGraphStyle());
    for (const StackDiff& diff : comparison_.stacks) {
      const bool gpu = diff.type() == model::ProfileType::kGpu;
      html_.Section(gpu ? "GPU time by stack" : "CPU time by stack",
                    comparison_.work.has_value()
                        ? "Widths are the mean time of A and B for A's amount of work."
                        : "Widths are the mean time of A and B, for runs as long as A.");
      html_.RawText(FlameGraphOf(diff));
      html_.EndSection();
      const std::vector<StackLine> operators = diff.Operators();
      if (operators.empty()) continue;
      const size_t rows = std::min(operators.size(), kRows);
      html_.Section("GPU time by operator");
      html_.Table("By the innermost operator above a kernel, the largest difference first",
                  {"operator", "#A", "#B", "#difference"});
      for (const StackLine& line : std::span(operators).first(rows)) {
        html_.Row();
        html_.Name(Shorten(Printable(line.frames.front()), kMaxOperator), line.frames.front());
        html_.Figure(TimeOf(line.a_ns));
        html_.Figure(TimeOf(line.b_ns));
        html_.Figure(More(line.more_ns()));
        html_.EndRow();
      }
      html_.EndTable(operators.size() - rows);
      html_.EndSection();
    }
  }

  void WholeNames() {
    std::map<std::string, std::string_view> whole;
    for (size_t i = 0; i < std::min(comparison_.kernels.size(), kRows); ++i) {
      const std::string& name = comparison_.kernels[i].line.name;
      if (std::string text = shown_(name); text != Printable(name)) whole.emplace(std::move(text), name);
    }
    if (whole.empty()) return;
    html_.Section("Whole names of kernels");
    html_.Table("Names that are shortened above", {"shown as", "name"});
    for (const auto& [text, name] : whole) {
      html_.Row();
      html_.Raw("<td class=name>{}</td><td class=name>{}</td>", EscapedHtml(text),
                EscapedHtml(Shorten(Printable(name), kMaxWhole)));
      html_.EndRow();
    }
    html_.EndTable();
    html_.EndSection();
  }

  const Comparison& comparison_;
  model::ShortNames shown_;
  analyze::HtmlWriter html_;
};

}  // namespace

std::string ToHtml(const Comparison& comparison) { return PageWriter(comparison).Write(); }

}  // namespace gpusonde::compare
