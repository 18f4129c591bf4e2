#include "fault/message_load.hpp"

#include <deque>
#include <fmt/format.h>
#include <memory>
#include <random>

#include "db/connection.hpp"

namespace mailroom::test {
namespace {

constexpr int uses_of_a_shared_key = 16;
constexpr int uses_of_a_replaced_key = 6;

struct RollBack {};

}  // namespace

/// A call of mailroom_send().
struct MessageCall {
  std::string subject;
  std::vector<std::string> addresses;
  int send_after_ms = -1;  ///< from now on; negative: at once
  std::string key{};
  bool replaces = false;
};

namespace {

/// The last address is a copy, and the first one is named twice.
std::int64_t send(pqxx::work& transaction, const MessageCall& call) {
  return db::Connection::execute(transaction, R"(
SELECT mailroom_send(ARRAY[$1::text], subject => $3, text => 'about ' || $3,
                     cc => CASE WHEN $2 <> '' THEN ARRAY[$2, 'Twice <' || upper($1) || '>'] END,
                     send_after => CASE WHEN $4::int >= 0 THEN clock_timestamp() + $4::int * interval '1 ms' END,
                     idempotency_key => nullif($5, ''), options => jsonb_build_object('replace', $6::boolean)))",
                                 call.addresses.front(),
                                 call.addresses.size() > 1 ? call.addresses.back() : std::string(),
                                 call.subject, call.send_after_ms, call.key, call.replaces)[0][0]
      .as<std::int64_t>();
}

}  // namespace

/// What one transaction has done, which counts once it is committed.
struct AskedMessages {
  std::vector<MessageCall> calls{};
  std::vector<std::pair<std::string, std::int64_t>> ids{};
  std::vector<std::pair<std::string, std::string>> cancels{};  ///< subject and answer
};

/// One producer, with a session of its own.
class MessageProducer {
 public:
  MessageProducer(MessageLoad& load, int number, std::uint64_t seed)
      : load_(load), random_(seed), name_(fmt::format("p{}-", number)) {}

  /// Plays one transaction, which may fail.
  void act() {
    if (!connection_) connection_ = std::make_unique<db::Connection>(load_.conninfo_, "producer");
    AskedMessages asked;
    bool is_whole = false;
    try {
      connection_->transact([&](pqxx::work& transaction) {
        play(transaction, asked);
        is_whole = true;
      });
      note_commit(asked);
    } catch (const RollBack&) {
      note_rollback(asked);
    } catch (const Error&) {
      // A commit without an answer may have happened.
      is_whole ? note_doubt(asked) : note_rollback(asked);
      throw;
    }
  }

  /// After an error.
  void reconnect() { connection_.reset(); }

  void pause(int most_ms) { std::this_thread::sleep_for(std::chrono::milliseconds(draw(most_ms))); }

 private:
  int draw(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }
  void hold() { pause(150); }

  void play(pqxx::work& transaction, AskedMessages& asked) {
    switch (draw(14)) {
      case 0:
      case 1:
        return ask(transaction, asked, another_call());
      case 2:
        return ask_late(transaction, asked);
      case 3:
        return ask_in_bulk(transaction, asked);
      case 4:
        return ask_between_savepoints(transaction, asked);
      case 5:
        return ask_and_roll_back(transaction, asked);
      case 6:
      case 7:
        return use_shared_key(transaction, asked);
      case 8:
      case 9:
        return replace(transaction, asked);
      case 10:
        return ask(transaction, asked, another_call(draw(2) == 0 ? draw(5) : draw(2500)));
      case 11:
        return ask_and_cancel(transaction, asked);
      default:
        return cancel_earlier(transaction, asked);
    }
  }

  MessageCall another_call(int send_after_ms = -1) {
    const auto number = fmt::format("{}{}", name_, ++last_);
    MessageCall call{
        .subject = number, .addresses = {number + "@test.example"}, .send_after_ms = send_after_ms};
    if (draw(4) == 0) call.addresses.push_back(number + "-copy@test.example");
    return call;
  }

  void ask(pqxx::work& transaction, AskedMessages& asked, const MessageCall& call) {
    asked.calls.push_back(call);
    asked.ids.emplace_back(call.subject, send(transaction, call));
  }

  void ask_late(pqxx::work& transaction, AskedMessages& asked) {
    ask(transaction, asked, another_call());
    ask(transaction, asked, another_call(draw(100)));
    hold();
    ask(transaction, asked, another_call());
  }

  void ask_in_bulk(pqxx::work& transaction, AskedMessages& asked) {
    const int rows = 1 + draw(20);
    db::Connection::execute(transaction, R"(
INSERT INTO mailroom_messages (recipients, subject, text)
SELECT ARRAY[$1 || g || '@test.example'], $1 || g, 'in bulk' FROM generate_series($2::int, $3::int) g)",
                            name_, last_ + 1, last_ + rows);
    for (int i = 0; i < rows; ++i) {
      const auto number = fmt::format("{}{}", name_, ++last_);
      asked.calls.push_back({.subject = number, .addresses = {number + "@test.example"}});
    }
  }

  void ask_between_savepoints(pqxx::work& transaction, AskedMessages& asked) {
    ask(transaction, asked, another_call());
    db::Connection::execute(transaction, "SAVEPOINT half");
    AskedMessages undone;
    ask(transaction, undone, another_call());
    ask(transaction, undone, another_call(draw(500)));
    db::Connection::execute(transaction, "ROLLBACK TO half");
    note_rollback(undone);
    ask(transaction, asked, another_call());
  }

  void ask_and_roll_back(pqxx::work& transaction, AskedMessages& asked) {
    ask(transaction, asked, another_call());
    ask(transaction, asked, another_call(draw(500)));
    if (draw(2) == 0) hold();
    throw RollBack{};
  }

  /// Several producers use the key at once, with the same content; some of them roll back.
  void use_shared_key(pqxx::work& transaction, AskedMessages& asked) {
    const auto key = fmt::format("shared-{}", load_.shared_keys_++ / uses_of_a_shared_key);
    ask(transaction, asked, {.subject = key, .addresses = {key + "@test.example"}, .key = key});
    if (draw(2) == 0) hold();
    if (draw(4) == 0) throw RollBack{};
  }

  void replace(pqxx::work& transaction, AskedMessages& asked) {
    const auto key = fmt::format("replaced-{}", load_.replaced_keys_++ / uses_of_a_replaced_key);
    auto call = another_call(draw(4) == 0 ? -1 : 3000);
    call.key = key;
    call.replaces = true;
    ask(transaction, asked, call);
    if (draw(3) == 0) hold();
    if (draw(5) == 0) throw RollBack{};
  }

  void cancel(pqxx::work& transaction, AskedMessages& asked, const std::string& subject, std::int64_t id) {
    const auto row =
        db::Connection::execute(transaction, "SELECT coalesce(mailroom_cancel($1), 'nothing')", id)[0];
    asked.cancels.emplace_back(subject, row[0].c_str());
  }

  void ask_and_cancel(pqxx::work& transaction, AskedMessages& asked) {
    ask(transaction, asked, another_call(draw(2) == 0 ? -1 : draw(500)));
    const auto [subject, id] = asked.ids.back();
    cancel(transaction, asked, subject, id);
    if (draw(2) == 0) hold();
  }

  /// One cancel in four is rolled back, so that the mail has to be sent.
  void cancel_earlier(pqxx::work& transaction, AskedMessages& asked) {
    if (earlier_.empty()) return ask(transaction, asked, another_call());
    const auto at = earlier_.begin() + draw(static_cast<int>(earlier_.size()));
    const auto [subject, id] = *at;
    earlier_.erase(at);
    cancel(transaction, asked, subject, id);
    if (draw(2) == 0) hold();
    if (draw(4) == 0) throw RollBack{};
  }

  void note_commit(const AskedMessages& asked) {
    const std::lock_guard lock(load_.mutex_);
    auto& notes = load_.notes_;
    for (const auto& call : asked.calls)
      notes.committed[call.subject].insert(call.addresses.begin(), call.addresses.end());
    for (const auto& [subject, id] : asked.ids)
      notes.ids[subject].insert(id);
    for (const auto& [subject, answer] : asked.cancels)
      (answer == "cancelled" ? notes.cancelled : notes.undecided).insert(subject);
    remember(asked);
  }

  void note_rollback(const AskedMessages& asked) {
    const std::lock_guard lock(load_.mutex_);
    for (const auto& call : asked.calls) {
      if (!call.subject.starts_with("shared-")) load_.notes_.rolled_back.insert(call.subject);
    }
  }

  void note_doubt(const AskedMessages& asked) {
    const std::lock_guard lock(load_.mutex_);
    for (const auto& call : asked.calls)
      load_.notes_.undecided.insert(call.subject);
    for (const auto& [subject, answer] : asked.cancels)
      load_.notes_.undecided.insert(subject);
  }

  /// Keeps the last few messages without a key, for cancels.
  void remember(const AskedMessages& asked) {
    if (!asked.cancels.empty()) return;
    for (const auto& each : asked.ids) {
      const bool has_key = std::ranges::any_of(
          asked.calls, [&](const auto& call) { return call.subject == each.first && !call.key.empty(); });
      if (!has_key) earlier_.push_back(each);
    }
    while (earlier_.size() > 4)
      earlier_.pop_front();
  }

  MessageLoad& load_;
  std::mt19937_64 random_;
  std::string name_;
  int last_ = 0;
  std::deque<std::pair<std::string, std::int64_t>> earlier_;
  std::unique_ptr<db::Connection> connection_;
};

MessageLoad::MessageLoad(std::string conninfo, int producers, std::uint64_t seed)
    : conninfo_(std::move(conninfo)) {
  for (int number = 0; number < producers; ++number)
    producers_.emplace_back(
        [this, number, seed] { produce(number, seed + static_cast<std::uint64_t>(number)); });
}

void MessageLoad::produce(int number, std::uint64_t seed) {
  MessageProducer producer(*this, number, seed);
  while (!enough_) {
    try {
      producer.act();
      producer.pause(100);
    } catch (const Error&) {
      producer.reconnect();
      producer.pause(40);
    }
  }
}

void MessageLoad::stop() {
  enough_ = true;
  for (auto& producer : producers_)
    producer.join();
  producers_.clear();
}

}  // namespace mailroom::test
