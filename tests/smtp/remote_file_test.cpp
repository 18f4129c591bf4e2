// Files of other servers: which URLs and addresses are taken, and what a server that means harm can do.

#include <arpa/inet.h>
#include <atomic>
#include <cstring>
#include <functional>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "http_door/file_fetch.hpp"
#include "support/catch.hpp"
#include "support/test_certificate.hpp"
#include "support/tls_stream.hpp"

namespace mailroom::test::remote_file_test {
namespace {

using namespace std::chrono_literals;

const std::vector<std::string> hosts{"files.shop.example", "*.cdn.example"};

std::string problem_of(const std::string& url) {
  http_door::RemoteFile file;
  return http_door::problem_of_url(url, hosts, file);
}

bool is_public(const std::string& text) {
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  sockaddr_in four{};
  four.sin_family = AF_INET;
  sockaddr_storage storage{};
  if (inet_pton(AF_INET6, text.c_str(), &six.sin6_addr) == 1) {
    std::memcpy(&storage, &six, sizeof six);
  } else {
    REQUIRE(inet_pton(AF_INET, text.c_str(), &four.sin_addr) == 1);
    std::memcpy(&storage, &four, sizeof four);
  }
  return http_door::is_public_address(*static_cast<const sockaddr*>(static_cast<const void*>(&storage)));
}

/// Answers each connection as `play` says.
class Server {
 public:
  using Play = std::function<void(TlsStream&)>;

  explicit Server(Play play) : play_(std::move(play)) {
    socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const any = static_cast<sockaddr*>(static_cast<void*>(&address));
    socklen_t size = sizeof address;
    REQUIRE(bind(socket_, any, size) == 0);
    REQUIRE(listen(socket_, 8) == 0);
    REQUIRE(getsockname(socket_, any, &size) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { work(); });
  }
  ~Server() {
    const std::uint64_t one = 1;
    REQUIRE(write(stop_, &one, sizeof one) == sizeof one);
    thread_.join();
    close(socket_);
    close(stop_);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  http_door::FetchRoutes routes() const {
    return {.resolve = [](const std::string&, Milliseconds) { return std::vector<std::string>{"127.0.0.1"}; },
            .is_allowed = [](const std::string& address) { return address == "127.0.0.1"; },
            .port = port_,
            .ca_file = certificate_.certificate()};
  }
  int connections() const { return connections_; }

 private:
  void work() {
    for (;;) {
      std::array<pollfd, 2> awaited{{{socket_, POLLIN, 0}, {stop_, POLLIN, 0}}};
      poll(awaited.data(), awaited.size(), -1);
      if (awaited[1].revents != 0) return;
      TlsStream stream(accept(socket_, nullptr, nullptr), stop_);
      ++connections_;
      if (!stream.start_tls(certificate_)) continue;
      std::string line;
      while (stream.read_line(line) && !line.empty()) {
      }
      play_(stream);
    }
  }

  TestCertificate certificate_{{.names = "DNS:files.shop.example"}};
  Play play_;
  int socket_ = -1;
  int port_ = 0;
  int stop_ = eventfd(0, EFD_CLOEXEC);
  std::atomic<int> connections_ = 0;
  std::thread thread_;
};

std::string fetched(const http_door::FetchRoutes& routes, const http_door::FetchLimits& limits = {}) {
  http_door::RemoteFile file;
  REQUIRE(http_door::problem_of_url("https://files.shop.example/a?b=c", hosts, file).empty());
  const auto result = http_door::fetch_files({file}, limits, routes);
  if (const auto* problem = std::get_if<http_door::FetchProblem>(&result)) return problem->words;
  return "got " + std::get<std::vector<std::string>>(result).front();
}

}  // namespace

TEST_CASE("a URL is taken if it is HTTPS of a host that is allowed, and of nothing else") {
  CHECK(problem_of("https://files.shop.example/a.pdf").empty());
  CHECK(problem_of("HTTPS://FILES.shop.example:443/a.pdf?x=y").empty());
  CHECK(problem_of("https://eu.cdn.example/a").empty());
  for (const auto* url : {"http://files.shop.example/a",
                          "ftp://files.shop.example/a",
                          "file:///etc/passwd",
                          "files.shop.example/a",
                          "https://files.shop.example:8443/a",
                          "https://a:b@files.shop.example/",
                          "https://files.shop.example@evil.example/",
                          "https://evil.example/",
                          "https://cdn.example/",
                          "https://xcdn.example/",
                          "https://files.shop.example.evil.example/",
                          "https://127.0.0.1/",
                          "https://2130706433/",
                          "https://0x7f.1/",
                          "https://[::1]/",
                          "https://localhost/",
                          "https://files.shop.example%00.evil.example/",
                          "https://files.shop.example\\@evil.example/",
                          "https:///a",
                          "https://files.shop.example./",
                          "",
                          "https://files.shop.example/a b"}) {
    INFO(url);
    CHECK_FALSE(problem_of(url).empty());
  }
}

TEST_CASE("no address is public that leads into a network of our own") {
  for (const auto* address : {"8.8.8.8", "1.1.1.1", "172.15.0.1", "172.32.0.1", "100.63.255.255",
                              "2606:4700::1111", "2a00:1450::1"}) {
    INFO(address);
    CHECK(is_public(address));
  }
  for (const auto* address :
       {"0.0.0.0",         "10.1.2.3",   "100.64.0.1",        "127.0.0.1",   "127.255.255.255",
        "169.254.169.254", "172.16.0.1", "172.31.255.255",    "192.168.1.1", "198.18.0.1",
        "203.0.113.1",     "224.0.0.1",  "255.255.255.255",   "::",          "::1",
        "::ffff:8.8.8.8",  "::8.8.8.8",  "64:ff9b::8.8.8.8",  "fc00::1",     "fd12::1",
        "fe80::1",         "ff02::1",    "2002:0808:0808::1", "2001::1",     "2001:db8::1",
        "100::1"}) {
    INFO(address);
    CHECK_FALSE(is_public(address));
  }
}

TEST_CASE("a file comes as it is, and nothing else that a server answers") {
  const Server good([](TlsStream& stream) {
    stream.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nSet-Cookie: a=b\r\n\r\nhello");
  });
  CHECK(fetched(good.routes()) == "got hello");
  for (const auto* head :
       {"302 Found\r\nLocation: https://127.0.0.1/", "301 Moved\r\nLocation: https://files.shop.example/b",
        "404 Not Found\r\nX: y", "206 Partial Content\r\nX: y"}) {
    const Server other([&](TlsStream& stream) {
      stream.write(std::string("HTTP/1.1 ") + head + "\r\nContent-Length: 6\r\n\r\nsecret");
    });
    CHECK(fetched(other.routes()) == "cannot be fetched");
    CHECK(other.connections() == 1);
  }
}

TEST_CASE("a host with one address that is not public is not connected to") {
  const Server server(
      [](TlsStream& stream) { stream.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"); });
  auto routes = server.routes();
  routes.resolve = [](const std::string&, Milliseconds) {
    return std::vector<std::string>{"127.0.0.1", "10.0.0.1"};
  };
  CHECK(fetched(routes) == "is of a host that has an address which is not public");
  CHECK(server.connections() == 0);
  routes.resolve = [](const std::string&, Milliseconds) { return std::vector<std::string>(); };
  CHECK(fetched(routes) == "cannot be fetched");
}

TEST_CASE("a name is resolved once, and the connection goes where that was looked at") {
  const Server server(
      [](TlsStream& stream) { stream.write("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"); });
  auto routes = server.routes();
  int lookups = 0;
  routes.resolve = [&](const std::string&, Milliseconds) {
    return std::vector<std::string>{++lookups == 1 ? "127.0.0.1" : "10.0.0.1"};
  };
  CHECK(fetched(routes) == "got a");
  CHECK(lookups == 1);
}

TEST_CASE("what has no end, or comes in drops, is given up") {
  std::atomic<std::size_t> sent = 0;
  const Server endless([&](TlsStream& stream) {
    stream.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    const auto chunk = "10000\r\n" + std::string(65'536, 'a') + "\r\n";
    while (stream.write(chunk))
      sent += chunk.size();
  });
  CHECK(fetched(endless.routes(), {.bytes = 1'000'000}) == "is larger than 25 MiB, alone or with the others");
  const Server large(
      [](TlsStream& stream) { stream.write("HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n"); });
  CHECK(fetched(large.routes()) == "is larger than 25 MiB, alone or with the others");
  const Server slow([](TlsStream& stream) {
    stream.write("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
    while (stream.write("a") && stream.pause(20ms)) {
    }
  });
  CHECK(fetched(slow.routes(), {.time = 300ms}) == "cannot be fetched");
}

TEST_CASE("a certificate for another name, or of nobody, is not taken") {
  const Server server(
      [](TlsStream& stream) { stream.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"); });
  auto routes = server.routes();
  routes.ca_file.clear();
  CHECK(fetched(routes) == "cannot be fetched");
}

}  // namespace mailroom::test::remote_file_test
