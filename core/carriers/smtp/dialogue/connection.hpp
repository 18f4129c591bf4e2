// The bytes between mailroom and a relay, over TLS, without the SMTP of mails.
#pragma once

#include <curl/curl.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "carriers/smtp/dialogue/dialogue.hpp"
#include "carriers/smtp/dialogue/sockets.hpp"
#include "carriers/smtp/relay/relay.hpp"
#include "transfer/handle.hpp"

namespace mailroom::smtp {

/// The one connection of a relay. libcurl opens it, with TLS, and transports its bytes; the commands of a
/// login and of a mail are the caller's.
class RelayConnection {
 public:
  /// The arguments must outlive the connection. Opens nothing yet.
  RelayConnection(const RelayUrl& url, const RelayOptions& options, RelaySockets& sockets,
                  Dialogue& dialogue);
  /// close()
  ~RelayConnection();
  RelayConnection(const RelayConnection&) = delete;
  RelayConnection& operator=(const RelayConnection&) = delete;

  /// Opens a connection in place of the one before, up to EHLO over TLS. Where the name has several
  /// addresses, and one takes connections and does not serve, tries the next.
  CURLcode open();
  /// Opens a connection to another address of the name, as the last one does not serve, and sets `result`.
  /// False, with the dialogue as it was, if no other takes connections.
  bool open_next(CURLcode& result);
  /// True if the connection is open, and nothing has come that no command has asked for.
  bool is_quiet();
  /// True if more has come than the replies that were read.
  bool has_input() const { return !input_.empty(); }
  /// False if the connection is lost, if the relay takes no bytes in time, or if something unasked has come:
  /// that would be taken for the reply.
  bool send(std::string_view bytes);
  /// How many bytes the last send() has sent.
  std::size_t sent() const { return sent_; }
  /// Reads lines until the dialogue has a reply. False if none comes in time.
  bool read_reply();
  /// Sends `text` as a line, a command or the answer to a challenge, and reads the reply. False if none
  /// comes.
  bool command(const std::string& text);
  /// Says goodbye, and does not wait for the answer.
  void close();
  /// Ends a connection on which a late reply may come.
  void drop();

  /// True if the last open() has reached the relay, whatever it said then.
  bool was_reached() const { return was_reached_; }
  /// Why open() failed, in libcurl's words; may be empty.
  const char* error() const { return error_.c_str(); }

 private:
  CURLcode open_once();
  void renew_handle();
  void set_connection();
  void set_security();
  void set_callbacks();
  bool receive();
  bool wait_for(short events) const;

  static std::size_t on_line(char* line, std::size_t size, std::size_t count, void* self);
  static int on_debug(CURL* curl, curl_infotype kind, char* bytes, std::size_t size, void* self);
  static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t);
  static curl_socket_t on_open(void* self, curlsocktype purpose, curl_sockaddr* address);
  static int on_close(void* self, curl_socket_t socket);

  const RelayUrl& url_;
  const RelayOptions& options_;
  RelaySockets& sockets_;
  Dialogue& dialogue_;
  bool is_opening_ = false;
  bool is_open_ = false;
  bool was_reached_ = false;
  curl_socket_t socket_ = CURL_SOCKET_BAD;
  std::string address_;               ///< the last that a socket was opened for
  std::vector<std::string> avoided_;  ///< addresses that did not serve
  TimePoint avoided_until_{};
  std::size_t sent_ = 0;
  std::string input_;  ///< received, and not read yet
  std::string error_;  ///< of the last open()
  std::unique_ptr<curl_slist, void (*)(curl_slist*)> resolve_;
  /// Destroyed first: its end is reported to the callbacks.
  transfer::Handle curl_;
};

}  // namespace mailroom::smtp
