// SPDX-License-Identifier: Apache-2.0
#include "store/duckdb/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>

#include "base/ascii.h"
#include "base/cancellation.h"
#include "base/log.h"
#include "store/duckdb/rows.h"
#include "store/duckdb/statement.h"
#include "store/each_row.h"
#include "store/memory_limit.h"

namespace gpusonde::store::duckdb {
namespace {

// Between two questions whether other threads of DuckDB have finished: short beside what they do.
constexpr std::chrono::microseconds kOthersWork{100};

std::string Quote(std::string_view text, char quote) {
  std::string quoted(1, quote);
  for (const char c : text) {
    if (c == quote) quoted += quote;
    quoted += c;
  }
  return quoted += quote;
}

Handle<duckdb_value> ListOf(const Library& library, std::span<const Id128> ids) {
  const Handle<duckdb_logical_type> type(library.destroy_logical_type,
                                         library.create_logical_type(DUCKDB_TYPE_UUID));
  std::vector<duckdb_value> values;
  values.reserve(ids.size() + 1);  // an empty list has to be somewhere, too
  for (const Id128 id : ids) values.push_back(library.create_uuid({id.low, id.high}));
  Handle<duckdb_value> list(library.destroy_value,
                            library.create_list_value(type.get(), values.data(), values.size()));
  for (duckdb_value& value : values) library.destroy_value(&value);
  return list;
}

Status Bind(const Library& library, duckdb_prepared_statement statement, idx_t index,
            const Parameter& parameter) {
  duckdb_state state = DuckDBError;
  if (const auto* integer = std::get_if<int64_t>(&parameter)) {
    state = library.bind_int64(statement, index, *integer);
  } else if (const auto* number = std::get_if<double>(&parameter)) {
    state = library.bind_double(statement, index, *number);
  } else if (const auto* text = std::get_if<std::string>(&parameter)) {
    state = library.bind_varchar_length(statement, index, text->data(), text->size());
  } else if (const auto* id = std::get_if<Id128>(&parameter)) {
    const Handle<duckdb_value> value(library.destroy_value, library.create_uuid({id->low, id->high}));
    state = library.bind_value(statement, index, value.get());
  } else if (const auto* ids = std::get_if<std::vector<Id128>>(&parameter)) {
    const Handle<duckdb_value> list = ListOf(library, *ids);
    state = library.bind_value(statement, index, list.get());
  }
  if (state != DuckDBSuccess)
    return Fail(ErrorCode::kInvalidArgument, fmt::format("parameter {} of the query doesn't fit", index));
  return {};
}

// The file that DuckDB could not use: 'Could not write file "PATH": …', perhaps quoted in another message.
std::string_view QuotedFile(std::string_view message) {
  constexpr std::string_view kBefore = "file \"";
  const size_t before = message.find(kBefore);
  if (before == std::string_view::npos) return {};
  const std::string_view rest = message.substr(before + kBefore.size());
  return rest.substr(0, rest.find_first_of("\"\\"));
}

// Of a file that SQL may not reach: not ours to attach, or any other.
constexpr std::string_view kNotAllowed = "disabled by configuration";

// How DuckDB's error begins when a query was interrupted.
constexpr std::string_view kInterrupt = "INTERRUPT Error";

// Of the memory limit, and of an allocation that failed below it: results don't count towards the limit.
constexpr std::string_view kNoMemory = "Out of Memory Error", kNotAllocated = "std::bad_alloc";
bool IsNoMemory(std::string_view message) {
  return message.find(kNoMemory) != std::string_view::npos ||
         message.find(kNotAllocated) != std::string_view::npos;
}

// A file that another process writes.
constexpr std::string_view kLocked = "Could not set lock";

// " (PID 12)" from "Conflicting lock is held in PID 12. See also …" or "… in /bin/x (PID 12) …".
std::string LockHolder(std::string_view message) {
  constexpr std::string_view kPid = "PID ";
  const size_t at = message.find(kPid);
  if (at == std::string_view::npos) return "";
  const std::string_view digits = message.substr(at + kPid.size());
  return fmt::format(" (PID {})", digits.substr(0, digits.find_first_not_of("0123456789")));
}

// DuckDB's errors in the syntax show the line twice.
std::string WithoutRepetition(std::string_view message) {
  constexpr std::string_view kShown = "\n\nLINE ";
  const size_t first = message.find(kShown);
  const size_t second = first == std::string_view::npos ? first : message.find(kShown, first + 1);
  const bool same =
      second != std::string_view::npos && message.substr(first, second - first) == message.substr(second);
  return std::string(message.substr(0, same ? second : message.size()));
}

constexpr std::string_view kOnlyReading =
    "only statements that read are run here, such as SELECT and DESCRIBE";

// What the parser and the planner refuse, for which DuckDB's words speak of its own functions.
struct Refusal {
  std::string_view part;
  std::string_view meaning;
};
constexpr std::array kRefusals = {
    Refusal{"Cannot prepare multiple statements", "this is more than one statement; run them one by one"},
    Refusal{"No statement to prepare", "the SQL has no statement, only comments"},
    Refusal{"Can only delete from base table", kOnlyReading},
    Refusal{"Can only update base table", kOnlyReading},
};

// Errors that a person can mend are said without DuckDB's exception names and advice about its settings.
std::string InOurWords(ErrorCode code, std::string_view message) {
  const std::string_view file = QuotedFile(message);
  if (code == ErrorCode::kOutOfSpace)
    return file.empty() ? "no space is left on the disk"
                        : fmt::format("{}: no space is left on its disk", file);
  if (IsNoMemory(message))
    return fmt::format(
        "this needs more memory than the {} MB that the database may use; allow more with --memory-limit-mb, "
        "or ask about less time",
        MemoryLimit() / 1'000'000);
  if (message.find(kLocked) != std::string_view::npos)
    return fmt::format(
        "in use by another process{}, as the newest file of a running `gpusonde up` is: stop it, or ask it "
        "(`gpusonde usage --server`, `gpusonde mcp --live`)",
        LockHolder(message));
  if (message.starts_with(kInterrupt)) return "the query was interrupted";
  if (code == ErrorCode::kCorrupt) return "damaged: what it holds can't be read as a database; copy it again";
  if (code == ErrorCode::kInternal) {
    LogDebug("DuckDB: {}", message);  // with a stack trace
    return fmt::format("DuckDB failed, as it does with damaged recordings: {}",
                       message.substr(0, message.find('\n')));
  }
  if (message.find(kNotAllowed) != std::string_view::npos)
    return fmt::format("{}{}SQL reads the recordings that were named, and no other file", file,
                       file.empty() ? "" : ": ");
  if (code == ErrorCode::kPermissionDenied && !file.empty())
    return fmt::format("{}: permission denied", file);
  return std::string(message);
}

enum class Cancellable { kNo, kYes };

// As execute_prepared, which asks all the time whether DuckDB's other threads have finished (Executor::
// WaitForTask in 1.4), and so uses a CPU while they work: this sleeps in between. A statement that can be
// cancelled is interrupted when its thread's Cancellation is requested.
Status ExecutePrepared(const Library& library, duckdb_connection connection,
                       duckdb_prepared_statement statement, Cancellable cancellable,
                       Handle<duckdb_result>& result) {
  Handle<duckdb_pending_result> pending(library.destroy_pending);
  duckdb_pending_state state = DUCKDB_PENDING_ERROR;
  if (library.pending_prepared(statement, pending.out()) == DuckDBSuccess) {
    do {
      if (cancellable == Cancellable::kYes && Cancellation::IsRequested()) library.interrupt(connection);
      state = library.pending_execute_task(pending.get());
      if (state == DUCKDB_PENDING_NO_TASKS_AVAILABLE) std::this_thread::sleep_for(kOthersWork);
    } while (state != DUCKDB_PENDING_ERROR && !library.pending_execution_is_finished(state));
  }
  const char* failed = library.pending_error(pending.get());
  if (state == DUCKDB_PENDING_ERROR && failed != nullptr && *failed != '\0') return Fail(ErrorOf(failed));
  // Tasks that are all blocked are an error without a message; execute_pending can finish them.
  if (library.execute_pending(pending.get(), result.out()) == DuckDBSuccess) return {};
  return Fail(ErrorOf(library.result_error(result.out())));
}

// Interrupts what runs on a connection when its time is over.
class StatementLimit {
 public:
  StatementLimit(const Library& library, duckdb_connection connection, std::chrono::milliseconds limit)
      : watch_([this, &library, connection, limit](const std::stop_token& stop) {
          std::unique_lock lock(mutex_);
          // A statement that begins just as it is interrupted may miss that.
          for (auto wait = limit;
               !changed_.wait_for(lock, stop, wait, [] { return false; }) && !stop.stop_requested();
               wait = std::chrono::milliseconds(100)) {
            exceeded_ = true;
            library.interrupt(connection);
          }
        }) {}

  bool exceeded() const { return exceeded_; }

 private:
  std::atomic<bool> exceeded_ = false;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::jthread watch_;  // the last member: it uses the others
};

// EXPLAIN ANALYZE runs what it explains, which may be DELETE or COPY … TO.
bool OnlyReads(const Library& library, duckdb_connection connection, const std::string& sql,
               duckdb_prepared_statement statement) {
  const duckdb_statement_type type = library.prepared_statement_type(statement);
  if (type != DUCKDB_STATEMENT_TYPE_EXPLAIN) return type == DUCKDB_STATEMENT_TYPE_SELECT;
  Handle<duckdb_prepared_statement> explained(library.destroy_prepare);
  return library.prepare(connection, std::string(ExplainedBy(sql)).c_str(), explained.out()) ==
             DuckDBSuccess &&
         library.prepared_statement_type(explained.get()) == DUCKDB_STATEMENT_TYPE_SELECT;
}

// Table functions of DuckDB that a SELECT can call and that change the database, whatever its settings
// forbid. A log that DuckDB may not write makes all later statements fail, and ends the process with the
// instance.
constexpr std::array kChanging = {"CHECKPOINT",
                                  "DISABLE_LOGGING",
                                  "ENABLE_LOGGING",
                                  "FORCE_CHECKPOINT",
                                  "JSON_EXECUTE_SERIALIZED_SQL",
                                  "TRUNCATE_DUCKDB_LOGS"};

// Refuses a statement whose plan has one of these. Only statements with certain words are planned for that:
// their names, and the functions that run a text, in which the names may be in parts.
Status CheckFunctions(const std::shared_ptr<Instance>& instance, std::string_view sql) {
  constexpr std::array<std::string_view, 5> kWords = {"checkpoint", "duckdb_logs", "logging", "query",
                                                      "serialized"};
  const std::string words = ToLower(std::string(sql));
  if (std::ranges::none_of(kWords, [&](std::string_view word) { return words.contains(word); })) return {};
  ASSIGN_OR_RETURN(Connection connection, Connection::Open(instance));
  const auto plan = Connection::Query(std::move(connection), fmt::format("EXPLAIN (FORMAT json) {}", sql), {},
                                      Connection::Allow::kEverything);
  return ForEachRow(plan, [](const Rows& row) -> Status {
    for (const std::string_view name : kChanging)
      if (row.Text(1).contains(fmt::format(R"("Function": "{}")", name)))
        return Fail(
            ErrorCode::kInvalidArgument,
            fmt::format("only statements that read are run here, without {}()", ToLower(std::string(name))));
    return {};
  });
}

}  // namespace

Error ErrorOf(std::string_view message) {
  struct Rule {
    std::string_view part;
    ErrorCode code;
  };
  // First match wins; whatever isn't here is about the SQL.
  static constexpr std::array kRules = {
      Rule{"No space left", ErrorCode::kOutOfSpace},
      Rule{kLocked, ErrorCode::kUnavailable},
      Rule{"Permission denied", ErrorCode::kPermissionDenied},
      Rule{kNotAllowed, ErrorCode::kPermissionDenied},
      Rule{kNoMemory, ErrorCode::kUnavailable},
      Rule{kNotAllocated, ErrorCode::kUnavailable},
      Rule{kInterrupt, ErrorCode::kUnavailable},
      Rule{"Serialization Error", ErrorCode::kCorrupt},
      Rule{"Corrupt", ErrorCode::kCorrupt},
      Rule{"IO Error", ErrorCode::kIo},
      Rule{"FATAL Error", ErrorCode::kIo},
      Rule{"INTERNAL Error", ErrorCode::kInternal},
  };
  for (const Rule& rule : kRules)
    if (message.find(rule.part) != std::string_view::npos) return {rule.code, InOurWords(rule.code, message)};
  for (const Refusal& refusal : kRefusals)
    if (message.find(refusal.part) != std::string_view::npos)
      return {ErrorCode::kInvalidArgument, std::string(refusal.meaning)};
  return {ErrorCode::kInvalidArgument, WithoutRepetition(message)};
}

std::string QuoteText(std::string_view text) { return Quote(text, '\''); }
std::string QuoteName(std::string_view name) { return Quote(name, '"'); }

Result<std::shared_ptr<Instance>> Instance::Create(const Settings& settings) {
  ASSIGN_OR_RETURN(const Library* library, LoadLibrary());
  TemporaryFolder folder;
  if (settings.temporary_folder.empty()) folder = TemporaryFolder::Create().value_or(TemporaryFolder());
  Handle<duckdb_config> config(library->destroy_config);
  library->create_config(config.out());
  const std::array<std::pair<const char*, std::string>, 9> options = {{
      {"memory_limit", fmt::format("{}B", MemoryLimit())},
      {"threads", std::to_string(settings.threads)},
      {"checkpoint_threshold", fmt::format("{}B", settings.log_bytes)},
      {"temp_directory", settings.temporary_folder.empty() ? folder.path() : settings.temporary_folder},
      {"autoinstall_known_extensions", "false"},
      {"autoload_known_extensions", "false"},
      {"allow_community_extensions", "false"},
      {"allow_persistent_secrets", "false"},
      {"custom_user_agent", "gpusonde"},
  }};
  for (const auto& [name, value] : options) {
    if (library->set_config(config.get(), name, value.c_str()) != DuckDBSuccess)
      return Fail(ErrorCode::kInternal, fmt::format("DuckDB refuses the setting {}={}", name, value));
  }
  Handle<duckdb_database> database(library->close);
  char* message = nullptr;
  if (library->open_ext(nullptr, database.out(), config.get(), &message) != DuckDBSuccess) {
    Error error = ErrorOf(message == nullptr ? "unknown error" : message);
    library->free(message);
    return Fail(std::move(error).With("start DuckDB"));
  }
  return std::shared_ptr<Instance>(new Instance(*library, std::move(folder), std::move(database)));
}

Result<Handle<duckdb_connection>> Instance::Connect() {
  Handle<duckdb_connection> connection(library_->disconnect);
  if (library_->connect(database_.get(), connection.out()) != DuckDBSuccess)
    return Fail(ErrorCode::kUnavailable,
                "DuckDB refuses a connection, as it does where memory has run out; allow more with "
                "--memory-limit-mb, or ask about less time");
  const std::lock_guard lock(mutex_);
  connections_.insert(connection.get());
  return connection;
}

void Instance::Disconnect(Handle<duckdb_connection> connection) {
  const std::lock_guard lock(mutex_);
  connections_.erase(connection.get());
}

void Instance::Interrupt() {
  interrupted_ = true;
  const std::lock_guard lock(mutex_);
  for (const duckdb_connection connection : connections_) library_->interrupt(connection);
}

Result<Connection> Connection::Open(std::shared_ptr<Instance> instance) {
  ASSIGN_OR_RETURN(Handle<duckdb_connection> connection, instance->Connect());
  return Connection(std::move(instance), std::move(connection));
}

Connection::~Connection() {
  if (instance_ != nullptr) instance_->Disconnect(std::move(connection_));
}

Status Connection::Run(const std::string& sql) {
  const Library& library = this->library();
  Handle<duckdb_extracted_statements> statements(library.destroy_extracted);
  const idx_t count = library.extract_statements(get(), sql.c_str(), statements.out());
  if (const char* failed = library.extract_statements_error(statements.get()); failed != nullptr)
    return Fail(ErrorOf(failed));
  for (idx_t i = 0; i < count; ++i) {
    Handle<duckdb_prepared_statement> statement(library.destroy_prepare);
    if (library.prepare_extracted_statement(get(), statements.get(), i, statement.out()) != DuckDBSuccess) {
      const char* failed = library.prepare_error(statement.get());
      return Fail(ErrorOf(failed == nullptr ? "unknown error" : failed));
    }
    Handle<duckdb_result> result(library.destroy_result);
    TRY(ExecutePrepared(library, get(), statement.get(), Cancellable::kNo, result));
  }
  return {};
}

Status Connection::Execute(const std::string& sql, std::span<const Parameter> parameters, Allow allow,
                           Handle<duckdb_result>& result) {
  const Library& library = this->library();
  const Statement written = WithConstants(sql, parameters);
  Handle<duckdb_prepared_statement> statement(library.destroy_prepare);
  if (library.prepare(get(), written.sql.c_str(), statement.out()) != DuckDBSuccess) {
    const char* message = library.prepare_error(statement.get());
    return Fail(ErrorOf(message == nullptr ? "the statement is empty" : message));
  }
  if (allow == Allow::kReading && !OnlyReads(library, get(), written.sql, statement.get()))
    return Fail(ErrorCode::kInvalidArgument, std::string(kOnlyReading));
  if (allow == Allow::kReading) {
    const std::string_view explained = ExplainedBy(written.sql);
    TRY(CheckFunctions(instance_, explained.empty() ? written.sql : explained));
  }
  if (const idx_t wanted = library.nparams(statement.get()); wanted != written.parameters.size())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("the query has {} parameters, {} were given", wanted, written.parameters.size()));
  for (size_t i = 0; i < written.parameters.size(); ++i)
    TRY(Bind(library, statement.get(), i + 1, written.parameters[i]));
  if (instance_->interrupted()) return Fail(ErrorOf(kInterrupt));

  // Not streamed: DuckDB never returns from a streamed UNION ALL of some length (duckdb/duckdb#22215).
  return ExecutePrepared(library, get(), statement.get(),
                         allow == Allow::kReading ? Cancellable::kYes : Cancellable::kNo, result);
}

Status Connection::Run(const std::string& sql, std::span<const Parameter> parameters) {
  Handle<duckdb_result> result(library().destroy_result);
  return Execute(sql, parameters, Allow::kEverything, result);
}

Result<std::unique_ptr<Rows>> Connection::Query(Connection connection, const std::string& sql,
                                                std::span<const Parameter> parameters, Allow allow,
                                                std::optional<std::chrono::milliseconds> limit) {
  Handle<duckdb_result> result(connection.library().destroy_result);
  std::optional<StatementLimit> watch;
  if (limit.has_value()) watch.emplace(connection.library(), connection.get(), *limit);
  const Status done = connection.Execute(sql, parameters, allow, result);
  if (!done.has_value() && watch.has_value() && watch->exceeded())
    return Fail(ErrorCode::kUnavailable,
                fmt::format("the statement took longer than the {} s that it may take",
                            (limit->count() + 999) / 1000));
  TRY(done);
  watch.reset();
  return MakeRows(std::move(connection), std::move(result));
}

Result<std::unique_ptr<Rows>> Connection::Ask(const std::string& sql, std::span<const Parameter> parameters) {
  ASSIGN_OR_RETURN(Connection connection, Open(instance_));
  return Query(std::move(connection), sql, parameters, Allow::kReading);
}

Result<Transaction> Transaction::Begin(Connection& connection) {
  TRY(connection.Run("BEGIN"));
  return Transaction(connection);
}

Status Transaction::Commit() {
  TRY(connection_->Run("COMMIT"));
  connection_ = nullptr;
  return {};
}

Transaction::~Transaction() {
  if (connection_ == nullptr) return;
  // Fails when DuckDB has rolled back by itself, as it does when a commit fails.
  if (const Status rolled_back = connection_->Run("ROLLBACK"); !rolled_back.has_value())
    LogDebug("roll back: {}", rolled_back.error().message);
}

}  // namespace gpusonde::store::duckdb
