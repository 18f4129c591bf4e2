// A connection to a mailbox server that is logged in: libcurl opens it, over TLS, and the two protocols say
// their own words over it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "carriers/smtp/relay/access_token.hpp"
#include "config/server_url.hpp"
#include "mailbox/mailbox.hpp"
#include "transfer/handle.hpp"

namespace mailroom::mailbox {

/// Where a mailbox is, and as whom to log in there.
struct MailServer : config::ServerAddress {
  std::string scheme{};  ///< `imaps`, `imap`, `pop3s` or `pop3`: without the s TLS begins by a command
  std::string user{};
  std::string password{};
  std::shared_ptr<smtp::TokenSource> tokens{};  ///< instead of a password
  std::string ca_file{};  ///< PEM file of the only trusted certificates; empty: those of the system
};

/// Reads a URL of the mailbox and the files of its login. `form` has the schemes of the protocol; `path` gets
/// what follows the host. Throws Error(configuration).
MailServer read_mail_server(std::string_view url, const config::UrlForm& form,
                            const config::Settings& settings, std::string& path);

/// Functions throw as those of Mailbox, and close the connection then.
class MailConnection {
 public:
  MailConnection(MailServer server, IsStopped is_stopped);
  ~MailConnection();
  MailConnection(const MailConnection&) = delete;
  MailConnection& operator=(const MailConnection&) = delete;

  bool is_open() const { return is_open_; }
  /// Connects and logs in, unless it is open.
  void open();
  void close();

  /// Sends a line.
  void send(std::string line);
  /// The next line without its end; of a longer one than `longest_line` the begin.
  std::string line();
  /// The next `size` bytes: as many of them as `kept`.
  std::string bytes(std::uint64_t size, std::size_t kept);
  /// Closes, and throws Error(failed): the server said something that it must not say, or `words`.
  [[noreturn]] void refuse(const std::string& problem, std::string_view words = {});

  const MailServer& server() const { return server_; }

 private:
  static constexpr std::size_t longest_line = std::size_t{1} << 20;

  static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t);
  void renew_handle(const std::string& token);
  [[noreturn]] void fail_to_open(CURLcode result);
  void receive();
  void wait_for(short events);

  MailServer server_;
  IsStopped is_stopped_;
  transfer::Handle curl_;
  curl_socket_t socket_ = CURL_SOCKET_BAD;
  std::string input_;
  bool is_open_ = false;
};

}  // namespace mailroom::mailbox
