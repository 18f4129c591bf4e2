// What the sink makes of the answers of a carrier that a test plays, without a database.

#include "delivery/delivery_sink.hpp"

#include <atomic>
#include <map>
#include <set>
#include <sstream>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>

#include "base/json.hpp"
#include "compose/encoder.hpp"
#include "compose/line_composer.hpp"
#include "support/catch.hpp"
#include "support/subprocess.hpp"

namespace mailroom::test::delivery_sink_test {

using namespace std::chrono_literals;

namespace {

/// Answers as the test says: at once, or as soon as `held` answers are there.
class PlayedCarrier final : public delivery::Carrier {
 public:
  using Play = std::function<delivery::Answer(const delivery::Message&)>;

  explicit PlayedCarrier(Play play)
      : play_(std::move(play)), ready_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  ~PlayedCarrier() override { close(ready_); }
  PlayedCarrier(const PlayedCarrier&) = delete;
  PlayedCarrier& operator=(const PlayedCarrier&) = delete;

  void submit(delivery::Message message) override {
    auto answer = play_(message);
    answer.id = message.id;
    answer.sink = "played:1";
    answer.ended = std::chrono::floor<Milliseconds>(std::chrono::system_clock::now());
    answers_.push_back(std::move(answer));
    most_ = std::max(most_, answers_.size());
    eventfd_write(ready_, 1);
  }
  int fd() const override { return ready_; }
  std::vector<delivery::Answer> take() override {
    eventfd_t count = 0;
    eventfd_read(ready_, &count);
    if (answers_.size() < held_) return {};
    held_ = 0;
    return std::exchange(answers_, {});
  }
  std::size_t unfinished() const override { return answers_.size(); }
  void cancel() override {}
  std::vector<std::string> endpoints() const override { return {"played:1"}; }
  std::size_t most() const { return most_; }
  void hold(std::size_t answers) { held_ = answers; }

 private:
  Play play_;
  int ready_;
  std::vector<delivery::Answer> answers_;
  std::size_t most_ = 0;
  std::size_t held_ = 0;
};

/// Which threads have told it of an answer.
struct ThreadObserver final : consumer::ConsumerObserver {
  std::set<std::thread::id> threads;
  void answered(const consumer::SinkAnswer& /*answer*/) override {
    threads.insert(std::this_thread::get_id());
  }
};

delivery::Answer verdict(delivery::Verdict what, std::string reply = {}) {
  delivery::Answer answer;
  answer.verdict = what;
  answer.reply = std::move(reply);
  answer.code = what == delivery::Verdict::unavailable || what == delivery::Verdict::unknown ? 0 : 200;
  return answer;
}

delivery::DeliverySink::Options resending() {
  delivery::DeliverySink::Options options;
  options.dispatch.resend_for = 60s;
  return options;
}

struct SinkRig {
  std::ostringstream text;
  Log log{{}, text};
  delivery::DeliveryLog delivery_log{log};
  ThreadObserver observer;
  int stop = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  std::vector<delivery::Message> submitted;
  std::vector<std::string> bodies;
  PlayedCarrier* carrier = nullptr;
  std::unique_ptr<delivery::DeliverySink> sink;
  std::string token = std::string(crypto::token_size, 'a');

  explicit SinkRig(PlayedCarrier::Play play, delivery::DeliverySink::Options options = resending()) {
    auto played = std::make_unique<PlayedCarrier>([this, play](const delivery::Message& message) {
      submitted.push_back(message);
      bodies.emplace_back(message.body);
      return play(message);
    });
    carrier = played.get();
    std::vector<delivery::DeliverySink::Way> ways(1);
    ways[0].carrier = std::move(played);
    make_sink(std::make_unique<compose::LineComposer>(), std::move(ways), options);
  }
  /// With two lanes: tokens with even ids are accepted, those with odd ids answered by `odd`.
  SinkRig(const PlayedCarrier::Play& odd, std::unique_ptr<delivery::Composer> composer,
          delivery::DeliverySink::Options options) {
    std::vector<delivery::DeliverySink::Way> ways(2);
    ways[0].carrier = std::make_unique<PlayedCarrier>(
        [](const delivery::Message&) { return verdict(delivery::Verdict::accepted); });
    ways[1].carrier = std::make_unique<PlayedCarrier>(odd);
    make_sink(std::move(composer), std::move(ways), options);
  }
  /// With mails of which `together` leave in a message, to another side that recognises one that it has.
  static std::unique_ptr<SinkRig> packing(int together, const PlayedCarrier::Play& play);
  void make_sink(std::unique_ptr<delivery::Composer> composer, std::vector<delivery::DeliverySink::Way> ways,
                 delivery::DeliverySink::Options options) {
    options.policy.supersede = false;
    options.policy.resends = 1000;
    sink = std::make_unique<delivery::DeliverySink>(std::move(composer), std::move(ways), options, stop, log,
                                                    delivery_log, observer);
  }
  ~SinkRig() { close(stop); }

  consumer::BatchOutcome hand_over(int tokens, claim::Lease lease = {7, 1, "mailroom"}, int limit = 2) {
    open(1, tokens, lease, limit);
    return sink->finish({});
  }
  /// Shows the sink, by batches that are claimed at once, that two may be open.
  void overlap() {
    // One that the machine delays after the one before speaks against it.
    for (std::int64_t batch = 1; batch <= 100 && sink->most_open() == 1; ++batch)
      hand_over(1, {batch, 1, "mailroom"});
    REQUIRE(sink->most_open() == 2);
    submitted.clear();
    bodies.clear();
  }
  /// Lets it have one batch open, as it does after some that overlap.
  void stay_alone() {
    for (std::int64_t batch = 1; batch <= 100 && sink->most_open() == 2; batch += 2) {
      open(1, 1, {batch, 1, "mailroom"});
      open(2, 1, {batch + 1, 1, "mailroom"});
      sink->finish({});
      sink->finish({});
    }
    REQUIRE(sink->most_open() == 1);
  }
  /// Opens a batch of tokens with ids from `first` on.
  void open(int first, int tokens, const claim::Lease& lease, int limit = 2) {
    sink->begin(lease, limit);
    for (int i = first; i < first + tokens; ++i) {
      claim::TokenRow row;
      row.id = i;
      row.email = "ada@fake.example";
      row.login = "ada";
      row.code = "12345";
      sink->add(row, token);
    }
  }
};

/// A mail for each token; those of every tenth have a file.
class SmallMails final : public delivery::Composer {
 public:
  int begin(const claim::Lease& /*lease*/, int /*limit*/) override { return 1; }
  Added add(const claim::TokenRow& row, std::string_view token, delivery::DeliveryHistory history) override {
    delivery::Composed composed;
    composed.bytes = fmt::format("mail {}\r\n", row.id);
    composed.message.tokens = {row.id};
    composed.message.envelope.to = fmt::format("u{}@mail.example", row.id);
    composed.message.has_files = row.id % 10 == 0;
    composed.tokens.push_back({.history = std::move(history), .text = std::string(token)});
    return composed;
  }
  std::optional<delivery::Composed> finish() override { return std::nullopt; }
};

/// Gives each second token to a lane of its own.
class AlternatingComposer final : public delivery::Composer {
 public:
  int begin(const claim::Lease& lease, int limit) override { return lines_.begin(lease, limit); }
  Added add(const claim::TokenRow& row, std::string_view token, delivery::DeliveryHistory history) override {
    auto added = lines_.add(row, token, std::move(history));
    if (auto* composed = std::get_if<delivery::Composed>(&added))
      composed->lane = static_cast<std::size_t>(row.id % 2);
    return added;
  }
  std::optional<delivery::Composed> finish() override { return lines_.finish(); }

 private:
  compose::LineComposer lines_;
};

std::unique_ptr<SinkRig> SinkRig::packing(int together, const PlayedCarrier::Play& play) {
  auto rig = std::make_unique<SinkRig>(play);
  std::vector<delivery::DeliverySink::Way> ways(1);
  ways[0].carrier = std::make_unique<PlayedCarrier>([at = rig.get(), play](const delivery::Message& message) {
    at->submitted.push_back(message);
    at->bodies.emplace_back(message.body);
    return play(message);
  });
  ways[0].together = together;
  ways[0].recognises = true;
  rig->make_sink(std::make_unique<SmallMails>(), std::move(ways), {.messages = 200});
  return rig;
}

int count_of(const consumer::BatchOutcome& outcome, fate::Outcome state) {
  return static_cast<int>(std::ranges::count(*outcome.outcomes, state, &claim::TokenOutcome::state));
}

}  // namespace

TEST_CASE("lines of a batch have ids of their own, which the attempt does not change") {
  SinkRig rig([](const delivery::Message&) { return verdict(delivery::Verdict::accepted); });
  CHECK(rig.hand_over(5).emitted == 5);
  CHECK(rig.hand_over(5, {7, 2, "mailroom"}).emitted == 5);
  REQUIRE(rig.submitted.size() == 6);
  std::set<std::string> ids;
  for (const auto& message : rig.submitted)
    ids.insert(message.message_id);
  CHECK(ids.size() == 3);
  CHECK(rig.submitted[0].message_id.starts_with("mailroom.7.1."));
  CHECK(rig.submitted[0].message_id.size() == std::string("mailroom.7.1.").size() + 32);
  CHECK(rig.submitted[0].attempt == 1);
  CHECK(rig.submitted[3].attempt == 2);
  CHECK(rig.submitted[0].action == "activation");
  CHECK(rig.submitted[2].tokens == std::vector<std::int64_t>{5});
  CHECK(rig.bodies[2].starts_with(R"({"batch":7,"queue":"mailroom","tokens":[{"id":5,)"));
  CHECK(rig.bodies[2].ends_with("]}"));
}

TEST_CASE("mails leave together, in the order of their tokens, and those with files by themselves") {
  const auto rig =
      SinkRig::packing(4, [](const delivery::Message&) { return verdict(delivery::Verdict::accepted); });
  CHECK(rig->hand_over(13).emitted == 13);
  REQUIRE(rig->submitted.size() == 4);
  std::vector<std::vector<std::int64_t>> packs;
  for (const auto& message : rig->submitted)
    packs.push_back(message.tokens);
  CHECK(packs == std::vector<std::vector<std::int64_t>>{{1, 2, 3, 4}, {5, 6, 7, 8}, {10}, {9, 11, 12, 13}});
  CHECK(rig->submitted[0].mails.size() == 4);
  CHECK(rig->submitted[0].mails[2].envelope.to == "u3@mail.example");
  CHECK(rig->submitted[2].mails.empty());
  CHECK(rig->bodies[0] == "mail 1\r\nmail 2\r\nmail 3\r\nmail 4\r\n");
}

TEST_CASE("the last mails of a batch leave when it is complete, while the one before is still open") {
  const auto rig =
      SinkRig::packing(100, [](const delivery::Message&) { return verdict(delivery::Verdict::accepted); });
  rig->open(1, 3, {7, 1, "mailroom"});
  rig->open(11, 5, {8, 1, "mailroom"});
  REQUIRE(rig->submitted.size() == 1);
  rig->sink->complete();
  REQUIRE(rig->submitted.size() == 2);
  CHECK(rig->submitted[1].tokens == std::vector<std::int64_t>{11, 12, 13, 14, 15});
  CHECK(rig->sink->finish({}).emitted == 3);
  CHECK(rig->sink->finish({}).emitted == 5);
}

TEST_CASE("a batch that is taken over packs the same mails, and what was taken before is taken once") {
  const auto rig = SinkRig::packing(
      4, [](const delivery::Message&) { return verdict(delivery::Verdict::accepted, "id"); });
  rig->hand_over(9, {7, 1, "mailroom"});
  const auto first = std::exchange(rig->bodies, {});
  const auto outcome = rig->hand_over(9, {7, 2, "mailroom", {}, {{"played:1"}}});
  CHECK(rig->bodies == first);
  CHECK(outcome.emitted == 9);
  for (const auto& token : *outcome.outcomes) {
    CHECK(token.unknowns == 0);
    CHECK(token.reply == "id (sent again with the same key, as an answer was lost)");
  }
}

TEST_CASE("each mail of a message has the verdict that the answer names for it") {
  const auto rig = SinkRig::packing(3, [](const delivery::Message& message) {
    auto answer = verdict(delivery::Verdict::accepted);
    answer.tokens = {{1, delivery::Verdict::accepted, "id-1"}, {2, delivery::Verdict::rejected, "no", 422}};
    CHECK(message.tokens.size() == 3);
    return answer;
  });
  const auto outcome = rig->hand_over(3);
  REQUIRE(outcome.outcomes->size() == 3);
  CHECK(outcome.outcomes->at(0).reply == "id-1");
  CHECK(outcome.outcomes->at(1).state == fate::Outcome::rejected);
  CHECK(outcome.outcomes->at(1).code == 422);
  CHECK(outcome.outcomes->at(2).state == fate::Outcome::accepted);
}

TEST_CASE("a claim has room for as many mails as the messages that may be open have") {
  const auto rig =
      SinkRig::packing(100, [](const delivery::Message&) { return verdict(delivery::Verdict::accepted); });
  CHECK(rig->sink->room() == 100);
  rig->stay_alone();
  CHECK(rig->sink->room() == 200);
}

TEST_CASE("a token of another batch or with another text has another message id") {
  const claim::Lease lease{7, 1, "a b.c"};
  CHECK(compose::message_id_of(lease, 1, "x").starts_with("a%20b%2Ec.7.1."));
  CHECK(compose::message_id_of(lease, 1, "x") != compose::message_id_of(lease, 1, "y"));
}

TEST_CASE("no more lines are in flight than allowed") {
  auto options = resending();
  options.dispatch.in_flight = 3;
  SinkRig rig([](const delivery::Message&) { return verdict(delivery::Verdict::accepted); }, options);
  rig.carrier->hold(3);
  CHECK(rig.hand_over(40).emitted == 40);
  CHECK(rig.carrier->most() == 3);
}

TEST_CASE("lines are handed over and answered while the consumer is elsewhere") {
  auto options = resending();
  options.dispatch.in_flight = 2;
  std::atomic<int> submitted = 0;
  SinkRig rig(
      [&](const delivery::Message&) {
        ++submitted;
        return verdict(delivery::Verdict::accepted);
      },
      options);
  rig.open(1, 20, {7, 1, "mailroom"});
  CHECK(eventually([&] { return submitted == 10; }));
  CHECK(rig.observer.threads.empty());
  CHECK(rig.sink->finish({}).emitted == 20);
  CHECK(rig.carrier->most() <= 2);
  CHECK(rig.observer.threads == std::set{std::this_thread::get_id()});
}

TEST_CASE("a line that may have been taken is sent again within the batch") {
  int tries = 0;
  SinkRig rig([&](const delivery::Message&) {
    return verdict(++tries == 1 ? delivery::Verdict::unknown : delivery::Verdict::accepted);
  });
  const auto outcome = rig.hand_over(2);
  CHECK(outcome.emitted == 2);
  REQUIRE(rig.submitted.size() == 2);
  CHECK(rig.submitted[0].message_id == rig.submitted[1].message_id);
  CHECK(rig.submitted[1].attempt == 2);
  CHECK(outcome.outcomes->front().unknowns == 1);
}

TEST_CASE("a line that may have been taken stays unknown, whatever follows") {
  auto options = resending();
  options.dispatch.resend_for = 1s;
  int tries = 0;
  SinkRig rig(
      [&](const delivery::Message&) {
        return verdict(++tries == 1 ? delivery::Verdict::unknown : delivery::Verdict::unavailable, "gone");
      },
      options);
  const auto outcome = rig.hand_over(2);
  CHECK(outcome.emitted == 0);
  CHECK(count_of(outcome, fate::Outcome::deferred) == 2);
  CHECK(outcome.outcomes->front().unknowns == 1);
  CHECK(tries >= 2);
}

TEST_CASE("when the receiver is unavailable the rest goes back to the queue, and no attempt counts") {
  auto options = resending();
  options.dispatch.in_flight = 1;
  SinkRig rig([](const delivery::Message&) { return verdict(delivery::Verdict::unavailable, "down"); },
              options);
  const auto outcome = rig.hand_over(20);
  CHECK(rig.submitted.size() == 1);
  CHECK(count_of(outcome, fate::Outcome::deferred) == 20);
  for (const auto& each : *outcome.outcomes)
    CHECK(each.attempts == 0);
  CHECK_FALSE(rig.sink->is_ready());
  CHECK(rig.sink->claims_from() > std::chrono::steady_clock::now());
  CHECK(rig.text.str().find("the sink is unavailable") != std::string::npos);
}

TEST_CASE("many lines that fail at the same time are one failure") {
  SinkRig rig([](const delivery::Message&) { return verdict(delivery::Verdict::unavailable, "down"); });
  rig.carrier->hold(50);
  rig.hand_over(100);
  CHECK(rig.submitted.size() == 50);
  const auto from = rig.sink->claims_from();
  CHECK(from <= std::chrono::steady_clock::now() + 1s);
}

TEST_CASE("an answer that repeats a token is not recorded") {
  SinkRig rig([](const delivery::Message& message) {
    auto answer = verdict(delivery::Verdict::deferred, "no: " + std::string(message.body));
    answer.tokens.push_back({1, delivery::Verdict::rejected, "token " + std::string(40, 'a')});
    return answer;
  });
  const auto outcome = rig.hand_over(2);
  REQUIRE(outcome.outcomes->size() == 2);
  CHECK(outcome.outcomes->at(0).state == fate::Outcome::rejected);
  CHECK(outcome.outcomes->at(1).state == fate::Outcome::deferred);
  for (const auto& each : *outcome.outcomes)
    CHECK(each.reply == "(not shown: it repeats the token)");
}

TEST_CASE("an answer to a line that is not in flight is ignored") {
  SinkRig rig([](const delivery::Message&) { return verdict(delivery::Verdict::accepted); });
  CHECK(rig.hand_over(3).emitted == 3);
  CHECK(rig.hand_over(3, {8, 1, "mailroom"}).emitted == 3);
}

TEST_CASE("two batches share the lines, and each gets its own outcomes") {
  auto options = resending();
  options.messages = 5;
  options.message_limit = 2;
  std::map<std::int64_t, std::vector<std::int64_t>> tokens;
  SinkRig rig(
      [&](const delivery::Message& message) {
        auto& of_batch = tokens[message.batch];
        of_batch.insert(of_batch.end(), message.tokens.begin(), message.tokens.end());
        return verdict(message.batch == 8 ? delivery::Verdict::rejected : delivery::Verdict::accepted, "so");
      },
      options);
  rig.overlap();
  CHECK(rig.sink->room() == 6);
  rig.open(1, 6, {7, 1, "first"});
  CHECK(rig.sink->room() == 4);
  // The last line is not full.
  rig.open(11, 3, {8, 1, "second"});
  CHECK(rig.sink->room() == 1);
  const auto first = rig.sink->finish({});
  CHECK(first.emitted == 6);
  CHECK(count_of(first, fate::Outcome::accepted) == 6);
  CHECK(tokens[7] == std::vector<std::int64_t>{1, 2, 3, 4, 5, 6});
  const auto second = rig.sink->finish({});
  CHECK(second.emitted == 0);
  CHECK(count_of(second, fate::Outcome::rejected) == 3);
  CHECK(tokens[8] == std::vector<std::int64_t>{11, 12, 13});
  REQUIRE(rig.submitted.size() == 5);
  CHECK(rig.submitted[3].message_id.starts_with("second.8.1."));
}

TEST_CASE("the next claim may be made while a batch is added, once the one before is done") {
  auto options = resending();
  options.messages = 10;
  SinkRig rig([](const delivery::Message&) { return verdict(delivery::Verdict::accepted); }, options);
  rig.stay_alone();
  rig.open(1, 4, {7, 1, "mailroom"}, 1);
  // Only beside another one.
  CHECK_FALSE(rig.sink->takes_ahead());
  rig.sink->finish({});
  rig.overlap();
  rig.open(1, 4, {7, 1, "mailroom"}, 1);
  CHECK(rig.sink->takes_ahead());
  CHECK(rig.sink->room() == 6);
  rig.sink->finish({});
  rig.overlap();
  rig.carrier->hold(4);
  rig.open(11, 3, {8, 1, "mailroom"}, 1);
  rig.open(21, 1, {9, 1, "mailroom"}, 1);
  // The three of the one before, and one, are all answered together.
  const auto until = steady_now() + 10s;
  while (!rig.sink->takes_ahead() && steady_now() < until)
    std::this_thread::sleep_for(1ms);
  CHECK(rig.sink->takes_ahead());
  CHECK(rig.sink->finish({}).emitted == 3);
  CHECK(rig.sink->takes_ahead());
  CHECK(rig.sink->finish({}).emitted == 1);
}

TEST_CASE("a batch of which not all tokens could be added is forgotten, and none gets its outcomes") {
  SinkRig rig([](const delivery::Message& message) {
    return verdict(message.batch == 8 && message.attempt == 1 ? delivery::Verdict::rejected
                                                              : delivery::Verdict::accepted);
  });
  const auto ids_of = [](const consumer::BatchOutcome& outcome) {
    std::vector<std::int64_t> ids;
    for (const auto& each : *outcome.outcomes)
      ids.push_back(each.token);
    return ids;
  };
  rig.open(1, 2, {7, 1, "mailroom"});
  // The session ends before the last token is read, which would have filled the second line.
  rig.open(3, 3, {8, 1, "mailroom"});
  rig.sink->forget();
  rig.open(3, 4, {8, 2, "mailroom"});
  CHECK(ids_of(rig.sink->finish({})) == std::vector<std::int64_t>{1, 2});
  const auto again = rig.sink->finish({});
  CHECK(ids_of(again) == std::vector<std::int64_t>{3, 4, 5, 6});
  CHECK(count_of(again, fate::Outcome::accepted) == 4);
  REQUIRE(rig.submitted.size() == 4);
  CHECK(rig.submitted[1].tokens == std::vector<std::int64_t>{3, 4});
  CHECK(rig.submitted[3].tokens == std::vector<std::int64_t>{5, 6});
}

TEST_CASE("what has not left of a batch that is forgotten does not leave") {
  SinkRig rig([](const delivery::Message&) { return verdict(delivery::Verdict::accepted); });
  rig.carrier->hold(1000);
  rig.open(1, 100, {7, 1, "mailroom"}, 1);
  rig.sink->forget();
  rig.carrier->hold(0);
  CHECK(rig.hand_over(1, {8, 1, "mailroom"}).emitted == 1);
  const auto left = std::ranges::count(rig.submitted, 7, &delivery::Message::batch);
  CHECK(left == delivery::Dispatcher::Options().in_flight);
}

TEST_CASE("what one lane turns away leaves the others their share of the next claim") {
  auto options = resending();
  options.messages = 10;
  SinkRig rig([](const delivery::Message&) { return verdict(delivery::Verdict::unavailable, "down"); },
              std::make_unique<AlternatingComposer>(), options);
  CHECK(rig.hand_over(2, {7, 1, "mailroom"}, 1).emitted == 1);
  rig.open(11, 6, {8, 1, "mailroom"}, 1);
  CHECK(rig.sink->room() == 7);
  const auto outcome = rig.sink->finish({});
  CHECK(count_of(outcome, fate::Outcome::accepted) == 3);
  CHECK(count_of(outcome, fate::Outcome::deferred) == 3);
}

TEST_CASE("a claim of one line is as large as its limit says, whatever the last one was") {
  auto options = resending();
  options.messages = 1;
  options.message_limit = 500;
  SinkRig rig([](const delivery::Message&) { return verdict(delivery::Verdict::accepted); }, options);
  CHECK(rig.sink->most_open() == 1);
  rig.hand_over(2, {7, 1, "mailroom"}, 2);
  CHECK(rig.sink->room() >= 500);
  rig.open(11, 2, {8, 1, "mailroom"}, 500);
  CHECK(rig.sink->room() == 0);
  CHECK(rig.sink->finish({}).emitted == 2);
}

TEST_CASE("lines of a large batch are handed over as they were composed, also again") {
  std::map<std::int64_t, int> tries;
  SinkRig rig([&](const delivery::Message& message) {
    return verdict(tries[message.id]++ == 0 && message.id % 5 == 0 ? delivery::Verdict::unknown
                                                                   : delivery::Verdict::accepted);
  });
  constexpr int tokens = 150;
  const std::string text(50'000, 'b');
  rig.sink->begin({7, 1, "mailroom"}, 100);
  for (int i = 1; i <= tokens; ++i) {
    const claim::MessageContent message{.id = i, .recipients = {"ada@fake.example"}, .text = text};
    claim::TokenRow row;
    row.id = i;
    row.email = "ada@fake.example";
    row.content = &message;
    rig.sink->add(row, "");
  }
  const auto outcome = rig.sink->finish({});
  CHECK(count_of(outcome, fate::Outcome::accepted) == tokens);
  std::set<std::int64_t> seen;
  std::set<std::string> ids;
  for (std::size_t i = 0; i < rig.bodies.size(); ++i) {
    CHECK(rig.bodies[i].size() <= compose::longest_line);
    const auto line = parse_json(rig.bodies[i]);
    REQUIRE(line.at("tokens").size() == rig.submitted[i].tokens.size());
    for (std::size_t k = 0; k < rig.submitted[i].tokens.size(); ++k) {
      CHECK(line.at("tokens")[k].at("id") == rig.submitted[i].tokens[k]);
      CHECK(line.at("tokens")[k].at("message").at("text") == text);
      seen.insert(rig.submitted[i].tokens[k]);
    }
    ids.insert(rig.submitted[i].message_id);
  }
  CHECK(seen.size() == tokens);
  CHECK(ids.size() == tokens / 2);
  CHECK(rig.bodies.size() > ids.size());
}

}  // namespace mailroom::test::delivery_sink_test
