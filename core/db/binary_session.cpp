// libpq returns a result when the server is ready for the next statement, which is after the commit of this
// one.

#include "db/binary_session.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <bit>
#include <endian.h>
#include <libpq-fe.h>
#include <new>
#include <optional>
#include <poll.h>

#include "base/text.hpp"
#include "db/connection.hpp"

namespace mailroom::db {
namespace {

using Result = std::unique_ptr<PGresult, decltype(&PQclear)>;

std::string one_line(const char* text) {
  std::string line(text == nullptr ? "" : text);
  std::ranges::replace(line, '\n', ' ');
  return std::string(trimmed(line));
}

std::string field_of(const PGresult* result, int field) {
  const auto* text = PQresultErrorField(result, field);
  return text == nullptr ? std::string() : std::string(text);
}

std::variant<TextRows, StatementFailure> outcome_of(const PGresult* result, const PGconn* session) {
  const auto status = PQresultStatus(result);
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
    StatementFailure failure{.sqlstate = field_of(result, PG_DIAG_SQLSTATE),
                             .message = field_of(result, PG_DIAG_MESSAGE_PRIMARY),
                             .hint = field_of(result, PG_DIAG_MESSAGE_HINT),
                             .detail = field_of(result, PG_DIAG_MESSAGE_DETAIL)};
    failure.sqlstate =
        settled_sqlstate(failure.sqlstate, failure.message, field_of(result, PG_DIAG_SOURCE_FILE));
    if (PQstatus(session) != CONNECTION_OK) failure.sqlstate.clear();
    if (failure.message.empty()) failure.message = one_line(PQerrorMessage(session));
    return failure;
  }
  TextRows rows(static_cast<std::size_t>(PQntuples(result)));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (int column = 0; column < PQnfields(result); ++column)
      rows[i].emplace(PQfname(result, column), PQgetvalue(result, static_cast<int>(i), column));
  }
  return rows;
}

bool send(PGconn* session, const Statement& statement) {
  std::vector<const char*> values;
  for (const auto& value : statement.values)
    values.push_back(value.c_str());
  return PQsendQueryParams(session, statement.sql.c_str(), static_cast<int>(values.size()), nullptr,
                           values.data(), nullptr, nullptr, 0) == 1;
}

}  // namespace

BinaryArray::BinaryArray(Element element, std::size_t count) : element_(element) {
  put(1);  // dimensions
  put(1);  // may have nulls
  put(static_cast<std::uint32_t>(element));
  put(static_cast<std::uint32_t>(count));
  put(1);  // the first index
}

void BinaryArray::put(std::uint32_t number) {
  const auto bytes = std::bit_cast<std::array<char, sizeof number>>(htonl(number));
  bytes_.append(bytes.data(), bytes.size());
}

void BinaryArray::add(std::string_view value) {
  put(static_cast<std::uint32_t>(value.size()));
  bytes_ += value;
}

void BinaryArray::add_null() {
  put(0xffffffff);
}

void BinaryArray::add(Moment moment) {
  constexpr Moment year_2000 = std::chrono::sys_days(std::chrono::year(2000) / 1 / 1);
  const auto number = htobe64(static_cast<std::uint64_t>((moment - year_2000).count()));
  const auto bytes = std::bit_cast<std::array<char, sizeof number>>(number);
  add(std::string_view(bytes.data(), bytes.size()));
}

std::uint32_t BinaryArray::type() const {
  switch (element_) {
    case Element::text:
      return 1009;
    case Element::bytea:
      return 1001;
    case Element::timestamptz:
      return 1185;
    case Element::jsonb:
      return 3807;
  }
  return 0;
}

void BinarySession::Close::operator()(pg_conn* session) const {
  PQfinish(session);
}

BinarySession::BinarySession(const DatabaseTarget& target, const std::string& user,
                             const std::string& password, const std::string& application_name,
                             Milliseconds answer) {
  const std::string utf8 = "UTF8";
  const auto timeout = std::to_string(answer.count());
  auto options = session_options(target.conninfo);
  // ALTER ROLE could have other ones: a group of mails must be whole, flushed, and not wait beyond the
  // patience.
  options += " -c synchronous_commit=on -c statement_timeout=" + timeout + " -c lock_timeout=" + timeout;
  std::vector<const char*> keys{"dbname"};
  std::vector<const char*> values{target.conninfo.c_str()};
  const auto add = [&](const char* key, const std::string& value) {
    keys.push_back(key);
    values.push_back(value.c_str());
  };
  add("user", user);
  if (!password.empty()) add("password", password);
  add("tcp_user_timeout", timeout);
  add("fallback_application_name", application_name);
  add("client_encoding", utf8);
  add("options", options);
  // No password file may answer for a client.
  const std::string no_file = "/dev/null";
  if (!password.empty()) add("passfile", no_file);
  keys.push_back(nullptr);
  values.push_back(nullptr);
  session_.reset(PQconnectStartParams(keys.data(), values.data(), 1));
  if (!session_) throw std::bad_alloc();
  // With the SQLSTATE, which tells a wrong password in any language.
  PQsetErrorVerbosity(session_.get(), PQERRORS_VERBOSE);
  connect_until(steady_now() + answer);
  PQsetErrorVerbosity(session_.get(), PQERRORS_DEFAULT);
}

void BinarySession::connect_until(TimePoint end) {
  auto wanted = PGRES_POLLING_WRITING;
  while (PQstatus(session_.get()) != CONNECTION_BAD) {
    pollfd awaited{PQsocket(session_.get()),
                   static_cast<short>(wanted == PGRES_POLLING_READING ? POLLIN : POLLOUT), 0};
    const auto left = std::chrono::ceil<Milliseconds>(end - steady_now());
    if (left.count() <= 0) {
      late_problem_ = "no answer in time";
      return;
    }
    if (poll(&awaited, 1, static_cast<int>(left.count())) <= 0) continue;
    wanted = PQconnectPoll(session_.get());
    if (wanted == PGRES_POLLING_OK || wanted == PGRES_POLLING_FAILED) return;
  }
}

bool BinarySession::is_open() const {
  return PQstatus(session_.get()) == CONNECTION_OK;
}

bool BinarySession::used_password() const {
  return PQconnectionUsedPassword(session_.get()) != 0;
}

std::string BinarySession::problem() const {
  if (!late_problem_.empty()) return late_problem_;
  const auto text = one_line(PQerrorMessage(session_.get()));
  return text.substr(0, text.find(" LOCATION:"));
}

std::variant<TextRows, StatementFailure> BinarySession::run(const std::string& sql) {
  const Result result(PQexec(session_.get(), sql.c_str()), PQclear);
  return outcome_of(result.get(), session_.get());
}

std::variant<TextRows, StatementFailure> BinarySession::run_prepared(
    const std::string& name, const std::string& sql, const std::vector<const BinaryArray*>& values) {
  const int count = static_cast<int>(values.size());
  if (std::ranges::find(prepared_, name) == prepared_.end()) {
    std::vector<Oid> types;
    for (const auto* value : values)
      types.push_back(value->type());
    const Result prepared(PQprepare(session_.get(), name.c_str(), sql.c_str(), count, types.data()), PQclear);
    if (PQresultStatus(prepared.get()) != PGRES_COMMAND_OK) return outcome_of(prepared.get(), session_.get());
    prepared_.push_back(name);
  }
  std::vector<const char*> texts;
  std::vector<int> lengths;
  for (const auto* value : values) {
    texts.push_back(value->bytes().data());
    lengths.push_back(static_cast<int>(value->bytes().size()));
  }
  const std::vector<int> formats(values.size(), 1);
  const Result result(
      PQexecPrepared(session_.get(), name.c_str(), count, texts.data(), lengths.data(), formats.data(), 0),
      PQclear);
  return outcome_of(result.get(), session_.get());
}

std::variant<std::vector<TextRows>, StatementFailure> BinarySession::transact(
    const std::vector<Statement>& statements) {
  auto* const session = session_.get();
  const StatementFailure lost{.message = "the session has ended"};
  if (PQenterPipelineMode(session) != 1) return lost;
  bool is_sent = send(session, {.sql = "BEGIN"});
  for (const auto& statement : statements)
    is_sent = is_sent && send(session, statement);
  if (!is_sent || !send(session, {.sql = "COMMIT"}) || PQpipelineSync(session) != 1) {
    // What was sent may run or not; nobody can speak with this session any more.
    PQfinish(session_.release());
    session_.reset(PQconnectStart("host=/nonexistent"));
    return lost;
  }
  std::vector<TextRows> rows;
  std::optional<StatementFailure> failure;
  // A statement has one result and then none; the end of all is one of its own.
  for (std::size_t turn = 0; turn < statements.size() + 2; ++turn) {
    const Result result(PQgetResult(session), PQclear);
    if (PQresultStatus(result.get()) != PGRES_PIPELINE_ABORTED && !failure) {
      auto outcome = outcome_of(result.get(), session);
      if (auto* failed = std::get_if<StatementFailure>(&outcome)) {
        failure = std::move(*failed);
        failure->statement = turn - 1;
      } else if (turn > 0 && turn <= statements.size()) {
        rows.push_back(std::get<TextRows>(std::move(outcome)));
      }
    }
    if (result) PQclear(PQgetResult(session));
  }
  const Result synchronised(PQgetResult(session), PQclear);
  if (PQresultStatus(synchronised.get()) != PGRES_PIPELINE_SYNC || PQexitPipelineMode(session) != 1)
    return failure && failure->sqlstate.empty() ? *failure : lost;
  if (failure) {
    const Result ended(PQexec(session, "ROLLBACK"), PQclear);
    return *failure;
  }
  return rows;
}

}  // namespace mailroom::db
