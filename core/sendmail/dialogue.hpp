// The dialogue with mailroom submission over a socket that is connected, as the client.
#pragma once

#include <string>

#include "base/clock.hpp"
#include "delivery/reply_text.hpp"
#include "sendmail/mail_text.hpp"

namespace mailroom::sendmail {

/// What became of a mail.
enum class Fate {
  stored,
  later,         ///< not known, or a refusal that passes: the same mail may be given again
  no_recipient,  ///< refused for a recipient
  no_right,      ///< refused for who mails, or as whom
  refused,
};

struct Answer {
  Fate fate = Fate::later;
  std::string words{};  ///< of the service; or why there are none
};

/// Used by one thread.
class Dialogue {
 public:
  /// `fd`: a stream socket, which it closes. `host`: the name to greet with.
  Dialogue(int fd, std::string host);
  /// Says goodbye.
  ~Dialogue();
  Dialogue(const Dialogue&) = delete;
  Dialogue& operator=(const Dialogue&) = delete;

  /// Submits a mail; waits for the answer. After Fate::later the dialogue may be over.
  Answer submit(const Mail& mail);
  bool is_over() const { return fd_ < 0; }

 private:
  bool greet();
  /// False if no reply comes within `patience`; reply_ has it otherwise.
  bool ask(const std::string& command, Milliseconds patience);
  bool send(std::string_view bytes, Milliseconds patience);
  bool read_reply(Milliseconds patience);
  Answer lost(const std::string& step);
  Answer refusal(bool of_recipient);
  void close();

  int fd_;
  std::string host_;
  std::string input_{};
  bool has_greeted_ = false;
  bool takes_utf8_ = false;
  delivery::ReplyReader reply_{};
};

/// Connects to a unix socket; -1, with errno, if nobody serves there.
int connect_to(const std::string& path);

}  // namespace mailroom::sendmail
