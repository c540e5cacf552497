// SPDX-License-Identifier: Apache-2.0
#include "serve/hosts_query.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/cancellation.h"
#include "base/json_writer.h"
#include "base/time.h"
#include "server/query_parameters.h"
#include "server/sql_rows.h"

namespace gpusonde::serve {
namespace {

constexpr int64_t kDefaultRows = 1'000, kMaxRowsOfAll = 10'000;
constexpr int64_t kDefaultTimeoutS = 30, kMaxTimeoutS = 60;
// Of all rows: texts of 4 kB add up.
constexpr size_t kMaxAnswerBytes = size_t{8} << 20;

struct SqlQuestion {
  std::string sql;
  std::vector<std::shared_ptr<Host>> hosts;
  int64_t limit = kDefaultRows;
  int64_t timeout_s = kDefaultTimeoutS;
};

Result<std::vector<std::shared_ptr<Host>>> FindHosts(const Hosts& hosts, std::string_view names) {
  if (names == "all") return hosts.All();
  std::vector<std::shared_ptr<Host>> found;
  std::set<std::string_view> seen;
  while (true) {
    const std::string_view name = names.substr(0, names.find(','));
    ASSIGN_OR_RETURN(std::shared_ptr<Host> host, hosts.Find(std::string(name)));
    if (seen.insert(name).second) found.push_back(std::move(host));
    if (name.size() == names.size()) return found;
    names.remove_prefix(name.size() + 1);
  }
}

Result<SqlQuestion> ParseQuestion(const Hosts& hosts, const server::HttpRequest& request) {
  ASSIGN_OR_RETURN(server::QueryParameters parameters, server::QueryParameters::Create(request.query));
  SqlQuestion question{.sql = std::string(parameters.TakeText("sql").value_or("")), .hosts = {}};
  const std::string_view names = parameters.TakeText("hosts").value_or("all");
  ASSIGN_OR_RETURN(const auto limit, parameters.TakeInteger("limit", 1, kMaxRowsOfAll));
  ASSIGN_OR_RETURN(const auto timeout_s, parameters.TakeInteger("timeout_s", 1, kMaxTimeoutS));
  TRY(parameters.Finish());
  if (question.sql.empty())
    return Fail(ErrorCode::kInvalidArgument, "parameter 'sql' is missing: give one statement that reads");
  ASSIGN_OR_RETURN(question.hosts, FindHosts(hosts, names));
  question.limit = limit.value_or(kDefaultRows);
  question.timeout_s = timeout_s.value_or(kDefaultTimeoutS);
  return question;
}

// The rows of all hosts, as they come.
class SqlAnswer {
 public:
  explicit SqlAnswer(int64_t limit) : limit_(limit) {}

  bool IsFull() const { return more_; }
  // One more than there is room for, so that it is known whether there are more.
  int64_t Wanted() const { return limit_ - rows_ + 1; }

  // Errors: those of Rows::Next; kUnsupported for columns that differ from another host's.
  Status Add(const std::string& host, store::Rows& rows) {
    std::string columns;
    for (const store::Rows::Column& column : rows.columns()) {
      JsonWriter json;
      json.BeginObject().Field("name", column.name).Field("type", column.type).EndObject();
      columns += "," + json.Take();
    }
    if (answered_ > 0 && columns != columns_)
      return Fail(ErrorCode::kUnsupported, "its columns differ from those of the other hosts");
    columns_ = std::move(columns);
    ++answered_;
    JsonWriter name;
    const std::string prefix = "[" + name.Value(host).Take();
    while (!more_) {
      ASSIGN_OR_RETURN(const bool is_row, rows.Next());
      if (!is_row) return {};
      const std::string values = server::RowValuesJson(rows);
      more_ = rows_ == limit_ || json_.size() + values.size() > kMaxAnswerBytes;
      if (more_) return {};
      json_ += fmt::format("{}{}{}{}]", rows_ == 0 ? "" : ",", prefix, values.empty() ? "" : ",", values);
      ++rows_;
    }
    return {};
  }

  void AddError(const std::string& host, std::string_view message) {
    JsonWriter json;
    json.BeginObject().Field("host", host).Field("message", message).EndObject();
    errors_ += (errors_.empty() ? "" : ",") + json.Take();
  }

  std::string Take() {
    return fmt::format(
        R"({{"columns":[{{"name":"host","type":"VARCHAR"}}{}],"rows":[{}],"more":{},"hosts":{},"errors":[{}]}})",
        columns_, json_, more_, answered_, errors_);
  }

 private:
  const int64_t limit_;
  std::string columns_, json_, errors_;
  int64_t rows_ = 0, answered_ = 0;
  bool more_ = false;
};

}  // namespace

server::HttpResponse HostsQuery::Answer(const server::HttpRequest& request) {
  if (request.caller.has_value() && !server::Allows(request.caller->scope, server::Scope::kAdmin))
    return server::ErrorResponse({ErrorCode::kPermissionDenied,
                                  fmt::format("SQL needs a token of scope admin, and '{}' is of scope {}",
                                              request.caller->name, server::Name(request.caller->scope))});
  Result<SqlQuestion> question = ParseQuestion(hosts_, request);
  if (!question.has_value()) return server::ErrorResponse(question.error());
  const std::unique_lock running(running_, std::try_to_lock);
  if (!running.owns_lock())
    return server::ErrorResponse(
        {ErrorCode::kUnavailable, "another SQL statement runs over this server's hosts; try again later"});
  const int64_t end_ns = MonotonicNow() + question->timeout_s * kNanosPerSecond;
  SqlAnswer answer(question->limit);
  for (const std::shared_ptr<Host>& host : question->hosts) {
    if (answer.IsFull()) break;
    // The files of the other hosts would be opened for nobody.
    if (Cancellation::IsRequested())
      return server::ErrorResponse({ErrorCode::kUnavailable, "the client has hung up"});
    const int64_t left_ns = end_ns - MonotonicNow();
    if (left_ns <= 0) {
      answer.AddError(host->name(),
                      fmt::format("not asked: the time limit of {} s was over", question->timeout_s));
      continue;
    }
    const auto ask = [&]() -> Status {
      ASSIGN_OR_RETURN(store::LiveStore* const store, host->Store());
      ASSIGN_OR_RETURN(const auto rows,
                       store->QueryWithin(server::LimitedSql(question->sql, answer.Wanted()),
                                          std::chrono::milliseconds(left_ns / kNanosPerMilli + 1)));
      return answer.Add(host->name(), *rows);
    };
    const Status asked = ask();
    if (asked.has_value()) continue;
    // The statement itself is wrong, and so for all hosts.
    if (asked.error().code == ErrorCode::kInvalidArgument ||
        asked.error().code == ErrorCode::kPermissionDenied)
      return server::ErrorResponse(Error(asked.error()).With("host " + host->name()));
    answer.AddError(host->name(), asked.error().message);
  }
  return server::JsonResponse(answer.Take());
}

}  // namespace gpusonde::serve
