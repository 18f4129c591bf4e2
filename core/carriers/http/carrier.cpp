// Drives all requests by curl_multi in a thread, which every change wakes.

#include "carriers/http/carrier.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <utility>

#include "base/error.hpp"
#include "base/threads.hpp"
#include "carriers/http/parts.hpp"

namespace mailroom::http {
namespace {

constexpr int longest_poll = 1000;  ///< milliseconds

std::int64_t unix_time() {
  return std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
}

bool is_refused(const delivery::TokenVerdict& token) {
  return token.verdict == delivery::Verdict::unavailable && token.code.value_or(0) >= 400;
}

/// The answer to a message whose parts are all answered.
delivery::Answer whole_of(delivery::Answer answer) {
  // What is final of each mail says nothing of others.
  const bool is_any_refused = std::ranges::any_of(answer.tokens, is_refused);
  if (!is_any_refused) answer.refusal.clear();
  if (answer.verdict != delivery::Verdict::accepted) return answer;
  // While some are taken, what the others are told is about them.
  for (auto& token : answer.tokens) {
    if (!is_refused(token)) continue;
    token.verdict = delivery::Verdict::deferred;
    token.is_about_some = true;
  }
  return answer;
}

}  // namespace

HttpCarrier::HttpCarrier(HttpEndpoint endpoint, std::unique_ptr<HttpProtocol> protocol, int connections,
                         int ahead)
    : endpoint_(std::move(endpoint)),
      connections_(static_cast<std::size_t>(connections)),
      ahead_(ahead),
      protocol_(std::move(protocol)) {
  // Initialises libcurl, and shows here what a request would be refused for.
  idle_.push_back(std::make_unique<HttpExchange>(endpoint_));
  multi_.reset(curl_multi_init());
  if (!multi_) throw Error(ExitCode::failed, "cannot initialise libcurl");
  curl_multi_setopt(multi_.get(), CURLMOPT_MAX_HOST_CONNECTIONS, static_cast<long>(connections));
  curl_multi_setopt(multi_.get(), CURLMOPT_MAXCONNECTS, static_cast<long>(connections));
  const BlockedSignals blocked;
  thread_ = std::thread([this] { work(); });
}

HttpCarrier::~HttpCarrier() {
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  curl_multi_wakeup(multi_.get());
  thread_.join();
  for (const auto& flight : busy_)
    curl_multi_remove_handle(multi_.get(), flight.exchange->handle());
}

void HttpCarrier::submit(delivery::Message message) {
  {
    const std::lock_guard lock(mutex_);
    submitted_.push_back(std::move(message));
    ++unanswered_;
  }
  curl_multi_wakeup(multi_.get());
}

std::vector<delivery::Answer> HttpCarrier::take() {
  const std::lock_guard lock(mutex_);
  ready_.clear();
  return std::exchange(answers_, {});
}

std::size_t HttpCarrier::unfinished() const {
  const std::lock_guard lock(mutex_);
  return unanswered_ + answers_.size();
}

void HttpCarrier::cancel() {
  std::unique_lock lock(mutex_);
  is_cancelled_ = true;
  curl_multi_wakeup(multi_.get());
  cancelled_.wait(lock, [this] { return unanswered_ == 0; });
  is_cancelled_ = false;
}

void HttpCarrier::work() {
  for (;;) {
    bool is_cancelled = false;
    {
      const std::lock_guard lock(mutex_);
      if (has_ended_) return;
      std::ranges::move(std::exchange(submitted_, {}), std::back_inserter(waiting_));
      is_cancelled = is_cancelled_;
    }
    if (is_cancelled) give_up_all();
    begin_waiting();
    int running = 0;
    curl_multi_perform(multi_.get(), &running);
    collect_results();
    // What has ended leaves its connection to the next.
    const int wait = patience();
    if (wait > 0) curl_multi_poll(multi_.get(), nullptr, 0, wait, nullptr);
  }
}

/// In milliseconds, until a message that waits may leave; every other change wakes the thread.
int HttpCarrier::patience() const {
  if (waiting_.empty() || busy_.size() >= connections_) return longest_poll;
  const auto left = std::chrono::ceil<Milliseconds>(protocol_->next_request() - steady_now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, longest_poll));
}

void HttpCarrier::begin_waiting() {
  while (!waiting_.empty() && busy_.size() < connections_ && protocol_->next_request() <= steady_now()) {
    auto message = std::move(waiting_.front());
    waiting_.pop_front();
    begin(std::move(message));
  }
}

void HttpCarrier::begin(delivery::Message message) {
  const auto began = steady_now();
  try {
    if (auto problem = protocol_->problem_of(message); !problem.empty()) {
      settle(message, {.id = message.id,
                       .verdict = delivery::Verdict::rejected,
                       .sink = endpoint_.name,
                       .reply = std::move(problem),
                       .took = steady_now() - began,
                       .ended = wall_now()});
      return;
    }
    if (idle_.empty()) idle_.push_back(std::make_unique<HttpExchange>(endpoint_));
    idle_.back()->prepare(protocol_->request(message, unix_time()), message.clearance);
    curl_multi_add_handle(multi_.get(), idle_.back()->handle());
    busy_.push_back({.exchange = std::move(idle_.back()), .message = std::move(message), .began = began});
    idle_.pop_back();
  } catch (const std::exception& error) {
    // No credentials, or out of memory: nothing was sent.
    settle(message, {.id = message.id,
                     .verdict = delivery::Verdict::unavailable,
                     .sink = endpoint_.name,
                     .reply = error.what(),
                     .took = steady_now() - began,
                     .ended = wall_now()});
    give_back_untried();
  }
}

void HttpCarrier::collect_results() {
  int left = 0;
  while (const auto* message = curl_multi_info_read(multi_.get(), &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const auto result = message->data.result;
    auto* const handle = message->easy_handle;
    const auto flight =
        std::ranges::find_if(busy_, [&](const auto& each) { return each.exchange->handle() == handle; });
    curl_multi_remove_handle(multi_.get(), handle);
    end(*flight, flight->exchange->finish(result));
    busy_.erase(flight);
  }
}

void HttpCarrier::end(Flight& flight, const HttpOutcome& outcome) {
  if (flight.exchange->was_held_back()) {
    settle(flight.message, {.id = flight.message.id, .was_tried = false});
    idle_.push_back(std::move(flight.exchange));
    return;
  }
  auto answered = protocol_->judge(flight.message, outcome, unix_time());
  answered.id = flight.message.id;
  answered.sink = endpoint_.name;
  answered.took = steady_now() - flight.began;
  answered.ended = wall_now();
  // What is refused of a message that was parted may be its own: the others are tried.
  const bool is_unavailable =
      answered.verdict == delivery::Verdict::unavailable && !parted_.contains(flight.message.id);
  if (may_be_about_one(flight.message, answered) && !is_vain(flight.message.id)) {
    part(flight.message, std::move(answered));
  } else {
    settle(flight.message, std::move(answered));
    if (is_unavailable) give_back_untried();
  }
  idle_.push_back(std::move(flight.exchange));
}

/// True if the refusal of several mails may meet only some of them.
bool HttpCarrier::may_be_about_one(const delivery::Message& message, const delivery::Answer& answer) const {
  if (message.mails.size() < 2 || !protocol_->is_about_one(answer)) return false;
  return answer.varies_with != delivery::VariesWith::sender || !is_of_one_sender(message);
}

/// True if so many mails of a parted message were refused, and none taken, that it is about all of them.
bool HttpCarrier::is_vain(std::int64_t id) const {
  constexpr std::ptrdiff_t most = 8;
  const auto found = parted_.find(id);
  if (found == parted_.end() || found->second.answer.verdict == delivery::Verdict::accepted) return false;
  return std::ranges::count_if(found->second.answer.tokens, is_refused) >= most;
}

/// Its mails leave in parts.
void HttpCarrier::part(const delivery::Message& message, delivery::Answer answer) {
  const bool by_sender = answer.varies_with == delivery::VariesWith::sender;
  auto& parted = parted_.try_emplace(message.id, Parted{.answer = std::move(answer)}).first->second;
  auto own = parts_of(message, by_sender, parted.bytes);
  for (auto& each : own)
    each.clearance = each.clearance_of_attempt();
  parted.left += own.size() - 1;
  // Many leave soonest if the largest parts come first; if none is taken, single mails show that soonest.
  const bool is_any_taken = parted.answer.verdict == delivery::Verdict::accepted;
  waiting_.insert(is_any_taken ? waiting_.end() : waiting_.begin(), own.begin(), own.end());
}

/// Answers a message, or notes the answer to a part of it.
void HttpCarrier::settle(const delivery::Message& message, delivery::Answer answer) {
  const auto found = parted_.find(message.id);
  if (found == parted_.end()) return this->answer(std::move(answer));
  auto& whole = found->second.answer;
  if (answer.tokens.empty()) {
    for (const auto token : message.tokens)
      answer.tokens.push_back({token, answer.verdict, answer.reply, answer.code});
  }
  std::ranges::move(answer.tokens, std::back_inserter(whole.tokens));
  whole.throttled = whole.throttled || answer.throttled;
  whole.took += answer.took;
  whole.ended = std::max(whole.ended, answer.ended);
  if (answer.verdict == delivery::Verdict::accepted || whole.verdict != delivery::Verdict::accepted) {
    whole.verdict = answer.verdict;
    whole.code = answer.code;
  }
  if (--found->second.left > 0) return;
  auto done = std::move(whole);
  parted_.erase(found);
  this->answer(whole_of(std::move(done)));
}

void HttpCarrier::give_up_all() {
  give_back_untried();
  for (auto& flight : busy_) {
    curl_multi_remove_handle(multi_.get(), flight.exchange->handle());
    end(flight, flight.exchange->give_up("stopped before the server answered"));
  }
  busy_.clear();
}

/// What waits for an endpoint that is unavailable would fail too, and there may be another way.
void HttpCarrier::give_back_untried() {
  for (const auto& message : std::exchange(waiting_, {}))
    settle(message, {.id = message.id, .was_tried = false});
}

/// Tells whoever takes answers when it has to know at once, or may submit several messages.
void HttpCarrier::answer(delivery::Answer answer) {
  const std::lock_guard lock(mutex_);
  const bool is_accepted = answer.verdict == delivery::Verdict::accepted && answer.was_tried;
  if (!protocol_->keeps_message_id() && !answer.message_id) answer.message_id.emplace();
  answers_.push_back(std::move(answer));
  --unanswered_;
  if (!is_accepted || waiting_.size() + submitted_.size() <= connections_) ready_.signal();
  if (unanswered_ == 0) cancelled_.notify_all();
}

std::string http_library() {
  return fmt::format("libcurl {}", curl_version_info(CURLVERSION_NOW)->version);
}

}  // namespace mailroom::http
