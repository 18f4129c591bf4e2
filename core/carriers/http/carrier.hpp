// What carries lines to a web server as webhooks.
#pragma once

#include <condition_variable>
#include <curl/curl.h>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/threads.hpp"
#include "carriers/carriers.hpp"
#include "carriers/http/post.hpp"

namespace mailroom {

/// Posts each line to a server; docs/webhooks.md says how, and what its answers mean. A thread of its own
/// drives the connections.
class HttpCarrier final : public Carrier {
 public:
  HttpCarrier(HttpEndpoint endpoint, WebhookSigner signer, int connections);
  ~HttpCarrier() override;
  HttpCarrier(const HttpCarrier&) = delete;
  HttpCarrier& operator=(const HttpCarrier&) = delete;

  void submit(Message message) override;
  int fd() const override { return ready_.fd(); }
  std::vector<Answer> take() override;
  std::size_t unfinished() const override;
  void cancel() override;
  std::vector<std::string> endpoints() const override { return {endpoint_.name}; }

 private:
  struct FreeMulti {
    void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
  };
  using Posts = std::vector<std::unique_ptr<HttpPost>>;

  void work();
  void begin(Message message);
  void collect_results();
  void give_up_all();
  void answer(Answer answer);

  const HttpEndpoint endpoint_;
  WebhookSigner signer_;  ///< of the thread
  EventFd ready_;
  Posts idle_;  ///< of the thread, as is busy_
  Posts busy_;
  std::unique_ptr<CURLM, FreeMulti> multi_;
  mutable std::mutex mutex_;
  std::condition_variable cancelled_;
  std::deque<Message> submitted_;
  std::vector<Answer> answers_;
  std::size_t unanswered_ = 0;
  bool is_cancelled_ = false;
  bool has_ended_ = false;
  std::thread thread_;
};

std::unique_ptr<Carrier> make_http_carrier(const CarrierSetup& setup);
std::vector<SinkFinding> check_http(const Settings& settings);
std::string http_library();

}  // namespace mailroom
