// The worker threads: each takes a mail, delivers it over its own connection and keeps the answer.

#include "carriers/smtp/carrier.hpp"

#include <algorithm>
#include <curl/curl.h>
#include <exception>
#include <fmt/format.h>
#include <span>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/threads.hpp"
#include "carriers/ses/message_id.hpp"
#include "carriers/smtp/check.hpp"
#include "carriers/smtp/relay/configured_relays.hpp"

namespace mailroom::smtp {
namespace {

/// Of a connection: some networks forget it a few minutes later.
constexpr Milliseconds longest_idle{60'000};

/// How long the mails that wait for a connection take at most, as long as all are accepted.
constexpr std::chrono::microseconds longest_queue{20'000};
/// Mails that wait for each connection.
constexpr int fewest_ahead = 2;
constexpr int most_ahead = 16;

/// Calls `settle` once for each of `mails`.
void attempt(RelaySession& session, std::span<const delivery::Message> mails, const Settle& settle) {
  std::vector<bool> is_settled(mails.size());
  const auto settle_once = [&](std::size_t i, delivery::Answer answer) {
    is_settled[i] = true;
    settle(i, std::move(answer));
  };
  try {
    session.deliver(mails, settle_once);
  } catch (const std::exception& error) {
    // Out of memory, perhaps after the mail was sent.
    for (std::size_t i = 0; i < mails.size(); ++i) {
      if (is_settled[i]) continue;
      settle_once(i, {.verdict = delivery::Verdict::unknown,
                      .sink = session.url().name(),
                      .reply = printable(error.what())});
    }
  }
}

}  // namespace

SmtpCarrier::SmtpCarrier(Options options)
    : options_(std::move(options)), ahead_(fewest_ahead * options_.connections) {
  limits_.assign(options_.relays.size(), options_.connections);
  has_failed_.assign(options_.relays.size(), false);
  for (int i = 0; i < options_.connections; ++i) {
    auto& worker = *workers_.emplace_back(std::make_unique<Worker>());
    for (const auto& url : options_.relays)
      worker.connections.push_back({.session = std::make_unique<RelaySession>(url, options_.relay)});
  }
  const BlockedSignals blocked;
  for (const auto& worker : workers_)
    worker->thread = std::thread([this, &worker = *worker] { work(worker); });
}

SmtpCarrier::~SmtpCarrier() {
  cancel();
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
    for (const auto& worker : workers_)
      worker->wakes.notify_one();
  }
  for (const auto& worker : workers_)
    worker->thread.join();
}

std::vector<std::string> SmtpCarrier::endpoints() const {
  std::vector<std::string> names;
  for (const auto& relay : options_.relays)
    names.push_back(relay.name());
  return names;
}

void SmtpCarrier::submit(delivery::Message message) {
  std::unique_lock lock(mutex_);
  ++unanswered_;
  // Whoever submits has not seen that the relay is unavailable.
  if (has_failed_[message.endpoint]) return keep({.id = message.id, .was_tried = false});
  auto* const worker = idle_worker(message.endpoint);
  if (worker == nullptr) return queue_.push_back(std::move(message));
  give(*worker, std::move(message));
  // A thread that is woken with the mutex held only waits for it.
  lock.unlock();
  worker->wakes.notify_one();
}

SmtpCarrier::Worker* SmtpCarrier::idle_worker(std::size_t endpoint) {
  Worker* idle = nullptr;
  for (const auto& worker : workers_) {
    if (worker->is_busy) continue;
    if (worker->connections[endpoint].is_open) return worker.get();
    idle = worker.get();
  }
  return idle;
}

void SmtpCarrier::give(Worker& worker, delivery::Message message) {
  worker.next = std::move(message);
  worker.is_busy = true;
}

std::vector<delivery::Answer> SmtpCarrier::take() {
  const std::lock_guard lock(mutex_);
  ready_.clear();
  has_failed_.assign(has_failed_.size(), false);
  return std::exchange(answers_, {});
}

void SmtpCarrier::call_below(std::size_t unanswered) {
  const std::lock_guard lock(mutex_);
  call_below_ = unanswered;
  if (!answers_.empty() && unanswered_ < call_below_) ready_.signal();
}

std::size_t SmtpCarrier::unfinished() const {
  const std::lock_guard lock(mutex_);
  return unanswered_ + answers_.size();
}

void SmtpCarrier::cancel() {
  std::unique_lock lock(mutex_);
  for (; !queue_.empty(); queue_.pop_front())
    keep({.id = queue_.front().id, .was_tried = false});
  if (unanswered_ == 0) return;
  const auto each_session = [&](auto visit) {
    for (const auto& worker : workers_) {
      for (auto& connection : worker->connections)
        visit(*connection.session);
    }
  };
  each_session([](RelaySession& session) { session.interrupt(); });
  cancelled_.wait(lock, [this] { return unanswered_ == 0; });
  each_session([](RelaySession& session) { session.resume(); });
}

void SmtpCarrier::limit_connections(std::size_t endpoint, int most) {
  const std::lock_guard lock(mutex_);
  limits_[endpoint] = most;
  give_back_untried(endpoint);
  for (const auto& worker : workers_)
    worker->wakes.notify_one();
}

int SmtpCarrier::open_connections(std::size_t endpoint) const {
  return static_cast<int>(std::ranges::count_if(
      workers_, [&](const auto& worker) { return worker->connections[endpoint].is_open; }));
}

bool SmtpCarrier::has_to_rest(const Worker& worker) const {
  const bool is_idle_for_long = steady_now() >= worker.idle_since + longest_idle;
  for (std::size_t i = 0; i < limits_.size(); ++i) {
    if (worker.connections[i].is_open && (is_idle_for_long || open_connections(i) > limits_[i])) return true;
  }
  return false;
}

void SmtpCarrier::work(Worker& worker) {
  std::unique_lock lock(mutex_);
  while (!has_ended_) {
    if (worker.next) {
      deliver(worker, lock);
    } else if (has_to_rest(worker)) {
      rest(worker, lock);
    } else if (!queue_.empty()) {
      give(worker, std::move(queue_.front()));
      queue_.pop_front();
    } else if (std::ranges::any_of(worker.connections, &Connection::is_open)) {
      worker.wakes.wait_until(lock, worker.idle_since + longest_idle);
    } else {
      worker.wakes.wait(lock);
    }
  }
}

void SmtpCarrier::rest(Worker& worker, std::unique_lock<std::mutex>& lock) {
  worker.is_busy = true;
  for (auto& connection : worker.connections)
    connection.is_open = connection.works = false;
  lock.unlock();
  for (const auto& connection : worker.connections)
    connection.session->rest();
  lock.lock();
  worker.is_busy = false;
}

void SmtpCarrier::deliver(Worker& worker, std::unique_lock<std::mutex>& lock) {
  const auto mails = taken_by(worker, lock);
  const auto endpoint = mails.front().endpoint;
  auto& connection = worker.connections[endpoint];
  connection.is_open = true;
  lock.unlock();
  auto began = steady_now();
  auto left = mails.size();
  attempt(*connection.session, mails, [&](std::size_t i, delivery::Answer answer) {
    answer.message_id = ses::message_id_of_reply(options_.relays[endpoint].host, answer.reply);
    answer.id = mails[i].id;
    answer.took = steady_now() - std::exchange(began, steady_now());
    answer.ended = wall_now();
    lock.lock();
    if (--left == 0) note_rest(worker, endpoint);
    note_answer(worker, endpoint, answer);
    const bool is_unavailable = answer.was_tried && answer.verdict == delivery::Verdict::unavailable;
    look_ahead(answer);
    keep(std::move(answer));
    if (is_unavailable) {
      has_failed_[endpoint] = true;
      give_back_untried(endpoint);
    }
    if (left > 0) lock.unlock();
  });
}

/// The next mail, with others from the queue that its connection may carry in the same round trip. They come
/// one after the other, as they are made: it waits a little for them.
std::vector<delivery::Message> SmtpCarrier::taken_by(Worker& worker, std::unique_lock<std::mutex>& lock) {
  std::vector<delivery::Message> mails;
  mails.push_back(*std::exchange(worker.next, {}));
  const auto endpoint = mails.front().endpoint;
  const auto& session = *worker.connections[endpoint].session;
  const auto window = session.window();
  if (window == 1) return mails;
  if (queue_.size() + 1 < window) worker.wakes.wait_for(lock, session.patience());
  // The other connections have their shares.
  const auto most = std::min(window, queue_.size() / workers_.size() + 2);
  while (mails.size() < most && !queue_.empty() && queue_.front().endpoint == endpoint) {
    mails.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return mails;
}

/// More by one after each mail that is accepted. What a relay refuses may concern others too: whoever submits
/// decides that.
void SmtpCarrier::look_ahead(const delivery::Answer& answer) {
  const int fewest = fewest_ahead * options_.connections;
  if (answer.verdict == delivery::Verdict::accepted) {
    const auto each = std::max(answer.took, std::chrono::nanoseconds(1));
    const auto most = std::clamp<std::int64_t>(longest_queue / each, fewest_ahead, most_ahead);
    ahead_ = std::min(ahead_ + 1, static_cast<int>(most) * options_.connections);
    return;
  }
  ahead_ = fewest;
  for (auto i = static_cast<std::size_t>(fewest); i < queue_.size(); ++i)
    keep({.id = queue_[i].id, .was_tried = false});
  if (queue_.size() > static_cast<std::size_t>(fewest)) queue_.erase(queue_.begin() + fewest, queue_.end());
}

void SmtpCarrier::note_rest(Worker& worker, std::size_t endpoint) {
  worker.is_busy = false;
  worker.idle_since = steady_now();
  worker.window = worker.connections[endpoint].session->window();
  windows_ = 0;
  for (const auto& each : workers_)
    windows_ += 2 * static_cast<int>(each->window);
}

void SmtpCarrier::note_answer(Worker& worker, std::size_t endpoint, delivery::Answer& answer) {
  auto& connection = worker.connections[endpoint];
  if (answer.shows_life()) connection.works = true;
  if (answer.verdict != delivery::Verdict::unavailable) return;
  connection.is_open = connection.works = false;
  answer.other_connections = open_connections(endpoint);
  answer.others_work =
      std::ranges::any_of(workers_, [&](const auto& other) { return other->connections[endpoint].works; });
}

/// What waits for a relay that is unavailable would fail too, and there may be another way.
void SmtpCarrier::give_back_untried(std::size_t endpoint) {
  std::erase_if(queue_, [&](const delivery::Message& message) {
    if (message.endpoint != endpoint) return false;
    keep({.id = message.id, .was_tried = false});
    return true;
  });
}

void SmtpCarrier::keep(delivery::Answer answer) {
  const bool is_accepted = answer.verdict == delivery::Verdict::accepted;
  answers_.push_back(std::move(answer));
  --unanswered_;
  if (unanswered_ == 0) cancelled_.notify_all();
  if (!is_accepted || unanswered_ < call_below_) ready_.signal();
}

std::unique_ptr<delivery::Carrier> make_smtp_carrier(const config::RelayPath& path) {
  auto configured = read_relays(path);
  return std::make_unique<SmtpCarrier>(SmtpCarrier::Options{.relays = std::move(configured.relays),
                                                            .relay = std::move(configured.options),
                                                            .connections = path.connections});
}

std::string smtp_library() {
  return fmt::format("libcurl {}", curl_version_info(CURLVERSION_NOW)->version);
}

extern const carriers::RelayFunctions smtp_carrier;
const carriers::RelayFunctions smtp_carrier{make_smtp_carrier, check_smtp, smtp_library};

}  // namespace mailroom::smtp
