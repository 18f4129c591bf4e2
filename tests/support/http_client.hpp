#pragma once

#include <functional>
#include <map>
#include <string>

#include "config/listen_address.hpp"

namespace mailroom::test {

/// A connection to a server of HTTP.
class HttpConnection {
 public:
  explicit HttpConnection(const config::ListenAddress& address);
  ~HttpConnection();
  HttpConnection(HttpConnection&& other) noexcept;
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  void send(const std::string& bytes) const;
  /// All that the server says until it closes the connection.
  std::string read_all() const;
  /// True if the server has closed the connection.
  bool is_closed() const;

 private:
  int socket_;
};

struct HttpAnswer {
  int status = 0;  ///< 0 if there was no answer
  std::string head;
  std::string body;
};

HttpAnswer http_get(const config::ListenAddress& address, const std::string& path,
                    const std::string& host = "localhost");
/// What the server answers to `request`.
HttpAnswer http_ask(const config::ListenAddress& address, const std::string& request);

/// The metrics of a scrape.
struct Scrape {
  explicit Scrape(const std::string& text);
  static Scrape of(const config::ListenAddress& address);

  /// Of a series such as `mailroom_claims_total{queue="mailroom"}`, its labels in any order. Throws without
  /// it.
  double value(const std::string& series) const;
  bool has(const std::string& series) const;
  /// The sum of all series of a name whose labels contain `part`.
  double sum(const std::string& name, const std::string& part = {}) const;

  std::string text;
  std::map<std::string, std::string> types;  ///< by name
  std::map<std::string, std::string> helps;
  std::map<std::string, double> values;  ///< by series
};

/// Where a process serves its metrics, as its log says. Waits until it does.
config::ListenAddress metrics_address(const std::function<std::string()>& log);

}  // namespace mailroom::test
