// Faults beside people who unsubscribe: senders and the server are killed while a relay that takes few mails
// a second has a backlog, and links are clicked. The relay is the judge of what left, and when.

#include <array>
#include <csignal>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fault/trial_rig.hpp"
#include "mail/subscription_link.hpp"
#include "support/build_paths.hpp"
#include "support/subprocess.hpp"
#include "support/temporary_directory.hpp"
#include "support/test_queue.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test {
namespace {

/// One may arrive so long after its reader has left: its attempt had begun, and this machine is busy.
constexpr Milliseconds longest_attempt{1000};
constexpr int mails_of_each = 2;  ///< to a person, of a topic

struct Numbers {
  int senders;
  int people;
  int a_second;  ///< mails that the relay takes
  int leavers;
  int kills;  ///< of senders
  int crashes;
};

Numbers numbers_of(const Plan& plan) {
  if (plan.shortened || plan.sabotage != nullptr)
    return {.senders = 4, .people = 150, .a_second = 60, .leavers = 60, .kills = 3, .crashes = 1};
  return {.senders = 8, .people = 5000, .a_second = 50, .leavers = 1000, .kills = 40, .crashes = 6};
}

/// The status of the answer; 0 if none came.
int post_one_click(const std::string& socket_path, const std::string& text) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  socket_path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const timeval patience{.tv_sec = 30, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  const auto request = "POST /u/" + text +
                       " HTTP/1.1\r\nHost: app.example\r\nContent-Type: application/x-www-form-urlencoded\r\n"
                       "Content-Length: 26\r\nConnection: close\r\n\r\nList-Unsubscribe=One-Click";
  int status = 0;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
      send(fd, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size())) {
    std::array<char, 64> answer{};
    if (recv(fd, answer.data(), answer.size() - 1, 0) > 12) status = std::atoi(answer.data() + 9);
  }
  close(fd);
  return status;
}

/// A person and a topic, by the spelling of the address: capitals for the first topic.
using Reader = std::string;

class TopicTrial : public TrialRig {
 public:
  TopicTrial(Cluster& cluster, const Plan& plan)
      : TrialRig(cluster, plan), numbers_(numbers_of(plan)), cluster_(cluster), connection_(connect()) {
    connection_->run(
        "SELECT mailroom_create_topic('news', 'News'), mailroom_create_topic('offers', 'Offers')");
    connection_->run(
        "INSERT INTO mailroom_messages (recipients, subject, text, topic) "
        "SELECT ARRAY[CASE topic WHEN 'news' THEN 'P' ELSE 'p' END || person || '@mail.example'], 's', 't', topic "
        "FROM generate_series(1, $1::int) person, unnest('{news,offers}'::text[]) topic, generate_series(1, $2::int) "
        "ORDER BY random()",
        numbers_.people, mails_of_each);
    home_ = connection_->run("SELECT mailroom_home_name()")[0][0].c_str();
    for (
        const auto& row : connection_->run(
            "SELECT m.recipients[1] AS reader, min(t.id) AS token FROM tokens t JOIN mailroom_messages m ON m.id = "
            "t.message GROUP BY 1"))
      links_[row.text("reader")] = mail::subscription_text({.token = row.number("token")}, home_,
                                                           crypto::Key::from_hex(test_key, "the trial"));
    door_ = std::make_unique<Subprocess>(
        std::vector<std::string>{mailroom_binary, "bounce", "--listen", socket_}, environment(), log_, log_);
    for (int i = 0; i < numbers_.senders; ++i)
      senders_.push_back(hire());
  }

  void play() {
    std::vector<Reader> all;
    for (const auto& [reader, link] : links_)
      all.push_back(reader);
    std::shuffle(all.begin(), all.end(), random());
    const int seconds = numbers_.people * 2 * mails_of_each / numbers_.a_second;
    const int gap = seconds * 800 / numbers_.leavers;
    for (int i = 0; i < numbers_.leavers; ++i) {
      pause(0, 2 * gap);
      if (i % (numbers_.leavers / numbers_.kills) == 1) kill_sender();
      if (i % (numbers_.leavers / numbers_.crashes) == numbers_.leavers / numbers_.crashes / 2) crash();
      leave(all[static_cast<std::size_t>(i)]);
    }
  }

  Outcome finish() {
    connection_ = connect();
    const auto waiting = [&] {
      due_now(*connection_);
      return value<int>(*connection_,
                        "SELECT count(*) FROM tokens t LEFT JOIN mailroom_deliveries d ON d.token = t.id "
                        "WHERE d.state IS NULL OR d.state = 'deferred'") == 0;
    };
    expect(eventually(waiting, std::chrono::seconds(numbers_.people * 8 / numbers_.a_second + 120)),
           "every mail gets its outcome");
    for (const auto& sender : senders_)
      expect(sender->stop() == 0, "a sender that is asked to stop ends with 0");
    door_->signal(SIGTERM);
    expect(door_->wait() == 0, "what serves the links ends with 0");
    judge();
    note_logs({read_file(log_)});
    return outcome_;
  }

 private:
  std::map<std::string, std::string> environment() const {
    return {{"MAILROOM_DATABASE_URL", conninfo()},
            {"MAILROOM_SECRET_KEY", test_key},
            {"MAILROOM_SEND_UNSUBSCRIBE_LINK", "https://app.example/u/{token}"}};
  }

  std::unique_ptr<TestSender> hire() const {
    return std::make_unique<TestSender>(conninfo(), relay_.url(),
                                        std::vector<std::string>{"--batch-limit", "100"}, environment());
  }

  void kill_sender() {
    auto& sender = senders_.at(static_cast<std::size_t>(draw(0, numbers_.senders - 1)));
    sender->process().signal(SIGKILL);
    sender->wait();
    sender = hire();
  }

  void crash() {
    cluster_.stop("immediate");
    pause(0, 300);
    cluster_.start();
  }

  /// Clicks until it is answered with 200, as mail programs do.
  void leave(const Reader& reader) {
    const auto left = [&] { return post_one_click(socket_, links_.at(reader)) == 200; };
    expect(eventually(left, std::chrono::seconds(60)), "a click is answered with 200");
    left_[reader] = wall_now();
  }

  /// At the rate of the relay. Before it waits for its turn, the mail is there.
  RelayAnswer take(const RelayMoment& moment) {
    if (moment.step != RelayStep::end) return {};
    const std::lock_guard lock(mutex_);
    arrivals_[moment.recipient].push_back(wall_now());
    next_ = std::max(next_, steady_now()) + std::chrono::nanoseconds(1'000'000'000 / numbers_.a_second);
    return {.delay = std::chrono::ceil<Milliseconds>(next_ - steady_now())};
  }

  void judge() {
    std::map<Reader, std::map<std::string, int>> states;
    for (
        const auto& row : connection_->run(
            "SELECT m.recipients[1] AS reader, d.state, count(*) AS count FROM mailroom_deliveries d JOIN tokens t ON t.id = "
            "d.token JOIN mailroom_messages m ON m.id = t.message GROUP BY 1, 2"))
      states[row.text("reader")][row.text("state")] = row.number<int>("count");
    auto& tally = outcome_.tally;
    outcome_.rounds = numbers_.leavers;
    int under_way = 0;
    for (const auto& [reader, link] : links_) {
      const auto& arrived = arrivals_[reader];
      auto& state = states[reader];
      tally.committed += mails_of_each;
      tally.emitted += arrived.size();
      const auto left = left_.find(reader);
      if (left == left_.end()) {
        tally.lost += arrived.size() < mails_of_each ? mails_of_each - arrived.size() : 0;
        tally.repeated += arrived.size() > mails_of_each ? arrived.size() - mails_of_each : 0;
        continue;
      }
      const auto late = std::ranges::count_if(arrived, [&](auto at) { return at > left->second; });
      const auto too_late =
          std::ranges::count_if(arrived, [&](auto at) { return at > left->second + longest_attempt; });
      under_way += static_cast<int>(late);
      tally.untimely += static_cast<std::size_t>(too_late);
      if (late > state["accepted"] + state["unknown"]) ++tally.strange;
    }
    expect(tally.untimely == 0,
           fmt::format("no attempt begins after the 200 ({} mails arrived later)", tally.untimely));
    expect(tally.strange == 0,
           fmt::format("an attempt that had begun is on record ({} readers have one that is not)",
                       tally.strange));
    expect(tally.lost == 0, fmt::format("who stays gets all mails ({} are missing)", tally.lost));
    const auto cancelled =
        value<int>(*connection_, "SELECT count(*) FROM mailroom_deliveries WHERE state = 'cancelled'");
    expect(cancelled > 0, "some mails waited for those who left");
    note(fmt::format("{} left, {} mails were under way then, {} were cancelled", left_.size(), under_way,
                     cancelled));
  }

  Numbers numbers_;
  Cluster& cluster_;
  TemporaryDirectory directory_;
  std::string log_ = directory_.path() / "log";
  std::string socket_ = directory_.path() / "door";
  std::mutex mutex_;
  std::map<Reader, std::vector<WallTime>> arrivals_{};
  TimePoint next_{};
  TestRelay relay_{{.play = [this](const RelayMoment& moment) { return take(moment); }}};
  std::unique_ptr<db::Connection> connection_;
  std::string home_{};
  std::map<Reader, std::string> links_{};
  std::map<Reader, WallTime> left_{};  ///< when the 200 had come
  std::unique_ptr<Subprocess> door_{};
  std::vector<std::unique_ptr<TestSender>> senders_{};
};

Outcome people_leave(Cluster& cluster, const Plan& plan) {
  TopicTrial trial(cluster, plan);
  trial.play();
  return trial.finish();
}

}  // namespace

std::vector<Fault> topic_faults() {
  return {{"topics: kills while people leave", "no attempt begins after the 200, and who stays loses nothing",
           1, 1, people_leave}};
}

}  // namespace mailroom::test
