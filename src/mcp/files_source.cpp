// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "analyze/analyzer.h"
#include "analyze/report/sentences.h"
#include "base/json_writer.h"
#include "mcp/source.h"
#include "server/api.h"
#include "server/sql_rows.h"
#include "server/url.h"
#include "store/each_row.h"

namespace gpusonde::mcp {
namespace {

std::string FindingsJson(const analyze::Report& report) {
  const model::ShortNames shown(analyze::NamesIn(report));
  const analyze::ReportSentences sentences = analyze::SentencesOf(report, shown);
  JsonWriter found;
  found.BeginObject().Key("overview").BeginArray();
  for (const std::string& sentence : sentences.overview) found.Value(sentence);
  found.EndArray().Key("findings").BeginArray();
  for (const analyze::Finding& finding : sentences.findings)
    found.BeginObject().Field("finding", finding.text).Field("cost_ns", finding.cost_ns).EndObject();
  found.EndArray().Key("advice").BeginArray();
  for (const analyze::AdviceLine& advice : report.advice) {
    const analyze::AdviceSentences said = analyze::SentencesOf(advice, report, shown);
    found.BeginObject().Field("finding", said.finding).Field("action", advice.action);
    found.Field("gain", said.gain).Field("evidence", said.evidence).EndObject();
  }
  found.EndArray().Key("notes").BeginArray();
  for (const analyze::Note& note : report.notes)
    found.BeginObject().Field("kind", Name(note.kind)).Field("count", note.count).EndObject();
  return found.EndArray().EndObject().Take();
}

class Files final : public Source {
 public:
  Files(store::Store& store, std::vector<std::string> files, std::string title,
        std::vector<std::string> notices)
      : store_(store),
        files_(std::move(files)),
        data_(server::ReadingFrom(store)),
        api_(server::ApiHandler(*data_, {.mode = "view",
                                         .title = std::move(title),
                                         .notices = [notices = std::move(notices)] { return notices; },
                                         .metrics = {}})) {}

  Result<std::string> Get(const std::string& target) override {
    ASSIGN_OR_RETURN(server::Target parsed, server::ParseTarget("/api/v1/" + target));
    server::HttpRequest request{.path = std::move(parsed.path), .query = std::move(parsed.query)};
    const server::HttpResponse response = api_(request);
    std::string body = response.body == nullptr ? "" : *response.body;
    if (response.status == 200) return body;
    return Fail(ErrorCode::kUnavailable, server::ErrorMessageOf(body));
  }

  bool has_files() const override { return true; }

  Result<std::string> Query(const std::string& sql, int64_t max_rows) override {
    ASSIGN_OR_RETURN(const auto rows, store_.Query(server::LimitedSql(sql, max_rows + kMaxCountedRows), {}));
    JsonWriter columns;
    columns.BeginArray();
    for (const store::Rows::Column& column : rows->columns())
      columns.BeginObject().Field("name", column.name).Field("type", column.type).EndObject();
    columns.EndArray();
    std::vector<std::string> shown;
    int64_t count = 0;
    TRY(store::ForEachRow(*rows, [&](const store::Rows& row) {
      if (count++ < max_rows) shown.push_back("[" + server::RowValuesJson(row) + "]");
    }));
    return fmt::format(R"({{"columns":{},"rows":[{}],"omitted":{{"rows":{}}},"uncounted":"{}"}})",
                       columns.Take(), fmt::join(shown, ","), std::max<int64_t>(0, count - max_rows),
                       count == max_rows + kMaxCountedRows ? "rows" : "");
  }

  Result<std::string> Findings() override {
    if (!findings_.has_value()) {
      ASSIGN_OR_RETURN(const analyze::Report report, analyze::Analyze(files_, {}));
      findings_ = FindingsJson(report);
    }
    return *findings_;
  }

  void Interrupt() override { store_.Interrupt(); }
  void Resume() override { store_.Resume(); }

 private:
  store::Store& store_;
  std::vector<std::string> files_;
  std::unique_ptr<server::ApiData> data_;
  server::HttpHandler api_;
  std::optional<std::string> findings_;  // files don't change
};

}  // namespace

std::unique_ptr<Source> FilesSource(store::Store& store, std::vector<std::string> files, std::string title,
                                    std::vector<std::string> notices) {
  return std::make_unique<Files>(store, std::move(files), std::move(title), std::move(notices));
}

}  // namespace gpusonde::mcp
