// The record of a letter as a page that prints.
#pragma once

#include <string>
#include <vector>

#include "audit/history.hpp"
#include "cmd/message/message_rendered.hpp"
#include "messages/message_record.hpp"

namespace mailroom::cmd {

/// All that is on record of one message.
struct LetterRecord {
  Moment made_at{};  ///< by the server's clock
  std::string made_by{};
  messages::MessageRecord message{};
  std::vector<RenderedMail> mails{};
  std::vector<audit::History> histories{};
};

/// One file of HTML without a script and without anything from elsewhere. Texts of applications, relays and
/// mails are text in it, whatever they hold.
std::string record_page(const LetterRecord& record);

}  // namespace mailroom::cmd
