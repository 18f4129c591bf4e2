// The only place that says a mail is stored, and it does so when the transaction has been committed.

#include "http_door/post_writer.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/json.hpp"
#include "base/text.hpp"
#include "db/errors.hpp"
#include "process/retry.hpp"

namespace mailroom::http_door {
namespace {

/// A key that another session holds must not hold up the others: such a request waits in memory.
constexpr Milliseconds wait_of_group{50};
constexpr Milliseconds next_look{150};
constexpr Milliseconds longest_wait_for_key{10'000};

/// `try again in 17 s; …`: when the limit of a role lets it send again.
int seconds_in(const std::string& hint) {
  const auto begin = std::min(hint.find_first_of("0123456789"), hint.size());
  const auto end = std::min(hint.find_first_not_of("0123456789", begin), hint.size());
  return std::max(1, parse_number<int>(std::string_view(hint).substr(begin, end - begin)).value_or(60));
}

class PostStore : public submission::GroupStore<PostWork> {
 public:
  PostStore(const WriterSetting& setting, std::string role)
      : setting_(setting), role_(std::move(role)), session_(setting.access), retries_(setting.log) {}

  bool store(std::vector<PostWork>& group) override;
  void give_up(const PostWork& work) override {
    refuse(work, {work.may_be_stored ? Problem::not_known : Problem::unavailable, ""});
  }

 private:
  void refuse(const PostWork& work, const Fault& fault) {
    setting_.tell({.request = work.request, .what = fault});
  }
  std::vector<db::Statement> statements_for(const std::vector<PostWork>& group) const;
  void say_stored(const std::vector<PostWork>& group, const std::vector<db::TextRows>& rows);
  void say_batch(const PostWork& work, const db::TextRows& rows);
  void say(const PostWork& work, const std::vector<Stored>& all, std::size_t count);
  Fault fault_of(const PostWork& work, const db::StatementFailure& failure) const;
  /// True if it has its answer.
  bool refused(PostWork& work, const db::StatementFailure& failure);

  const WriterSetting setting_;
  const std::string role_;
  KeyedSession session_;
  bool looks_at_rate_ = false;
  process::RetryLog retries_;
};

/// Those of one mail by one statement, which costs little more than one mail does, and each batch by its own.
std::vector<db::Statement> PostStore::statements_for(const std::vector<PostWork>& group) const {
  std::vector<db::Statement> statements;
  std::string single;
  for (const auto& work : group) {
    if (!work.post.is_batch) {
      single += single.empty() ? '[' : ',';
      // Without the brackets of an array of one.
      single += std::string_view(work.mails).substr(1, work.mails.size() - 2);
      continue;
    }
    statements.push_back(
        {.sql = fmt::format("SELECT place, email_id, problem FROM {}($1::jsonb, $2::boolean)",
                            session_.qualified("mailroom_send_each")),
         .values = {work.mails, work.post.is_permissive ? "true" : "false"}});
  }
  if (!single.empty())
    statements.push_back({.sql = fmt::format("SELECT key, email_id FROM {}($1::jsonb)",
                                             session_.qualified("mailroom_send_many")),
                          .values = {single + "]"}});
  return statements;
}

bool PostStore::store(std::vector<PostWork>& group) {
  std::set<std::string> digests;
  for (const auto& work : group)
    digests.insert(work.credentials.digest);
  looks_at_rate_ = std::ranges::any_of(group, [](const PostWork& work) { return work.credentials.has_rate; });
  auto result = session_.run({digests.begin(), digests.end()}, role_, statements_for(group), wait_of_group,
                             looks_at_rate_);
  if (const auto* away = std::get_if<Away>(&result)) {
    retries_.failed(fmt::format("the mails of {} wait for the database", role_), away->reason, steady_now());
    for (auto& work : group)
      work.may_be_stored = work.may_be_stored || away->may_be_stored;
    return false;
  }
  retries_.worked();
  if (const auto* failure = std::get_if<db::StatementFailure>(&result)) {
    if (group.size() > 1) return true;
    if (refused(group.front(), *failure)) group.clear();
    return true;
  }
  ++setting_.commits;
  say_stored(group, std::get<std::vector<db::TextRows>>(result));
  group.clear();
  return true;
}

/// `rows`: of the statements for the group.
void PostStore::say_stored(const std::vector<PostWork>& group, const std::vector<db::TextRows>& rows) {
  std::map<std::string_view, std::string_view> ids;
  for (const auto& row : rows.back())
    if (const auto key = row.find("key"); key != row.end()) ids.emplace(key->second, row.at("email_id"));
  std::size_t batch = 0;
  for (const auto& work : group) {
    if (work.post.is_batch) {
      say_batch(work, rows[batch++]);
      continue;
    }
    const auto found = ids.find(work.key);
    if (found == ids.end()) {
      refuse(work, {Problem::unavailable, ""});
      continue;
    }
    say(work, {{.id = std::string(found->second)}}, 1);
  }
}

void PostStore::say_batch(const PostWork& work, const db::TextRows& rows) {
  std::vector<Stored> all;
  std::size_t count = 0;
  for (const auto& row : rows) {
    const auto place = parse_number<std::size_t>(row.at("place")).value_or(0);
    all.push_back(
        {.place = work.post.places.at(place), .id = row.at("email_id"), .problem = row.at("problem")});
    count += all.back().problem.empty() ? 1 : 0;
  }
  say(work, all, count);
}

void PostStore::say(const PostWork& work, const std::vector<Stored>& all, std::size_t count) {
  setting_.tell({.request = work.request,
                 .what = setting_.shape.posted(work.post, all),
                 .stored = count,
                 .has_rate = looks_at_rate_,
                 .rate = looks_at_rate_ ? session_.rate() : std::nullopt});
}

bool PostStore::refused(PostWork& work, const db::StatementFailure& failure) {
  if (failure.sqlstate == "55P03" || failure.sqlstate.starts_with("40")) {
    const auto now = steady_now();
    if (now - work.since < longest_wait_for_key) {
      work.not_before = now + next_look;
      return false;
    }
    refuse(work, {work.has_own_key ? Problem::key_is_busy : Problem::unavailable, ""});
    return true;
  }
  refuse(work, fault_of(work, failure));
  return true;
}

Fault PostStore::fault_of(const PostWork& work, const db::StatementFailure& failure) const {
  const auto words =
      failure.hint.empty() ? failure.message : fmt::format("{}; {}", failure.message, failure.hint);
  if (failure.sqlstate == "28000") return {Problem::bad_key, ""};
  if (failure.sqlstate == db::sqlstate::over_limit)
    return {
        .problem = Problem::over_rate, .message = "", .wait = std::chrono::seconds(seconds_in(failure.hint))};
  if (failure.statement < statements_before) {
    setting_.log.error("cannot act as the role of a key",
                       {{"key", work.credentials.id}, {"role", role_}, {"reason", words}});
    return {Problem::bad_key, ""};
  }
  if (failure.sqlstate == "42501") {
    setting_.log.warn("a role may not ask for this",
                      {{"key", work.credentials.id}, {"role", role_}, {"reason", words}});
    return {Problem::no_right, ""};
  }
  if (failure.sqlstate == "23505") return {Problem::other_content, ""};
  if (failure.sqlstate.starts_with("22") || failure.sqlstate.starts_with("23")) {
    const auto place = work.post.is_batch ? parse_number<std::size_t>(failure.detail) : std::nullopt;
    return setting_.shape.refusal(failure.message,
                                  place ? std::optional(work.post.places.at(*place)) : std::nullopt);
  }
  setting_.log.error("the database refuses a mail",
                     {{"role", role_}, {"sqlstate", failure.sqlstate}, {"reason", words}});
  return {Problem::unavailable, ""};
}

}  // namespace

PostWriter::PostWriter(const WriterSetting& setting, const std::string& role)
    : writer_(std::make_unique<PostStore>(setting, role), setting.access.patience) {}

PostWork make_work(std::uint64_t request, const Credentials& credentials, Post post,
                   const std::string& own_key) {
  PostWork work;
  work.request = request;
  work.credentials = credentials;
  work.has_own_key = post.key.has_value();
  work.key = post.key.value_or(own_key);
  auto all = nlohmann::json::array();
  for (std::size_t i = 0; i < post.mails.size(); ++i) {
    auto& mail = post.mails[i];
    // Whatever the length of a batch is, the first that is stored meets another request with the key.
    mail["idempotency_key"] = i == 0 ? work.key : fmt::format("{}\x1f{}", work.key, post.places[i]);
    if (post.is_batch) mail["options"]["batch"] = post.digest;
    all.push_back(std::move(mail));
  }
  post.mails.clear();
  work.mails = plain_json(all);
  work.bytes = work.mails.size();
  work.post = std::move(post);
  return work;
}

}  // namespace mailroom::http_door
