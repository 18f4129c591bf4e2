// One interface to libpqxx 6 and 7, which Debian 12 and 13 ship.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <pqxx/pqxx>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#if PQXX_VERSION_MAJOR < 7
#include <pqxx/stream_from>
#endif

#if PQXX_VERSION_MAJOR > 7 || (PQXX_VERSION_MAJOR == 7 && PQXX_VERSION_MINOR >= 10)
#define MAILROOM_PQXX_7_10
#endif

namespace mailroom::db {

/// Splits one line of COPY's text format (PostgreSQL's manual, COPY, "Text Format"), without its newline,
/// into fields. Unescapes each field in place in `line` and sets `fields` to views of the results; a null is
/// empty. Throws std::invalid_argument if the number of fields differs or an escape is incomplete.
void split_copy_line(std::span<char> line, std::span<std::string_view> fields);

}  // namespace mailroom::db

/// Differences between the versions of libpqxx. No other file checks the version.
namespace mailroom::db::pqxx_compat {

/// One field of a streamed row, valid until the next row is read. A null is empty.
struct StreamedField {
  std::string_view text;
};

template <std::size_t /*column*/>
using FieldAt = StreamedField;

}  // namespace mailroom::db::pqxx_compat

#if PQXX_VERSION_MAJOR >= 7
// libpqxx 7 streams only types that it can convert to, and has no conversion to a view.
namespace pqxx {

template <>
struct nullness<mailroom::db::pqxx_compat::StreamedField> {
  static constexpr bool has_null = true;
  static constexpr bool always_null = false;
  static constexpr mailroom::db::pqxx_compat::StreamedField null() noexcept { return {}; }
  static constexpr bool is_null(const mailroom::db::pqxx_compat::StreamedField& field) noexcept {
    return field.text.data() == nullptr;
  }
};

template <>
struct string_traits<mailroom::db::pqxx_compat::StreamedField> {
  static mailroom::db::pqxx_compat::StreamedField from_string(std::string_view text) noexcept {
    return {text};
  }
};

}  // namespace pqxx
#endif

namespace mailroom::db::pqxx_compat {

/// Runs one statement with bound values; std::nullopt is bound as NULL.
template <typename... Arguments>
pqxx::result execute(pqxx::transaction_base& transaction, const std::string& sql,
                     const Arguments&... arguments) {
#ifdef MAILROOM_PQXX_7_10
  return transaction.exec(sql, pqxx::params{arguments...});
#else
  return transaction.exec_params(sql, arguments...);
#endif
}

/// As execute(), for a prepared statement.
template <typename... Arguments>
pqxx::result execute_prepared(pqxx::transaction_base& transaction, const std::string& name,
                              const Arguments&... arguments) {
#ifdef MAILROOM_PQXX_7_10
  return transaction.exec(pqxx::prepped{name}, pqxx::params{arguments...});
#else
  return transaction.exec_prepared(name, arguments...);
#endif
}

/// Streams the rows of `query` by COPY. Calls `each` with an array of `columns` views, valid during the call.
template <std::size_t columns, typename Each>
void stream(pqxx::transaction_base& transaction, const std::string& query, const Each& each) {
  std::array<std::string_view, columns> fields;
#if PQXX_VERSION_MAJOR >= 7
  [&]<std::size_t... index>(std::index_sequence<index...>) {
    for (const auto& row : transaction.stream<FieldAt<index>...>(query)) {
      ((fields[index] = std::get<index>(row).text), ...);
      each(fields);
    }
  }
  (std::make_index_sequence<columns>());
#else
  // The argument of libpqxx 6 is a table name, which it passes on unquoted, so a query in parentheses works.
  pqxx::stream_from stream(transaction, "(" + query + ")");
  for (std::string line; stream.get_raw_line(line);) {
    if (line.ends_with('\n')) line.pop_back();
    split_copy_line(line, fields);
    each(fields);
  }
  stream.complete();
#endif
}

/// Called with the payload of each notification, and whether the session itself has sent it.
using Receive = std::function<void(const std::string& payload, bool is_own)>;

/// Receives the notifications on `channel`. Must not outlive `session`.
#ifdef MAILROOM_PQXX_7_10
class Subscription {
 public:
  Subscription(pqxx::connection& session, const std::string& channel, Receive receive) {
    session.listen(channel, [&session, receive = std::move(receive)](const pqxx::notification& arrived) {
      receive(std::string(arrived.payload), arrived.backend_pid == session.backendpid());
    });
  }
};
#else
class Subscription final : public pqxx::notification_receiver {
 public:
  Subscription(pqxx::connection& session, const std::string& channel, Receive receive)
      : pqxx::notification_receiver(session, channel), receive_(std::move(receive)) {}
  void operator()(const std::string& payload, int backend_pid) override {
    receive_(payload, backend_pid == conn().backendpid());
  }

 private:
  Receive receive_;
};
#endif

/// libpqxx 6 would silently open a new session when one has ended.
inline void forbid_silent_reconnection([[maybe_unused]] pqxx::connection& session) {
#if PQXX_VERSION_MAJOR < 7
#include <pqxx/internal/ignore-deprecated-pre.hxx>
  session.inhibit_reactivation(true);
#include <pqxx/internal/ignore-deprecated-post.hxx>
#endif
}

}  // namespace mailroom::db::pqxx_compat

#undef MAILROOM_PQXX_7_10
