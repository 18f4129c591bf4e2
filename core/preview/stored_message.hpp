// A message of the database with all that its mail is made of, read once and kept.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "claim/queue_session.hpp"
#include "compose/mail_writer.hpp"
#include "db/connection.hpp"

namespace mailroom {

class StoredMessage {
 public:
  /// Reads it with its files, of at most `largest` bytes. Throws Error(unusable) if there is no such message
  /// or its content has been removed.
  StoredMessage(std::unique_ptr<Connection> connection, std::int64_t id, std::size_t largest);

  std::string title() const;
  const std::string& template_name() const { return template_name_; }  ///< empty: it has its own content
  std::string locale() const { return std::string(content_.locale); }
  std::string data() const { return std::string(content_.data); }
  std::string profile() const { return std::string(content_.profile); }

  /// Its mail to the first recipient, with `token` in its link.
  std::variant<WrittenMail, Refusal> write(const MailWriter& writer, const std::string& token,
                                           const std::string& data) const;

 private:
  pqxx::result rows_;  ///< what the views are of
  MessageContent content_;
  Action action_;
  std::string template_name_;
  std::vector<Attachment> files_;
};

}  // namespace mailroom
