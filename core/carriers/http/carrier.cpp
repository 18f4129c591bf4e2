// Drives all requests by curl_multi in a thread, which every change wakes.

#include "carriers/http/carrier.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/threads.hpp"

namespace mailroom {
namespace {

constexpr int longest_poll = 1000;  ///< milliseconds; every change wakes the thread

std::int64_t unix_time() {
  return std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
}

}  // namespace

HttpCarrier::HttpCarrier(HttpEndpoint endpoint, WebhookSigner signer, int connections)
    : endpoint_(std::move(endpoint)), signer_(std::move(signer)) {
  // Initialises libcurl, and shows here what a request would be refused for.
  idle_.push_back(std::make_unique<HttpPost>(endpoint_));
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
  for (const auto& post : busy_)
    curl_multi_remove_handle(multi_.get(), post->handle());
}

void HttpCarrier::submit(Message message) {
  {
    const std::lock_guard lock(mutex_);
    submitted_.push_back(std::move(message));
    ++unanswered_;
  }
  curl_multi_wakeup(multi_.get());
}

std::vector<Answer> HttpCarrier::take() {
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
    std::deque<Message> messages;
    bool is_cancelled = false;
    {
      const std::lock_guard lock(mutex_);
      if (has_ended_) return;
      messages.swap(submitted_);
      is_cancelled = is_cancelled_;
    }
    for (auto& message : messages)
      begin(std::move(message));
    if (is_cancelled) give_up_all();
    int running = 0;
    curl_multi_perform(multi_.get(), &running);
    collect_results();
    curl_multi_poll(multi_.get(), nullptr, 0, longest_poll, nullptr);
  }
}

void HttpCarrier::begin(Message message) {
  const auto id = message.id;
  try {
    if (idle_.empty()) idle_.push_back(std::make_unique<HttpPost>(endpoint_));
    auto& post = *idle_.back();
    post.prepare(std::move(message), signer_, unix_time());
    curl_multi_add_handle(multi_.get(), post.handle());
    busy_.push_back(std::move(idle_.back()));
    idle_.pop_back();
  } catch (const std::exception& error) {
    // Out of memory, before anything was sent.
    answer({.id = id, .verdict = Verdict::unavailable, .sink = endpoint_.name, .reply = error.what()});
  }
}

void HttpCarrier::collect_results() {
  int left = 0;
  while (const auto* message = curl_multi_info_read(multi_.get(), &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const auto result = message->data.result;
    auto* const handle = message->easy_handle;
    const auto post = std::ranges::find_if(busy_, [&](const auto& each) { return each->handle() == handle; });
    curl_multi_remove_handle(multi_.get(), handle);
    answer((*post)->finish(result, unix_time()));
    idle_.push_back(std::move(*post));
    busy_.erase(post);
  }
}

void HttpCarrier::give_up_all() {
  for (auto& post : busy_) {
    curl_multi_remove_handle(multi_.get(), post->handle());
    answer(post->give_up("stopped before the server answered"));
    idle_.push_back(std::move(post));
  }
  busy_.clear();
}

void HttpCarrier::answer(Answer answer) {
  const std::lock_guard lock(mutex_);
  answers_.push_back(std::move(answer));
  --unanswered_;
  ready_.signal();
  if (unanswered_ == 0) cancelled_.notify_all();
}

std::unique_ptr<Carrier> make_http_carrier(const CarrierSetup& setup) {
  const auto& settings = setup.settings;
  return std::make_unique<HttpCarrier>(
      parse_http_endpoint(settings),
      WebhookSigner(settings.sink.signing_secret_files, settings.signing.allow_readable_key),
      settings.sink.in_flight);
}

std::vector<SinkFinding> check_http(const Settings& settings) {
  using Level = SinkFinding::Level;
  const auto endpoint = parse_http_endpoint(settings);
  const WebhookSigner signer(settings.sink.signing_secret_files, settings.signing.allow_readable_key);
  std::vector<SinkFinding> findings;
  if (!signer.signs()) {
    findings.push_back({Level::warning, "requests are not signed, so the server cannot tell who sends them",
                        "name a file with a secret in sink.signing_secret_files, made with: echo "
                        "whsec_$(openssl rand -base64 32)"});
  }
  const auto failure = HttpPost(endpoint).connect();
  if (failure.empty()) {
    findings.push_back({Level::fine, endpoint.name + " takes connections"});
  } else {
    findings.push_back(
        {Level::failure, fmt::format("{} cannot be used: {}", endpoint.name, printable(failure)),
         "start the server, check the host, port and certificate of sink.to, or set sink.ca_file"});
  }
  return findings;
}

std::string http_library() {
  return fmt::format("libcurl {}", curl_version_info(CURLVERSION_NOW)->version);
}

}  // namespace mailroom
