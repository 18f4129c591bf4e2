// Takes requests over HTTP in the loop of the service, and stores mails with the roles of their keys. What
// the requests are like, the shape knows.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "http_door/http_connection.hpp"
#include "http_door/post_writer.hpp"
#include "http_door/questions.hpp"
#include "http_door/shape.hpp"
#include "submission/conversation.hpp"
#include "submission/service.hpp"

struct event;
struct evconnlistener;

namespace mailroom::http_door {

struct HttpOptions {
  int fd = -1;  ///< that listens
  bool is_secure = false;
  std::size_t most_body = std::size_t{110} * 1024 * 1024;
  Milliseconds timeout{60'000};  ///< of a request, with a second for each 10 kB of its body
  std::size_t connections = 1000;
  std::size_t connections_per_address = 100;
  submission::DatabaseAccess database{};
  std::string timezone = "UTC";
  std::string from{};
  std::vector<std::string> attachment_hosts{};
};

/// What the door has done.
struct HttpCounts {
  std::size_t connections = 0;
  std::map<std::string, std::int64_t> accepted{};  ///< mails, by role
  std::map<int, std::int64_t> answers{};           ///< by status
  std::int64_t commits = 0;
};

class HttpDoor {
 public:
  /// `service`, whose loop and limits it has, and `log` must outlive this.
  HttpDoor(HttpOptions options, const Shape& shape, submission::Service& service, Log& log);
  ~HttpDoor();
  HttpDoor(const HttpDoor&) = delete;
  HttpDoor& operator=(const HttpDoor&) = delete;

  /// Within the loop: each second.
  void turned();
  /// No request begins.
  void stop();
  bool may_end() const;
  /// Any thread may ask.
  HttpCounts counts() const;

 private:
  friend class HttpConnection;

  void accept(int fd, const std::string& peer);
  void happened(HttpConnection& connection, HttpReader::Event event);
  void look_at_key(HttpConnection& connection);
  void let_in(HttpConnection& connection, const Credentials& credentials);
  void carry_out(HttpConnection& connection);
  void post(HttpConnection& connection, const Credentials& credentials, Post post);
  void fetch(HttpConnection& connection, Post post);
  void store_fetched(HttpConnection& connection, Post post);
  void refuse(HttpConnection& connection, const Fault& fault, bool ends = false);
  void answer(HttpConnection& connection, const Answer& given, const std::string& more, bool ends);
  void drop(std::uint64_t id);
  bool hold(std::ptrdiff_t change) { return service_.hold(change); }
  std::uint64_t begin_wait(HttpConnection& connection);
  void tell(Verdict verdict);
  void take_verdicts();
  void give(Verdict verdict);
  void learn_rate(const std::string& role, const std::optional<RoleRate>& rate);
  PostWriter& writer_of(const std::string& role);
  Defaults defaults() const;

  HttpOptions options_;
  const Shape& shape_;
  submission::Service& service_;
  Log& log_;
  evconnlistener* listener_ = nullptr;
  event* verdicts_event_ = nullptr;
  std::map<std::uint64_t, std::unique_ptr<HttpConnection>> connections_;
  std::map<std::string, std::size_t> per_address_;
  std::map<std::uint64_t, std::uint64_t> waiting_;  ///< connections, by their requests
  std::uint64_t next_ = 1;
  bool is_stopping_ = false;
  struct KnownKey {
    Credentials credentials{};
    TimePoint until{};
  };
  std::map<std::string, KnownKey> known_;  ///< which role to try, by the digest of a key
  std::map<std::string, RoleRate> rates_;  ///< by role
  std::int64_t guesses_ = 0;               ///< requests without a good key, since the last turn
  std::atomic<std::int64_t> commits_{0};
  mutable std::mutex mutex_;  ///< of the next two
  HttpCounts counts_;
  std::vector<Verdict> verdicts_;
  std::map<std::string, std::unique_ptr<PostWriter>> writers_;
  std::size_t fetching_ = 0;  ///< requests whose files are fetched, or wait for that
  std::unique_ptr<Questions> fetches_;
  std::unique_ptr<Questions> lookups_;
  std::unique_ptr<Questions> questions_;  // last: its threads call the others
};

}  // namespace mailroom::http_door
