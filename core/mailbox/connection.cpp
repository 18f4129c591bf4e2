// Opens with the options of libcurl that relays have, and waits for the server without holding up a stop.

#include "mailbox/connection.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <poll.h>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/secret_file.hpp"

namespace mailroom::mailbox {
namespace {

constexpr Milliseconds patience{60'000};  ///< for the server's next byte
constexpr Milliseconds stop_look{200};

bool is_about_certificate(CURLcode result) {
  return result == CURLE_PEER_FAILED_VERIFICATION || result == CURLE_SSL_CACERT_BADFILE ||
         result == CURLE_SSL_ISSUER_ERROR;
}

}  // namespace

MailServer read_mail_server(std::string_view url, const config::UrlForm& form,
                            const config::Settings& settings, std::string& path) {
  const auto parsed = config::parse_server_url(url, form);
  const auto& bounce = settings.bounce;
  if (parsed.user.empty() || parsed.servers.size() != 1)
    throw Error(ExitCode::configuration,
                fmt::format("{} must name one host, and the user of the mailbox", form.subject), form.hint);
  MailServer server{parsed.servers.front(), parsed.scheme, parsed.user};
  path = parsed.path;
  const bool allows = settings.signing.allow_readable_key;
  server.tokens = smtp::configured_tokens({.file = bounce.token_file,
                                           .file_key = "bounce.token_file",
                                           .command = bounce.token_command,
                                           .command_key = "bounce.token_command",
                                           .limit = patience,
                                           .allows_readable_file = allows});
  if (!bounce.password_file.empty())
    server.password = read_password_file(bounce.password_file, allows, "bounce.password_file");
  if (server.password.empty() && !server.tokens)
    throw Error(
        ExitCode::configuration, "the mailbox has a user, and there is no password",
        "name the file that contains it in bounce.password_file, or an access token in bounce.token_file");
  server.ca_file = bounce.ca_file;
  if (!server.ca_file.empty() && !std::ifstream(server.ca_file).good())
    throw Error(ExitCode::configuration, fmt::format("cannot read the CA file {}", server.ca_file),
                "it is set by bounce.ca_file, and this user must be able to read it");
  return server;
}

MailConnection::MailConnection(MailServer server, IsStopped is_stopped)
    : server_(std::move(server)), is_stopped_(std::move(is_stopped)) {}

MailConnection::~MailConnection() {
  close();
}

void MailConnection::renew_handle(const std::string& token) {
  curl_.renew();
  curl_.set(CURLOPT_PROTOCOLS_STR, server_.scheme.c_str());
  curl_.set(CURLOPT_URL, fmt::format("{}://{}/", server_.scheme, server_.address()).c_str());
  curl_.set(CURLOPT_USERNAME, server_.user.c_str());
  if (token.empty()) {
    curl_.set(CURLOPT_PASSWORD, server_.password.c_str());
  } else {
    curl_.set(CURLOPT_XOAUTH2_BEARER, token.c_str());
  }
  curl_.set(CURLOPT_CONNECT_ONLY, 1L);
  curl_.set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(patience.count()));
  curl_.set(CURLOPT_SERVER_RESPONSE_TIMEOUT,
            static_cast<long>(std::chrono::ceil<std::chrono::seconds>(patience).count()));
  curl_.set(CURLOPT_USE_SSL, static_cast<long>(CURLUSESSL_ALL));
  curl_.secure(server_.ca_file);
  curl_.set(CURLOPT_XFERINFOFUNCTION, &MailConnection::on_progress);
  curl_.set(CURLOPT_XFERINFODATA, static_cast<void*>(this));
  curl_.set(CURLOPT_NOPROGRESS, 0L);
}

int MailConnection::on_progress(void* self, curl_off_t /*download_total*/, curl_off_t /*downloaded*/,
                                curl_off_t /*upload_total*/, curl_off_t /*uploaded*/) {
  return static_cast<MailConnection*>(self)->is_stopped_() ? 1 : 0;
}

void MailConnection::open() {
  if (is_open_) return;
  input_.clear();
  for (;;) {
    const auto token = server_.tokens ? server_.tokens->token(steady_now()) : std::string();
    renew_handle(token);
    curl_.forget_error();
    auto result = curl_easy_perform(curl_.get());
    if (result == CURLE_OK) result = curl_easy_getinfo(curl_.get(), CURLINFO_ACTIVESOCKET, &socket_);
    if (result == CURLE_OK) break;
    if (result == CURLE_LOGIN_DENIED && server_.tokens && server_.tokens->was_kept(token)) continue;
    fail_to_open(result);
  }
  is_open_ = true;
}

void MailConnection::fail_to_open(CURLcode result) {
  const auto words = printable(curl_.error_of(result));
  curl_.close();
  const auto name = server_.address();
  if (result == CURLE_LOGIN_DENIED) {
    throw Error(ExitCode::configuration, fmt::format("{} refuses the login of the mailbox: {}", name, words),
                "check the user in the URL, and bounce.password_file or bounce.token_file");
  }
  if (is_about_certificate(result)) {
    throw Error(
        ExitCode::configuration, fmt::format("{} has a certificate that is not accepted: {}", name, words),
        "name the host as its certificate does, or set bounce.ca_file to the certificate of its authority");
  }
  if (result == CURLE_USE_SSL_FAILED || result == CURLE_SSL_CONNECT_ERROR) {
    throw Error(
        ExitCode::configuration, fmt::format("{} cannot be used over TLS: {}", name, words),
        "imaps:// and pop3s:// need a port with TLS from the first byte, 993 or 995; nothing is fetched without TLS");
  }
  throw Error(ExitCode::database, fmt::format("the mailbox at {} cannot be read: {}", name, words),
              "check host and port, and whether this host may connect there");
}

void MailConnection::close() {
  is_open_ = false;
  socket_ = CURL_SOCKET_BAD;
  input_.clear();
  curl_.close();
}

void MailConnection::refuse(const std::string& problem, std::string_view words) {
  const auto name = server_.address();
  close();
  throw Error(ExitCode::failed, fmt::format("{} {}{}{}", name, problem, words.empty() ? "" : ": ",
                                            shown_text(std::string(words.substr(0, 500)))));
}

void MailConnection::wait_for(short events) {
  const auto until = steady_now() + patience;
  while (!is_stopped_()) {
    pollfd awaited{.fd = socket_, .events = events, .revents = 0};
    if (::poll(&awaited, 1, static_cast<int>(stop_look.count())) > 0) return;
    if (steady_now() < until) continue;
    close();
    throw Error(ExitCode::database, fmt::format("{} does not answer", server_.address()));
  }
  close();
  throw Error(ExitCode::failed, "stopped while the mailbox was read");
}

void MailConnection::send(std::string line) {
  line += "\r\n";
  std::string_view rest = line;
  while (!rest.empty()) {
    std::size_t size = 0;
    const auto result = curl_easy_send(curl_.get(), rest.data(), rest.size(), &size);
    if (result == CURLE_AGAIN) {
      wait_for(POLLOUT);
    } else if (result != CURLE_OK) {
      close();
      throw Error(ExitCode::database, fmt::format("the connection to {} was cut: {}", server_.address(),
                                                  curl_easy_strerror(result)));
    }
    rest.remove_prefix(size);
  }
}

void MailConnection::receive() {
  std::array<char, 16384> piece{};
  std::size_t size = 0;
  auto result = CURLE_AGAIN;
  while ((result = curl_easy_recv(curl_.get(), piece.data(), piece.size(), &size)) == CURLE_AGAIN)
    wait_for(POLLIN);
  if (result != CURLE_OK || size == 0) {
    close();
    throw Error(ExitCode::database, fmt::format("the connection to {} was cut", server_.address()));
  }
  input_.append(piece.data(), size);
}

std::string MailConnection::line() {
  std::string line;
  for (;;) {
    const auto end = input_.find('\n');
    const auto size = std::min(end, input_.size());
    line.append(input_, 0, std::min(size, longest_line - std::min(line.size(), longest_line)));
    if (end != std::string::npos) {
      input_.erase(0, end + 1);
      if (line.ends_with('\r')) line.pop_back();
      return line;
    }
    input_.clear();
    receive();
  }
}

std::string MailConnection::bytes(std::uint64_t size, std::size_t kept) {
  std::string bytes;
  while (size > 0) {
    if (input_.empty()) receive();
    const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(size, input_.size()));
    bytes.append(input_, 0, std::min(taken, kept - bytes.size()));
    input_.erase(0, taken);
    size -= taken;
  }
  return bytes;
}

}  // namespace mailroom::mailbox
