// The HTTP server of the metrics, over real sockets.

#include "metrics/http_server.hpp"

#include <fmt/format.h>
#include <future>
#include <optional>
#include <sys/stat.h>
#include <thread>

#include "base/error.hpp"
#include "support/catch.hpp"
#include "support/http_client.hpp"
#include "support/subprocess.hpp"
#include "support/temporary_directory.hpp"

namespace mailroom::test::http_server_test {
namespace {

const config::ListenAddress any_port{.host = "127.0.0.1", .port = 0};

process::HttpPage some_page(const process::HttpCall& call) {
  return {.text = "page " + call.path + "\n"};
}

Error refused(const config::ListenAddress& address) {
  try {
    const process::ListeningSocket socket(address, metrics::metrics_words);
  } catch (const Error& error) {
    return error;
  }
  throw std::logic_error(address.text() + " was not refused");
}

}  // namespace

TEST_CASE("the server answers GET and HEAD, and nothing else") {
  const metrics::HttpServer server(any_port, some_page);
  const auto& address = server.address();
  const auto page = http_get(address, "/now?x=1");
  CHECK(page.status == 200);
  CHECK(page.body == "page /now\n");
  CHECK(page.head.find("Content-Length: 10") != std::string::npos);
  const auto head = http_ask(address, "HEAD /now HTTP/1.0\r\n\r\n");
  CHECK(head.status == 200);
  CHECK(head.body.empty());
  CHECK(http_ask(address, "POST /now HTTP/1.1\r\nHost: localhost\r\n\r\n").status == 405);
  CHECK(http_ask(address, "POST /now HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n").status ==
        405);
  CHECK(http_ask(address, "GET /now\r\n\r\n").status != 200);
  CHECK(http_ask(address, "GET /" + std::string(process::HttpListener::longest_head, 'x')).status >= 400);
}

TEST_CASE("a server of a loopback address refuses requests for other hosts") {
  const metrics::HttpServer server(any_port, some_page);
  for (const auto* host : {"localhost", "LOCALHOST:9464", "127.0.0.1", "127.1.2.3:80", "[::1]:80"})
    CHECK(http_get(server.address(), "/now", host).status == 200);
  for (const auto* host :
       {"attacker.example", "192.0.2.1", "localhost.attacker.example", "127.0.0.1.example"})
    CHECK(http_get(server.address(), "/now", host).status == 403);
  CHECK(http_ask(server.address(), "GET /now HTTP/1.1\r\nHost: localhost\r\nHost: other.example\r\n\r\n")
            .status == 403);
}

TEST_CASE("a page that has to be waited for holds up no other") {
  std::promise<void> asked;
  std::promise<void> go;
  const metrics::HttpServer server(any_port, [&](const process::HttpCall& call) {
    if (call.path == "/later") {
      asked.set_value();
      go.get_future().wait();
    }
    return some_page(call);
  });
  std::thread waiting([&] { CHECK(http_get(server.address(), "/later").body == "page /later\n"); });
  asked.get_future().wait();
  CHECK(http_get(server.address(), "/now").status == 200);
  go.set_value();
  waiting.join();
}

TEST_CASE("clients that send nothing, or a byte, keep others from being served for seconds at most") {
  const metrics::HttpServer server(any_port, some_page);
  std::vector<HttpConnection> slow;
  for (int i = 0; i < 200; ++i) {
    slow.emplace_back(server.address());
    if (i % 2 == 0) slow.back().send("G");
  }
  CHECK(eventually([&] { return http_get(server.address(), "/now").status == 200; }));
}

TEST_CASE("a server ends without waiting for its clients") {
  std::optional<metrics::HttpServer> server(std::in_place, any_port, some_page);
  const HttpConnection idle(server->address());
  const HttpConnection slow(server->address());
  slow.send("GET /now HTTP/1.1\r\n");
  CHECK(http_get(server->address(), "/now").status == 200);
  // One header after the other, until the head is too long; a server that waits for the client says so then.
  std::thread sending([&] {
    for (; !slow.is_closed(); std::this_thread::sleep_for(std::chrono::milliseconds(50)))
      slow.send("Accept: everything\r\n");
  });
  server.reset();
  sending.join();
  CHECK(slow.read_all().empty());
  CHECK(idle.read_all().empty());
}

TEST_CASE("a client that sends no request is let go in time") {
  const metrics::HttpServer server(any_port, some_page);
  const HttpConnection client(server.address());
  client.send("GET /now HTTP/1.1\r\n");
  CHECK(client.read_all().empty());
}

TEST_CASE("a unix socket is served, and removed at the end") {
  const TemporaryDirectory directory;
  const config::ListenAddress address{.path = directory.path() / "metrics.sock"};
  {
    const metrics::HttpServer server(address, some_page);
    CHECK(http_get(address, "/now", "attacker.example").status == 200);
    const auto error = refused(address);
    CHECK(error.code() == ExitCode::locked);
    CHECK(std::string(error.what()).ends_with("metrics.sock: another process listens there"));
  }
  CHECK(!std::filesystem::exists(address.path));
}

TEST_CASE("a unix socket on which nobody listens any more is replaced") {
  const TemporaryDirectory directory;
  const config::ListenAddress address{.path = directory.path() / "metrics.sock"};
  const std::string kept = directory.path() / "kept.sock";
  {
    const process::ListeningSocket first(address, metrics::metrics_words);
    std::filesystem::rename(address.path, kept);
  }
  std::filesystem::rename(kept, address.path);
  const metrics::HttpServer server(address, some_page);
  CHECK(http_get(address, "/now").status == 200);
}

TEST_CASE("an address that cannot be listened at is refused") {
  const process::ListeningSocket taken(any_port, metrics::metrics_words);
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
