#include "support/http_client.hpp"

#include <arpa/inet.h>
#include <array>
#include <cstring>
#include <poll.h>
#include <sstream>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

#include "base/pattern.hpp"
#include "support/subprocess.hpp"

namespace mailroom::test {
namespace {

constexpr int patience_ms = 20'000;

int connect_to(const config::ListenAddress& address) {
  sockaddr_storage bytes{};
  socklen_t size = 0;
  if (address.is_unix()) {
    sockaddr_un named{};
    named.sun_family = AF_UNIX;
    address.path.copy(named.sun_path, sizeof named.sun_path - 1);
    std::memcpy(&bytes, &named, sizeof named);
    size = sizeof named;
  } else {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(static_cast<std::uint16_t>(address.port));
    inet_pton(AF_INET, address.host.c_str(), &in.sin_addr);
    std::memcpy(&bytes, &in, sizeof in);
    size = sizeof in;
  }
  const int fd = socket(bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  void* const general = &bytes;
  if (fd < 0 || connect(fd, static_cast<const sockaddr*>(general), size) != 0)
    throw std::runtime_error("cannot connect to " + address.text() + ": " + std::strerror(errno));
  return fd;
}

/// A series with its labels in alphabetical order.
std::string canonical(const std::string& series) {
  const auto open = series.find('{');
  if (open == std::string::npos) return series;
  static const Pattern label(R"re(([a-z_]+)="((?:[^"\\]|\\.)*)")re");
  std::map<std::string, std::string> labels;
  for (const auto& match : label.all(series.substr(open)))
    labels[match[1]] = match[2];
  auto text = series.substr(0, open);
  for (const auto& [name, value] : labels)
    text += (text.size() == open ? "{" : ",") + name + "=\"" + value + "\"";
  return text + "}";
}

}  // namespace

HttpConnection::HttpConnection(const config::ListenAddress& address) : socket_(connect_to(address)) {}

HttpConnection::HttpConnection(HttpConnection&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}

HttpConnection::~HttpConnection() {
  if (socket_ >= 0) close(socket_);
}

void HttpConnection::send(const std::string& bytes) const {
  ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

std::string HttpConnection::read_all() const {
  std::string all;
  std::array<char, 4096> bytes{};
  for (;;) {
    pollfd readable{socket_, POLLIN, 0};
    if (poll(&readable, 1, patience_ms) <= 0) throw std::runtime_error("the server does not answer");
    const auto count = recv(socket_, bytes.data(), bytes.size(), 0);
    if (count <= 0) return all;
    all.append(bytes.data(), static_cast<std::size_t>(count));
  }
}

bool HttpConnection::is_closed() const {
  char byte = 0;
  pollfd readable{socket_, POLLIN, 0};
  return poll(&readable, 1, 0) == 1 && recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
}

HttpAnswer http_ask(const config::ListenAddress& address, const std::string& request) {
  const HttpConnection connection(address);
  connection.send(request);
  const auto all = connection.read_all();
  const auto end = all.find("\r\n\r\n");
  if (!all.starts_with("HTTP/1.") || end == std::string::npos) return {};
  return {.status = std::stoi(all.substr(9, 3)), .head = all.substr(0, end), .body = all.substr(end + 4)};
}

HttpAnswer http_get(const config::ListenAddress& address, const std::string& path, const std::string& host) {
  return http_ask(address, "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nAccept: */*\r\n\r\n");
}

Scrape::Scrape(const std::string& exposition) : text(exposition) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto blank = line.rfind(' ');
    if (line.starts_with("# ")) {
      const auto name_end = line.find(' ', 7);
      auto& described = line.starts_with("# TYPE ") ? types : helps;
      described[line.substr(7, name_end - 7)] = line.substr(name_end + 1);
    } else if (!line.empty()) {
      values[canonical(line.substr(0, blank))] = std::stod(line.substr(blank + 1));
    }
  }
}

Scrape Scrape::of(const config::ListenAddress& address) {
  const auto answer = http_get(address, "/metrics");
  if (answer.status != 200) throw std::runtime_error("there are no metrics: " + answer.head);
  return Scrape(answer.body);
}

double Scrape::value(const std::string& series) const {
  const auto found = values.find(canonical(series));
  if (found == values.end()) throw std::runtime_error("there is no " + series + " in:\n" + text);
  return found->second;
}

bool Scrape::has(const std::string& series) const {
  return values.count(canonical(series)) == 1;
}

double Scrape::sum(const std::string& name, const std::string& part) const {
  double total = 0;
  for (const auto& [series, number] : values) {
    const bool is_named = series == name || series.starts_with(name + "{");
    if (is_named && series.find(part) != std::string::npos) total += number;
  }
  return total;
}

config::ListenAddress metrics_address(const std::function<std::string()>& read_log) {
  std::optional<Pattern::Groups> found;
  std::string log;
  const Pattern form("serving metrics at=\"?([^\\s\"]+)");
  if (!eventually([&] { return (found = form.first(log = read_log())).has_value(); }))
    throw std::runtime_error("no metrics are served:\n" + log);
  return config::parse_listen_address((*found)[1]).value();
}

}  // namespace mailroom::test
