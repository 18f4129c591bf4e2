// What carries messages over HTTP, a request each: the connections, whatever is said over them.
#pragma once

#include <condition_variable>
#include <curl/curl.h>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/threads.hpp"
#include "carriers/http/exchange.hpp"
#include "delivery/carrier.hpp"

namespace mailroom::http {

/// What is said over HTTP: how a message is asked for, and what an answer means. All functions are for the
/// thread of the carrier. `now`: seconds since 1970.
class HttpProtocol {
 public:
  virtual ~HttpProtocol() = default;

  /// Why the receiver cannot take this message, ever; empty if it can.
  virtual std::string problem_of(const delivery::Message& /*message*/) const { return {}; }
  /// The request that hands the message over; its answer is awaited before the message's body ends. Throws
  /// Error if it cannot be made: then the endpoint is unavailable.
  virtual HttpRequest request(const delivery::Message& message, std::int64_t now) = 0;
  /// The verdict, code, reply, wait and tokens; the carrier adds the rest.
  virtual delivery::Answer judge(const delivery::Message& message, const HttpOutcome& outcome,
                                 std::int64_t now) = 0;
  /// False if the receiver replaces the Message-ID of each mail, and an answer without one does not tell it.
  virtual bool keeps_message_id() const { return true; }
  /// When the server takes the next request at the earliest; a time in the past means now.
  virtual TimePoint next_request() const { return {}; }
  /// True if this answer to a message of several mails may be about one of them, and none was taken: each is
  /// handed over by itself then.
  virtual bool is_about_one(const delivery::Answer& /*answer*/) const { return false; }
};

/// Hands each message over in a request of its own, several at the same time over connections that are kept.
/// A message of several mails of which the server refuses one goes in parts. A thread of its own drives
/// them.
class HttpCarrier final : public delivery::Carrier {
 public:
  /// Has at most `connections`, and keeps `ahead` messages beyond those in flight. Throws Error(failed).
  HttpCarrier(HttpEndpoint endpoint, std::unique_ptr<HttpProtocol> protocol, int connections, int ahead = 0);
  ~HttpCarrier() override;
  HttpCarrier(const HttpCarrier&) = delete;
  HttpCarrier& operator=(const HttpCarrier&) = delete;

  void submit(delivery::Message message) override;
  int fd() const override { return ready_.fd(); }
  std::vector<delivery::Answer> take() override;
  std::size_t unfinished() const override;
  void cancel() override;
  int ahead() const override { return ahead_; }
  bool asks_for_clearance() const override { return true; }
  std::vector<std::string> endpoints() const override { return {endpoint_.name}; }

 private:
  struct FreeMulti {
    void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
  };
  /// A message of several mails that goes in parts.
  struct Parted {
    delivery::Answer answer;          ///< with the mails that are done
    std::size_t left = 1;             ///< parts
    std::deque<std::string> bytes{};  ///< bodies in another order than in the message
  };
  /// A message on its way.
  struct Flight {
    std::unique_ptr<HttpExchange> exchange;
    delivery::Message message;
    TimePoint began{};
  };

  void work();
  void begin_waiting();
  void begin(delivery::Message message);
  void collect_results();
  void end(Flight& flight, const HttpOutcome& outcome);
  void part(const delivery::Message& message, delivery::Answer answer);
  bool may_be_about_one(const delivery::Message& message, const delivery::Answer& answer) const;
  bool is_vain(std::int64_t id) const;
  void settle(const delivery::Message& message, delivery::Answer answer);
  int patience() const;
  void give_up_all();
  void give_back_untried();
  void answer(delivery::Answer answer);

  const HttpEndpoint endpoint_;
  const std::size_t connections_;
  const int ahead_;
  EventFd ready_;
  // These six are the thread's; what follows them needs the mutex.
  std::unique_ptr<HttpProtocol> protocol_;
  std::vector<std::unique_ptr<HttpExchange>> idle_;
  std::vector<Flight> busy_;
  std::deque<delivery::Message> waiting_;  ///< for a connection
  std::map<std::int64_t, Parted> parted_;  ///< by the id of the message, which its mails have too
  std::unique_ptr<CURLM, FreeMulti> multi_;
  mutable std::mutex mutex_;
  std::condition_variable cancelled_;
  std::deque<delivery::Message> submitted_;
  std::vector<delivery::Answer> answers_;
  std::size_t unanswered_ = 0;
  bool is_cancelled_ = false;
  bool has_ended_ = false;
  std::thread thread_;
};

/// `libcurl 7.88.1`
std::string http_library();

}  // namespace mailroom::http
