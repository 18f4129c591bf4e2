// Submits mails, waits for the relays, and gives up what is left some seconds after a stop request.

#include "send/mail_sink.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <poll.h>

#include "base/clock.hpp"

namespace mailroom {
namespace {

constexpr Milliseconds slow{200};
constexpr Milliseconds claim_lead{1000};

/// The time until a second since 1970; a day at most.
std::chrono::seconds time_until(std::int64_t second) {
  constexpr std::int64_t day = 86'400;
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  return std::chrono::seconds(std::clamp<std::int64_t>(
      std::min(second, now.time_since_epoch().count() + day) - now.time_since_epoch().count(), 0, day));
}

/// True if `fd` is readable within `duration`.
bool wait_readable(std::array<pollfd, 2>& fds, Milliseconds duration) {
  for (auto& fd : fds)
    fd.revents = 0;
  return poll(fds.data(), fds.size(), static_cast<int>(duration.count())) > 0;
}

std::vector<std::string> names_of(const std::vector<RelayUrl>& relays) {
  std::vector<std::string> names;
  for (const auto& relay : relays)
    names.push_back(relay.address());
  return names;
}

}  // namespace

MailSink::MailSink(std::shared_ptr<const MailWriter> writer, const CourierOptions& courier,
                   DeliveryPolicy policy, int batch_limit, int stop_fd, Log& log, ConsumerObserver& observer)
    : writer_(std::move(writer)),
      shared_(names_of(courier.relays), courier.relay.timeout + courier.relay.end_timeout),
      courier_(courier),
      policy_(policy),
      stop_fd_(stop_fd),
      log_(log),
      observer_(observer),
      random_(courier.seed),
      batch_limit_(batch_limit) {}

void MailSink::begin(const Lease& lease, int /*line_limit*/) {
  const auto now = steady_now();
  pace_.began(now);
  batches_.push_back({.lease = lease, .first_mail = next_mail_, .began = now, .ended = now});
}

int MailSink::room() const {
  int tokens = 0;
  for (const auto& batch : batches_)
    tokens += batch.tokens;
  // Two batches have half each. A batch that was taken over may be larger.
  const int limit = courier_.room(batch_limit_);
  const int most = most_open() > 1 && batches_.empty() ? (limit + 1) / 2 : limit;
  return std::max(most - tokens, 0);
}

void MailSink::add(const TokenRow& row, const TokenText& token) {
  auto& batch = batches_.back();
  ++batch.tokens;
  auto history = history_of(row, batch.lease);
  history.mailed += open_mails_to(row.account);
  if (auto outcome = outcome_without_attempt(history, policy_)) {
    batch.outcomes.push_back(std::move(*outcome));
  } else {
    submit(std::move(history), row, token);
  }
}

int MailSink::open_mails_to(std::int64_t account) const {
  int mails = 0;
  for (const auto& batch : batches_) {
    const auto found = batch.mails_by_account.find(account);
    if (found != batch.mails_by_account.end()) mails += found->second;
  }
  return mails;
}

void MailSink::submit(MailHistory history, const TokenRow& row, const TokenText& token) {
  auto& batch = batches_.back();
  auto written = writer_->write(batch.lease.queue, row, token);
  if (const auto* refusal = std::get_if<Refusal>(&written)) {
    history.defect = refusal->reason.c_str();
    batch.outcomes.push_back(*outcome_without_attempt(history, policy_));
    return;
  }
  ++batch.mails_by_account[row.account];
  batch.pending.push_back({.history = std::move(history),
                           .mail = std::move(std::get<WrittenMail>(written)),
                           .token = {token.data(), token.size()},
                           .dated = row.dated()});
  courier_.submit(next_mail_++, batch.pending.back().mail.view(), batch.lease.batch,
                  steady_now() + time_until(row.expires_at));
}

void MailSink::skip(const TokenRow& row, const char* defect) {
  auto& batch = batches_.back();
  ++batch.tokens;
  batch.outcomes.push_back(*outcome_without_attempt(history_of(row, batch.lease, defect), policy_));
}

BatchOutcome MailSink::finish(const std::function<void()>& when_slow) {
  wait_for_relays(when_slow);
  auto& batch = batches_.front();
  for (const auto& outcome : batch.outcomes)
    log_outcome(outcome);
  const auto accepted = std::count_if(batch.outcomes.begin(), batch.outcomes.end(), [](const auto& outcome) {
    return outcome.state == DeliveryState::accepted;
  });
  // The relays began with this batch when they had finished the one before.
  const auto began = std::max(batch.began, last_ended_);
  last_ended_ = batch.ended;
  pace_.finished(steady_now(), batch.ended - began, static_cast<int>(batch.pending.size()), batch_limit_);
  BatchOutcome result{.emitted = static_cast<int>(accepted), .outcomes = std::move(batch.outcomes)};
  batches_.pop_front();
  return result;
}

void MailSink::wait_for_relays(const std::function<void()>& when_slow) {
  const auto started = steady_now();
  bool is_slow = false;
  std::array<pollfd, 2> fds{{{courier_.fd(), POLLIN, 0}, {stop_fd_, POLLIN, 0}}};
  const auto& batch = batches_.front();
  while (batch.answered < batch.pending.size()) {
    wait_readable(fds, slow);
    for (const auto& delivered : courier_.take())
      record(delivered);
    const auto now = steady_now();
    if (!is_slow && now - started >= slow && when_slow) when_slow();
    is_slow = is_slow || now - started >= slow;
    if (fds[1].revents != 0) {
      if (!stopped_) stopped_ = now;
      fds[1].fd = -1;
    }
    if (stopped_ && now - *stopped_ >= grace) courier_.cancel();
  }
}

void MailSink::record(const DeliveredMail& delivered) {
  std::uniform_real_distribution<double> jitter(-1, 1);
  auto& batch =
      batches_.size() > 1 && delivered.id >= batches_[1].first_mail ? batches_[1] : batches_.front();
  const auto& pending = batch.pending[static_cast<std::size_t>(delivered.id - batch.first_mail)];
  observe(delivered.delivery, batch, pending);
  auto delivery = delivered.delivery;
  delivery.reply = recordable_reply(delivery.reply, pending.token);
  if (delivery.throttled || delivery.crowded || !delivered.is_final) note_limit(delivery, delivered.at);
  if (!delivered.is_final) return;
  ++batch.answered;
  batch.ended = std::max(batch.ended, delivered.at);
  batch.outcomes.push_back(outcome_of_attempt(pending.history, delivery, policy_, jitter(random_)));
  if (delivery.ended != WallTime{}) batch.outcomes.back().answered_at = delivery.ended;
  const bool is_unavailable =
      delivered.delivery.outcome == MailOutcome::unavailable || delivered.delivery.about_relay;
  if (is_unavailable && !is_unavailable_) {
    log_.warn("the relay is unavailable, its mails wait in the queue",
              {{"relay", delivered.delivery.relay}, {"reason", delivered.delivery.reply}});
  } else if (!is_unavailable && is_unavailable_) {
    log_.info("the relay is available again", {{"relay", delivered.delivery.relay}});
  }
  is_unavailable_ = is_unavailable;
}

void MailSink::note_limit(const Delivery& delivery, TimePoint now) {
  constexpr std::chrono::minutes silence{5};
  if (warned_of_limit_ && now - *warned_of_limit_ < silence) return;
  warned_of_limit_ = now;
  const auto* text = delivery.throttled     ? "the relay asks for a lower rate, and mails wait for their turn"
                     : delivery.before_mail ? "the relay refuses a further connection"
                                            : "the relay takes fewer connections than send.connections";
  log_.warn(text, {{"relay", delivery.relay}, {"code", delivery.code}, {"reply", delivery.reply}});
}

void MailSink::observe(const Delivery& delivery, const OpenBatch& batch, const Pending& pending) {
  SinkAnswer answer{.queue = batch.lease.queue,
                    .sink = delivery.relay,
                    .outcome = mail_outcome_name(delivery.outcome),
                    .code = delivery.code,
                    .took = delivery.took};
  if (delivery.outcome == MailOutcome::accepted)
    answer.delay = delivery.ended.time_since_epoch() - std::chrono::seconds(pending.dated);
  observer_.answered(answer);
}

void MailSink::log_outcome(const TokenOutcome& outcome) {
  const auto* state = delivery_state_name(outcome.state);
  const auto answer = outcome.code == 0 ? outcome.reply : fmt::format("{} {}", outcome.code, outcome.reply);
  if (outcome.state == DeliveryState::rejected || outcome.state == DeliveryState::unknown) {
    log_.warn("mail not accepted", {{"token", outcome.token}, {"state", state}, {"reason", answer}});
  } else {
    log_.debug("mail", {{"token", outcome.token}, {"state", state}, {"reason", answer}});
  }
}

void MailSink::consult(SinkBoard& board, bool heard) {
  const auto own = courier_.breakers();
  if (const auto known = shared_.exchange(board, own, heard)) courier_.set_breakers(own, *known);
}

TimePoint MailSink::claims_from() const {
  const auto wait = courier_.time_to_admission();
  // A little earlier, as a claim takes time.
  return wait ? steady_now() + *wait : courier_.next_turn() - claim_lead;
}

}  // namespace mailroom
