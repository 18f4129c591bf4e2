// Each is a transaction; that of an end may take several, since a batch that has the mail must end first.

#include "http_door/operations.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <thread>
#include <utility>

#include "base/json.hpp"
#include "base/text.hpp"

namespace mailroom::http_door {
namespace {

using Result = std::variant<db::TextRows, Fault>;

constexpr Milliseconds wait_for_locks{8000};
constexpr Milliseconds wait_for_batch{10'000};
constexpr Milliseconds next_look_at_batch{250};

/// As to_jsonb() has it, but with times as PostgreSQL writes them.
constexpr const char* row_of_mail =
    "to_jsonb(e) - 'message' || jsonb_build_object('created_at', e.created_at::text, 'send_after', e.send_after::text) AS mail";

class Asker {
 public:
  Asker(const Credentials& credentials, KeyedSession& session)
      : credentials_(credentials), session_(session) {}

  Result ask(const std::string& sql, std::vector<std::string> values) {
    auto result = session_.run({credentials_.digest}, credentials_.role,
                               {{.sql = sql, .values = std::move(values)}}, wait_for_locks);
    if (std::holds_alternative<Away>(result)) return Fault{Problem::unavailable, ""};
    if (const auto* failure = std::get_if<db::StatementFailure>(&result)) {
      if (failure->sqlstate == "28000" || failure->statement < statements_before)
        return Fault{Problem::bad_key, ""};
      if (failure->sqlstate == "P0002") return Fault{Problem::no_such_message, ""};
      if (failure->sqlstate == "42501") return Fault{Problem::no_right, ""};
      return Fault{Problem::unavailable, ""};
    }
    return std::move(std::get<std::vector<db::TextRows>>(result).front());
  }
  std::string name(std::string_view function) const { return session_.qualified(function); }

 private:
  const Credentials& credentials_;
  KeyedSession& session_;
};

struct AnswerTo {
  const Shape& shape;
  const Defaults& defaults;
  Asker asker;

  std::variant<Answer, Fault> operator()(const Post& /*post*/) { return Fault{Problem::unavailable, ""}; }
  std::variant<Answer, Fault> operator()(const Get& get);
  std::variant<Answer, Fault> operator()(const List& list);
  std::variant<Answer, Fault> operator()(const Move& move);
  std::variant<Answer, Fault> operator()(const Cancel& cancel);
};

std::variant<Answer, Fault> AnswerTo::operator()(const Get& get) {
  auto result = asker.ask(
      fmt::format("SELECT {} FROM {}($1::uuid) e", row_of_mail, asker.name("mailroom_email")), {get.id});
  if (auto* fault = std::get_if<Fault>(&result)) return std::move(*fault);
  const auto& rows = std::get<db::TextRows>(result);
  if (rows.empty()) return Fault{Problem::no_such_message, ""};
  return shape.got(parse_json(rows.front().at("mail")), defaults);
}

std::variant<Answer, Fault> AnswerTo::operator()(const List& list) {
  auto result =
      asker.ask(fmt::format("SELECT {} FROM {}($1::integer, nullif($2, '')::uuid, nullif($3, '')::uuid) e",
                            row_of_mail, asker.name("mailroom_emails")),
                {std::to_string(list.limit + 1), list.older_than, list.newer_than});
  if (auto* fault = std::get_if<Fault>(&result)) return std::move(*fault);
  auto& rows = std::get<db::TextRows>(result);
  const bool has_more = rows.size() > static_cast<std::size_t>(list.limit);
  // One more than was asked for: the oldest, or of newer ones the newest.
  if (has_more) rows.erase(list.newer_than.empty() ? std::prev(rows.end()) : rows.begin());
  auto mails = nlohmann::json::array();
  for (const auto& row : rows)
    mails.push_back(parse_json(row.at("mail")));
  return shape.listed(mails, has_more, defaults);
}

std::variant<Answer, Fault> AnswerTo::operator()(const Move& move) {
  auto result = asker.ask(fmt::format("SELECT {}(e.message, $2::timestamptz) AS moved FROM {}($1::uuid) e",
                                      asker.name("mailroom_reschedule"), asker.name("mailroom_email")),
                          {move.id, precise_moment_text(move.to)});
  if (auto* fault = std::get_if<Fault>(&result)) return std::move(*fault);
  const auto& rows = std::get<db::TextRows>(result);
  if (rows.empty()) return Fault{Problem::no_such_message, ""};
  if (rows.front().at("moved") == "t") return shape.changed(lower_case(move.id));
  return Fault{Problem::bad_value, "This email is not scheduled any more: it has left, or was cancelled"};
}

/// How many recipients have a mail, and how many may still get it.
struct Reach {
  std::size_t all = 0;
  std::size_t have = 0;
  std::size_t open = 0;
};

Reach reach_of(const db::TextRows& rows) {
  Reach reach;
  for (const auto& row : rows) {
    const auto& state = row.at("state");
    ++reach.all;
    if (is_one_of(state, {"accepted", "delivered", "bounced", "complained", "unknown", "emitted"}))
      ++reach.have;
    if (state == "leased") ++reach.open;
  }
  return reach;
}

std::variant<Answer, Fault> AnswerTo::operator()(const Cancel& cancel) {
  auto result = asker.ask(fmt::format("SELECT e.message, {}(e.message) AS result FROM {}($1::uuid) e",
                                      asker.name("mailroom_cancel"), asker.name("mailroom_email")),
                          {cancel.id});
  if (auto* fault = std::get_if<Fault>(&result)) return std::move(*fault);
  const auto& rows = std::get<db::TextRows>(result);
  if (rows.empty()) return Fault{Problem::no_such_message, ""};
  if (rows.front().at("result") == "cancelled") return shape.changed(lower_case(cancel.id));
  const auto message = rows.front().at("message");
  const auto end = steady_now() + wait_for_batch;
  for (;;) {
    auto states = asker.ask(
        fmt::format("SELECT state FROM {}($1::bigint)", asker.name("mailroom_message_status")), {message});
    if (auto* fault = std::get_if<Fault>(&states)) return std::move(*fault);
    const auto reach = reach_of(std::get<db::TextRows>(states));
    if (reach.open == 0 && reach.have == 0) return shape.changed(lower_case(cancel.id));
    if (reach.open == 0)
      return Fault{
          Problem::bad_value,
          fmt::format(
              "This email cannot be cancelled any more: it has left for {} of {} recipients, and the others get none",
              reach.have, reach.all)};
    if (steady_now() >= end)
      return Fault{
          Problem::bad_value,
          fmt::format(
              "This email is just being sent to {} of {} recipients, and may arrive; the others get none",
              reach.open + reach.have, reach.all)};
    std::this_thread::sleep_for(next_look_at_batch);
  }
}

}  // namespace

std::variant<Answer, Fault> answer_to(const Operation& operation, const Credentials& credentials,
                                      const Shape& shape, const Defaults& defaults, KeyedSession& session) {
  return std::visit(AnswerTo{shape, defaults, Asker(credentials, session)}, operation);
}

}  // namespace mailroom::http_door
