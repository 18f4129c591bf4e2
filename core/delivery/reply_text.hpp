// The text of SMTP replies, put together from lines and made fit for the record.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mailroom::delivery {

/// True if `line` begins with three digits.
bool has_reply_code(std::string_view line);

/// What `greeting` shows, such as `* OK IMAP4rev1 ready`, which is no reply of SMTP.
std::string no_smtp_text(std::string_view greeting);

/// Puts the lines of one SMTP reply together. Keeps a bounded amount of text, however long the reply is.
class ReplyReader {
 public:
  /// Takes a line, with or without its line end. True if the reply is complete.
  bool add(std::string_view line);
  /// Prepares for the next reply.
  void clear();

  /// 0 until the reply is complete.
  int code() const { return code_; }
  /// The text of all lines, separated by blanks, without codes.
  const std::string& text() const { return text_; }
  const std::string& last_line() const { return last_line_; }

 private:
  int code_ = 0;
  std::string text_;
  std::string last_line_;
};

/// `text` as it is recorded: printable, at most 200 bytes, `***` for each of `secrets`.
std::string recorded_reply(std::string_view text, const std::vector<std::string>& secrets);

/// `text` with `***@***` for each address, as the log shows it: the record keeps the words.
std::string without_addresses(std::string_view text);

/// What a reply may repeat of a login: the password, and the forms in which AUTH PLAIN and AUTH LOGIN send
/// it.
std::vector<std::string> secrets_of_login(const std::string& user, const std::string& password);

/// The time that a reply names for the next attempt: `try again in 60 seconds`, `retry after 5 min`. Nullopt
/// if there is none, or if it is 0 or longer than a day.
std::optional<std::chrono::seconds> named_delay(std::string_view text);

}  // namespace mailroom::delivery
