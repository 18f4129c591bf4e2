// A session by libpq without waiting: libpqxx has no statement that can be left waiting for a lock.

#include "fault/stepping_session.hpp"

#include <libpq-fe.h>
#include <poll.h>
#include <stdexcept>

namespace mailroom::test {

std::string ServerAnswer::value() const {
  if (rows.empty() || rows[0].empty()) return {};
  return rows[0].begin()->second.value_or("null");
}

SteppingSession::SteppingSession(const std::string& conninfo)
    : connection_(PQconnectdb(conninfo.c_str()), PQfinish) {
  if (PQstatus(connection_.get()) != CONNECTION_OK)
    throw std::runtime_error(std::string("no session: ") + PQerrorMessage(connection_.get()));
  PQsetNoticeProcessor(
      connection_.get(), [](void*, const char*) {}, nullptr);
  pid_ = PQbackendPID(connection_.get());
}

void SteppingSession::begin(int sent) {
  if (sent == 0) throw std::runtime_error(PQerrorMessage(connection_.get()));
  answer_ = {};
  is_under_way_ = true;
}

void SteppingSession::send(const std::string& sql) {
  begin(PQsendQuery(connection_.get(), sql.c_str()));
}

void SteppingSession::send_prepared(const std::string& name, const Values& values) {
  std::vector<const char*> texts;
  for (const auto& value : values)
    texts.push_back(value ? value->c_str() : nullptr);
  begin(PQsendQueryPrepared(connection_.get(), name.c_str(), static_cast<int>(texts.size()), texts.data(),
                            nullptr, nullptr, 0));
}

ServerAnswer SteppingSession::run(const std::string& sql) {
  send(sql);
  while (!ends_within(Milliseconds(60'000))) {
  }
  if (!answer_.error.empty()) throw std::runtime_error(answer_.error + ", of: " + sql);
  return answer_;
}

bool SteppingSession::ends_within(Milliseconds patience) {
  if (!is_under_way_) return true;
  auto* connection = connection_.get();
  for (;;) {
    PQconsumeInput(connection);
    while (PQisBusy(connection) == 0) {
      auto* result = PQgetResult(connection);
      if (result == nullptr) {
        is_under_way_ = false;
        return true;
      }
      keep(result);
      PQclear(result);
    }
    pollfd socket{PQsocket(connection), POLLIN, 0};
    if (poll(&socket, 1, static_cast<int>(patience.count())) <= 0) return false;
  }
}

void SteppingSession::keep(pg_result* result) {
  const auto status = PQresultStatus(result);
  if (status == PGRES_FATAL_ERROR) {
    const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char* message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    answer_.error = std::string(state != nullptr ? state : "no SQLSTATE") + " " +
                    (message != nullptr ? message : PQresultErrorMessage(result));
    return;
  }
  answer_.tag = PQcmdStatus(result);
  if (status != PGRES_TUPLES_OK) return;
  answer_.rows.clear();
  for (int i = 0; i < PQntuples(result); ++i) {
    ServerAnswer::Row row;
    for (int k = 0; k < PQnfields(result); ++k) {
      if (PQgetisnull(result, i, k) != 0)
        row.emplace(PQfname(result, k), std::nullopt);
      else
        row.emplace(PQfname(result, k), PQgetvalue(result, i, k));
    }
    answer_.rows.push_back(std::move(row));
  }
}

bool SteppingSession::take_notifications() {
  run("SELECT 1");
  bool was_notified = false;
  while (auto* notification = PQnotifies(connection_.get())) {
    was_notified = true;
    PQfreemem(notification);
  }
  return was_notified;
}

bool SteppingSession::is_in_transaction() const {
  return PQtransactionStatus(connection_.get()) != PQTRANS_IDLE;
}

}  // namespace mailroom::test
