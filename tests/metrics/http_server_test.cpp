// The HTTP server of the metrics, over real sockets.

#include "metrics/http_server.hpp"

#include <atomic>
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "base/error.hpp"
#include "support/catch.hpp"
#include "support/http_client.hpp"
#include "support/subprocess.hpp"
#include "support/temporary_directory.hpp"

namespace mailroom::test::http_server_test {
namespace {

const ListenAddress any_port{.host = "127.0.0.1", .port = 0};

/// `/now` is ready at once, `/later` after let_go(), `/never` never.
class SomePages final : public HttpPages {
 public:
  SomePages() : ready_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~SomePages() override { close(ready_); }

  std::optional<HttpPage> page(const std::string& path, bool last_chance) override {
    ++asked;
    if (last_chance) return HttpPage{.status = 503, .text = "late\n"};
    if (path == "/never" || (path == "/later" && !let_go_)) return std::nullopt;
    return HttpPage{.text = "page " + path + "\n"};
  }
  int fd() const override { return ready_; }
  void take_ready() override {
    eventfd_t count = 0;
    eventfd_read(ready_, &count);
  }
  void let_go() {
    let_go_ = true;
    eventfd_write(ready_, 1);
  }

  std::atomic<int> asked = 0;

 private:
  int ready_;
  std::atomic<bool> let_go_ = false;
};

Error refused(const ListenAddress& address) {
  try {
    const ListeningSocket socket(address);
  } catch (const Error& error) {
    return error;
  }
  throw std::logic_error(address.text() + " was not refused");
}

}  // namespace

TEST_CASE("the server answers GET and HEAD, and nothing else") {
  SomePages pages;
  const HttpServer server(any_port, pages);
  const auto& address = server.address();
  const auto page = http_get(address, "/now?x=1");
  CHECK(page.status == 200);
  CHECK(page.body == "page /now\n");
  CHECK(page.head.find("Content-Length: 10") != std::string::npos);
  const auto head = http_ask(address, "HEAD /now HTTP/1.0\r\n\r\n");
  CHECK(head.status == 200);
  CHECK(head.body.empty());
  CHECK(http_ask(address, "POST /now HTTP/1.1\r\nHost: localhost\r\n\r\n").status == 405);
  CHECK(http_ask(address, "hello\n\n").status == 400);
  CHECK(http_ask(address, "\r\n").status == 400);
  CHECK(http_ask(address, "GET /now HTTP/1.1\r\nHost: localhost\r\nHost: other.example\r\n\r\n").status ==
        400);
  CHECK(http_ask(address, "GET /" + std::string(longest_http_head, 'x')).status == 431);
}

TEST_CASE("a server of a loopback address refuses requests for other hosts") {
  SomePages pages;
  const HttpServer server(any_port, pages);
  for (const auto* host : {"localhost", "LOCALHOST:9464", "127.0.0.1", "127.1.2.3:80", "[::1]:80"})
    CHECK(http_get(server.address(), "/now", host).status == 200);
  for (const auto* host :
       {"attacker.example", "192.0.2.1", "localhost.attacker.example", "127.0.0.1.example"})
    CHECK(http_get(server.address(), "/now", host).status == 403);
}

TEST_CASE("a page that is not ready is sent when it is, or says so in time") {
  SomePages pages;
  const HttpServer server(any_port, pages);
  std::thread waiting([&] { CHECK(http_get(server.address(), "/later").body == "page /later\n"); });
  REQUIRE(eventually([&] { return pages.asked > 0; }));
  // Meanwhile others are served.
  CHECK(http_get(server.address(), "/now").status == 200);
  pages.let_go();
  waiting.join();
  CHECK(http_get(server.address(), "/never").status == 503);
}

TEST_CASE("clients that send nothing, or a byte, keep nobody from being served") {
  SomePages pages;
  const HttpServer server(any_port, pages);
  std::vector<HttpConnection> slow;
  for (int i = 0; i < 200; ++i) {
    slow.emplace_back(server.address());
    if (i % 2 == 0) slow.back().send("G");
  }
  for (int i = 0; i < 20; ++i)
    CHECK(http_get(server.address(), "/now").status == 200);
  // The oldest had to go.
  std::size_t open = 0;
  for (const auto& client : slow)
    open += client.is_closed() ? 0 : 1;
  CHECK(open < HttpServer::most_clients);
  CHECK(open > 0);
}

TEST_CASE("a client that sends no request is let go in time") {
  SomePages pages;
  const HttpServer server(any_port, pages);
  const HttpConnection client(server.address());
  client.send("GET /now HTTP/1.1\r\n");
  CHECK(client.read_all().empty());
}

TEST_CASE("a unix socket is served, and removed at the end") {
  const TemporaryDirectory directory;
  const ListenAddress address{.path = directory.path() / "metrics.sock"};
  SomePages pages;
  {
    const HttpServer server(address, pages);
    CHECK(http_get(address, "/now", "attacker.example").status == 200);
    const auto error = refused(address);
    CHECK(error.code() == ExitCode::locked);
    CHECK(std::string(error.what()).ends_with("metrics.sock: another process listens there"));
  }
  CHECK(!std::filesystem::exists(address.path));
}

TEST_CASE("a unix socket on which nobody listens any more is replaced") {
  const TemporaryDirectory directory;
  const ListenAddress address{.path = directory.path() / "metrics.sock"};
  const std::string kept = directory.path() / "kept.sock";
  {
    const ListeningSocket first(address);
    std::filesystem::rename(address.path, kept);
  }
  std::filesystem::rename(kept, address.path);
  SomePages pages;
  const HttpServer server(address, pages);
  CHECK(http_get(address, "/now").status == 200);
}

TEST_CASE("an address that cannot be listened at is refused") {
  const ListeningSocket taken(any_port);
  const auto in_use = refused(taken.address());
  CHECK(in_use.code() == ExitCode::locked);
  CHECK(in_use.what() == fmt::format("cannot serve metrics at 127.0.0.1:{}: another process listens there",
                                     taken.address().port));
  const auto not_ours = refused({.host = "192.0.2.1", .port = 9464});
  CHECK(not_ours.code() == ExitCode::configuration);
  CHECK(std::string(not_ours.what()) ==
        "cannot serve metrics at 192.0.2.1:9464: Cannot assign requested address");
  const TemporaryDirectory directory;
  const auto file = refused({.path = directory.write("notes", "important")});
  CHECK(file.code() == ExitCode::configuration);
  CHECK(std::string(file.what()).ends_with("/notes: the file exists, and is no socket"));
  CHECK(read_file(directory.path() / "notes") == "important");
  const auto nowhere = refused({.path = directory.path() / "missing" / "metrics.sock"});
  CHECK(nowhere.code() == ExitCode::configuration);
}

}  // namespace mailroom::test::http_server_test
